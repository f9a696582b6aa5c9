//! Attempts to get out of the fence: none succeeds, whoever started it.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use haft_sandbox::fence::{FenceJob, Rung, WorkspaceView};

use crate::world::{Answer, Who, World};

const ATTEMPTS: &str = include_str!("attempts.py");
/// A program that enters the kernel as one of 32 bits would, and asks for its own id.
const INT80: &str = r#"#include <stdio.h>
int main(void) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); printf("%d\n", (int)r); return 0; }"#;

/// What the attempts try to reach.
struct Target {
    world: World,
    port: u16,
    name: String,
    victim: Child,
    _listeners: (TcpListener, UnixListener, UnixListener),
}

impl Target {
    fn new(who: Who) -> Target {
        let world = World::new(who);
        for (name, content) in
            [(".env", "hidden"), ("private/key", "hidden"), ("plain", ""), ("haft.toml", ""), ("sub/file", "")]
        {
            world.file(name, content);
        }
        for name in [".git/hooks/sample", ".git/config", ".haft/tools"] {
            world.file(name, "");
        }
        fs::write(world.outside.join("secret"), "secret").unwrap();
        fs::set_permissions(world.outside.join("secret"), fs::Permissions::from_mode(0o666)).unwrap();
        symlink(world.outside.join("secret"), world.workspace.join("link-out")).unwrap();
        symlink(&world.outside, world.workspace.join("folder-out")).unwrap();
        compile(&world, INT80, "int80");
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let by_path = UnixListener::bind(world.outside.join("socket")).unwrap();
        fs::set_permissions(world.outside.join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
        let name = format!("fence-{}", world.workspace.display());
        let abstractly = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let port = tcp.local_addr().unwrap().port();
        let victim = victim(&world);
        Target { world, port, name, victim, _listeners: (tcp, by_path, abstractly) }
    }

    fn variables(&self, rung: &str, view: &str) -> Vec<(String, String)> {
        [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/home/fenced"),
            ("OUT", self.world.outside.to_str().unwrap()),
            ("PID", &self.victim.id().to_string()),
            ("ABSTRACT", &self.name),
            ("PORT", &self.port.to_string()),
            ("RUNG", rung),
            ("VIEW", view),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    fn job(&self, rung: Rung, view: WorkspaceView) -> FenceJob {
        let (rung_name, view_name) = (
            if rung == Rung::Namespaces { "namespaces" } else { "landlock" },
            if view == WorkspaceView::Direct { "direct" } else { "aside" },
        );
        let hidden = [".env", "private"].map(|name| self.world.workspace.join(name)).to_vec();
        FenceJob {
            command: ["/usr/bin/python3", "-"].map(str::to_owned).to_vec(),
            environment: self.variables(rung_name, view_name),
            stdin: ATTEMPTS.into(),
            view,
            hidden,
            rung,
            ..self.world.job("")
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

#[test]
fn nothing_gets_out_of_namespaces() {
    for who in Who::all() {
        let target = Target::new(*who);
        held(*who, &target.world.run(&target.job(Rung::Namespaces, WorkspaceView::Direct)), 150);
        let layer = target.world.layer("layer");
        held(*who, &target.world.run(&target.job(Rung::Namespaces, WorkspaceView::Aside { layer })), 130);
    }
}

#[test]
fn nothing_gets_out_of_a_shared_network() {
    for who in Who::all() {
        let target = Target::new(*who);
        held(*who, &target.world.run_reachable(&target.job(Rung::Namespaces, WorkspaceView::Direct)), 150);
        let layer = target.world.layer("layer");
        held(*who, &target.world.run_reachable(&target.job(Rung::Namespaces, WorkspaceView::Aside { layer })), 130);
    }
}

#[test]
fn nothing_gets_out_of_landlock() {
    for who in Who::at(Rung::Landlock) {
        let target = Target::new(who);
        held(who, &target.world.run(&target.job(Rung::Landlock, WorkspaceView::Direct)), 130);
    }
}

/// Attempts that never succeed anywhere would show nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "this is what happens without a fence")]
fn without_a_fence_the_attempts_succeed() {
    let target = Target::new(Who::all()[0]);
    fs::write(target.world.workspace.join("attempts.py"), ATTEMPTS).unwrap();
    let output = Command::new("/usr/bin/python3")
        .arg("attempts.py")
        .current_dir(&target.world.workspace)
        .envs(target.variables("bare", "direct"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let escaped: Vec<_> = said.lines().filter(|line| line.starts_with("ESCAPED")).collect();
    let held: Vec<_> = said.lines().filter(|line| line.starts_with("held")).collect();
    assert!(escaped.len() >= 20, "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(held.len() <= 3, "{held:?}");
}

#[test]
fn the_network_brings_no_sockets_of_this_machine() {
    let script = "import os, socket
for name in ('\\0' + os.environ['ABSTRACT'], os.environ['OUT'] + '/socket'):
    try: socket.socket(socket.AF_UNIX).connect(name); print('ESCAPED', name)
    except OSError: print('held')
socket.create_connection(('127.0.0.1', int(os.environ['PORT']))); print('connected')";
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let target = Target::new(who);
            let job = FenceJob { stdin: script.into(), network: true, ..target.job(rung, WorkspaceView::Direct) };
            let answer = target.world.run(&job);
            assert_eq!(answer.stdout, "held\nheld\nconnected\n", "{rung:?} {who:?} {answer:?}");
        }
    }
}

#[test]
fn a_program_from_memory_may_run() {
    let script = "import os
fd = os.memfd_create('program')
os.write(fd, open('/bin/echo', 'rb').read())
os.execve(fd, ['echo', 'ran'], {})";
    for who in Who::all() {
        let world = World::new(*who);
        let job = FenceJob { command: ["/usr/bin/python3", "-c", script].map(str::to_owned).to_vec(), ..world.job("") };
        assert_eq!(world.run(&job).stdout, "ran\n", "{who:?}");
    }
}

fn held(who: Who, answer: &Answer, at_least: usize) {
    let bad: Vec<_> =
        answer.stdout.lines().filter(|line| !line.starts_with("held ") && !line.starts_with("tried ")).collect();
    assert!(bad.is_empty(), "{who:?} {bad:#?}");
    let tried = answer.stdout.lines().filter(|line| line.starts_with("held ")).count();
    assert!(answer.stdout.ends_with(&format!("tried {tried}\n")) && tried >= at_least, "{who:?} {answer:?}");
}

#[expect(clippy::disallowed_methods, reason = "the compiler is no tool of anybody")]
fn compile(world: &World, source: &str, name: &str) {
    let file = world.file(&format!("{name}.c"), source);
    if cfg!(target_arch = "x86_64") {
        let program = world.workspace.join(name);
        assert!(Command::new("cc").arg(&file).arg("-o").arg(&program).status().unwrap().success());
        world.give(&program);
    }
}

/// A process outside, of the user whose workspace it is.
#[expect(clippy::disallowed_methods, reason = "this is whom the fence protects")]
fn victim(world: &World) -> Child {
    use std::os::unix::process::CommandExt;
    let mut victim = Command::new("/bin/sleep");
    victim.args(["600"]).arg0("MARK_OF_OUTSIDE").env("MARK", "MARK_OF_OUTSIDE").stdin(Stdio::null());
    let owner = fs::metadata(Path::new(&world.workspace)).unwrap();
    let (uid, gid) = (std::os::unix::fs::MetadataExt::uid(&owner), std::os::unix::fs::MetadataExt::gid(&owner));
    if rustix::process::geteuid().is_root() && uid != 0 {
        victim.uid(uid).gid(gid);
    }
    victim.spawn().unwrap()
}

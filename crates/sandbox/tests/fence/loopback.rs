//! That commands of one workspace reach a background command of it, and that nobody else does.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::time::Duration;

use haft_sandbox::fence::{Fence, FenceError, FenceJob, Process, Rung, WorkspaceView};

use crate::world::{Who, World, within};

const LONG: Duration = Duration::from_secs(20);

/// Says a word to everybody who connects, and writes its port into a file when it is ready.
const SERVER: &str = "import os, socket
s = socket.create_server(('127.0.0.1', 0))
open('port.new', 'w').write(str(s.getsockname()[1]))
os.rename('port.new', 'port')
while True:
    c = s.accept()[0]
    c.sendall(b'the word')
    c.close()";

/// Says what the server says, or that there is none.
const CLIENT: &str = "import os, socket
try: print(socket.create_connection(('127.0.0.1', int(os.environ['PORT'])), 10).recv(100).decode())
except ConnectionRefusedError: print('refused')";

/// Everybody whom this very process can be.
fn here() -> impl Iterator<Item = Who> {
    let ordinary = !rustix::process::geteuid().is_root();
    Who::all().iter().copied().filter(move |who| ordinary || *who != Who::Ordinary)
}

fn python(world: &World, script: &str) -> FenceJob {
    FenceJob { command: ["/usr/bin/python3", "-c", script].map(str::to_owned).to_vec(), ..world.job("") }
}

/// A server that runs, and the port that it listens at.
fn serve(fence: &Fence, world: &World) -> (Process, u16) {
    let server = fence.start_reachable(&python(world, SERVER)).unwrap();
    let file = world.workspace.join("port");
    assert!(within(LONG, || file.exists()), "no server");
    (server, fs::read_to_string(file).unwrap().parse().unwrap())
}

fn client(world: &World, port: u16) -> FenceJob {
    let mut job = python(world, CLIENT);
    job.environment.push(("PORT".to_owned(), port.to_string()));
    job
}

fn said(started: Result<Process, FenceError>) -> Result<String, FenceError> {
    let mut said = Vec::new();
    started?.wait(&mut |_, piece| said.extend_from_slice(piece))?;
    Ok(String::from_utf8(said).unwrap().trim().to_owned())
}

#[test]
fn only_commands_of_the_same_fence_and_workspace_reach_it() {
    for who in here() {
        let (world, other) = (World::new(who), World::new(who));
        let fence = world.fence();
        let (server, port) = serve(&fence, &world);
        let job = client(&world, port);
        assert_eq!(said(fence.start(&job)).unwrap(), "the word", "{who:?}");
        let aside = FenceJob { view: WorkspaceView::Aside { layer: world.layer("layer") }, ..job.clone() };
        assert_eq!(said(fence.start(&aside)).unwrap(), "the word", "{who:?}");
        assert_eq!(said(fence.start_reachable(&job)).unwrap(), "the word", "{who:?}");

        assert_eq!(said(fence.start(&client(&other, port))).unwrap(), "refused", "another workspace, {who:?}");
        assert_eq!(said(fence.start_reachable(&client(&other, port))).unwrap(), "refused", "another loopback, {who:?}");
        assert_eq!(said(world.fence().start(&job)).unwrap(), "refused", "another fence, {who:?}");
        assert_eq!(said(world.fence().start_reachable(&job)).unwrap(), "refused", "another fence's, {who:?}");
        let outside = FenceJob { network: true, ..job.clone() };
        assert_ne!(said(fence.start(&outside)).unwrap(), "the word", "the machine, {who:?}");
        let mut heard = String::new();
        // Somebody else may listen there, and say something else.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let _ = stream.read_to_string(&mut heard);
        }
        assert!(!heard.contains("the word"), "the machine, {who:?}");
        let (process, mut socket) = fence.converse(&job).unwrap();
        let listening = std::thread::spawn(move || process.wait(&mut |_, _| {}));
        let mut heard = String::new();
        socket.read_to_string(&mut heard).unwrap();
        listening.join().unwrap().unwrap();
        assert_eq!(heard, "refused\n", "one that is talked with, {who:?}");

        drop(server);
        assert_eq!(said(fence.start(&job)).unwrap(), "refused", "{who:?}");
    }
}

#[test]
fn a_shared_loopback_leads_nowhere_else() {
    for who in here() {
        let world = World::new(who);
        let fence = world.fence();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let job = client(&world, listener.local_addr().unwrap().port());
        assert_eq!(said(fence.start_reachable(&job)).unwrap(), "refused", "{who:?}");
        assert_eq!(said(fence.start(&job)).unwrap(), "refused", "{who:?}");
        assert!(listener.accept().is_err(), "{who:?}");
        let look = "import socket, os
print([name for _, name in socket.if_nameindex()])
for command in ('ip link set lo down', 'ip link add v type dummy', 'ip addr add 10.9.9.9/8 dev lo'):
    print(os.system(command + ' 2> /dev/null') != 0)";
        assert_eq!(said(fence.start(&python(&world, look))).unwrap(), "['lo']\nTrue\nTrue\nTrue", "{who:?}");
    }
}

#[test]
fn who_may_not_join_it_runs_nothing() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a workspace to somebody else");
        return;
    }
    let world = World::new(Who::Root);
    let fence = world.fence();
    let _server = serve(&fence, &world);
    chown(&world.workspace, Some(65_000), Some(65_000)).unwrap();
    let refused = said(fence.start(&python(&world, "open('made', 'w')"))).unwrap_err();
    assert!(matches!(&refused, FenceError::Unavailable { step, .. } if step.starts_with("join")), "{refused}");
    assert!(refused.to_string().ends_with("start haft anew"), "{refused}");
    assert!(!world.workspace.join("made").exists());
    let networked = FenceJob { network: true, ..python(&world, "print('ran')") };
    assert_eq!(said(fence.start(&networked)).unwrap(), "ran");
}

#[test]
fn without_namespaces_there_is_none_to_share() {
    for who in here().filter(|who| *who != Who::Root) {
        let world = World::new(who);
        let job = FenceJob { rung: Rung::Landlock, ..python(&world, "print('ran')") };
        assert_eq!(said(world.fence().start_reachable(&job)).unwrap(), "ran", "{who:?}");
    }
}

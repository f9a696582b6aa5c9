//! That real programs work inside, as everybody and at every rung.

use std::path::Path;

use haft_sandbox::fence::{FenceJob, Rung, WorkspaceView};

use crate::world::{Who, World};

/// What is run, and what it says then.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("bash", "for i in 1 2; do echo $((i * 2)) | cat; done", "2\n4\n"),
    (
        "python3",
        "/usr/bin/python3 -c 'import subprocess, threading; print(subprocess.check_output([\"echo\", \"py\"]))'",
        "b'py\\n'\n",
    ),
    (
        "node",
        "node -e 'require(\"child_process\").exec(\"echo js\", (e, out) => console.log(e, out.trim()))'",
        "null js\n",
    ),
    ("node", "node -e 'new (require(\"worker_threads\").Worker)(\"console.log(1)\", {eval: true})'", "1\n"),
    ("java", "java -version 2>&1 | grep -c Runtime", "1\n"),
    ("cc", "cd sub && echo 'int main(void) { return 3; }' > a.c && cc a.c -o a && { ./a; echo $?; }", "3\n"),
    ("make", "cd sub && printf 'all: a b\\na b:\\n\\t@echo $@\\n' > Makefile && make -s -j2 | sort", "a\nb\n"),
    (
        "git",
        "cd sub && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --format=%s",
        "first\n",
    ),
    ("perl", "perl -e 'print `echo pl`'", "pl\n"),
    ("find", "find sub -name keep | xargs ls", "sub/keep\n"),
    ("tar", "cd sub && tar cf x.tar keep && rm keep && tar xf x.tar && cat keep", "kept"),
    ("strace", "strace -qq -e trace=none echo traced", "traced\n"),
];

#[test]
fn programs_work() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            for (program, script, says) in PROGRAMS.iter().filter(|(program, ..)| is_there(program)) {
                let world = World::new(who);
                world.file("sub/keep", "kept");
                let mut job = FenceJob { rung, ..world.job(script) };
                if rung == Rung::Landlock {
                    // There is no private folder for what is temporary.
                    let temporary = world.beside("temporary");
                    job.environment.push(("TMPDIR".to_owned(), temporary.to_str().unwrap().to_owned()));
                    job.writable.push(temporary);
                }
                if rung == Rung::Namespaces {
                    let aside = FenceJob { view: WorkspaceView::Aside { layer: world.layer("layer") }, ..job.clone() };
                    let answer = world.run(&aside);
                    let ended = (answer.stdout.as_str(), answer.exit.as_str());
                    assert_eq!(ended, (*says, "Code(0)"), "{program} aside {who:?} {answer:?}");
                }
                let answer = world.run(&job);
                let ended = (answer.stdout.as_str(), answer.exit.as_str());
                assert_eq!(ended, (*says, "Code(0)"), "{program} {rung:?} {who:?} {answer:?}");
            }
        }
    }
}

/// A toolchain in somebody's home folder works when it is given; whoever cannot read it there has none.
#[test]
fn a_toolchain_from_a_home_folder_works() {
    let Some(rustc) = option_env!("CARGO_HOME").map(Path::new).filter(|home| home.join("bin/cargo").exists()) else {
        return;
    };
    let toolchains = rustc.parent().unwrap().join(".rustup");
    let world = World::new(Who::all()[0]);
    let mut job = world.job(
        "cargo --version && rustc --version && cargo init -q --name hello sub && cd sub && cargo run -q --offline",
    );
    job.readable = vec![rustc.join("bin"), toolchains.clone()];
    job.environment[0].1 = format!("{}/bin:/usr/bin:/bin", rustc.display());
    job.environment.push(("RUSTUP_HOME".to_owned(), toolchains.to_str().unwrap().to_owned()));
    let answer = world.run(&job);
    assert!(answer.stdout.ends_with("Hello, world!\n"), "{answer:?}");
}

fn is_there(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

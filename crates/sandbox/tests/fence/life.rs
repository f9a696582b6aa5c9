//! That nothing of a job outlives it, whatever ends it, and how its end is told.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haft_sandbox::fence::{
    CommandExit, CommandStream, FenceError, FenceJob, FileTime, Process, ProcessEnd, Rung, WorkspaceView,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Who, World, alive, run_here, within};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(20);

/// Starts what tries to stay: in sessions of their own, with other parents, deaf to signals, holding the outputs.
const STAYS: &str = "trap '' TERM HUP INT
setsid bash -c 'trap \"\" TERM HUP INT; sleep 3600.MARK & setsid setsid sleep 3600.MARK & wait' &
(setsid sleep 3600.MARK > /dev/null 2>&1 &) &
nohup sleep 3600.MARK > /dev/null 2>&1 &
echo ready";

/// Waits until all of them sleep, and stops everything but itself.
const STOP_ALL: &str = "until [ $(cat /proc/[0-9]*/comm 2> /dev/null | grep -cx sleep) = 4 ]; do :; done
kill -STOP -1
wait";

/// A world, and a job that starts four sleeping processes of its own mark and then does something.
fn staying(who: Who, rung: Rung, then: &str) -> (World, FenceJob, String) {
    let world = World::new(who);
    let letters = world.workspace.as_os_str().as_encoded_bytes();
    let mark: String = letters.iter().map(|letter| format!("{letter:03}")).collect();
    let script = format!("{STAYS}\n{then}").replace("MARK", &mark);
    let job = FenceJob { rung, ..world.job(&script) };
    (world, job, mark)
}

/// Everybody whom this very process can be at a rung.
fn here(rung: Rung) -> Vec<Who> {
    let ordinary = !rustix::process::geteuid().is_root();
    Who::at(rung).filter(|who| ordinary || *who != Who::Ordinary).collect()
}

/// Starts a job here, and waits until all four processes sleep.
fn start(world: &World, job: &FenceJob, mark: &str) -> Process {
    let process = world.fence().start(job).unwrap();
    assert!(within(LONG, || sleeping(mark) == 4), "{} of 4 sleep", sleeping(mark));
    process
}

/// How many processes of the mark are really asleep, and not still the shell that becomes them.
fn sleeping(mark: &str) -> usize {
    let is_sleep = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    alive(&format!("3600.{mark}")).iter().filter(|pid| is_sleep(pid)).count()
}

fn gone(mark: &str) -> bool {
    within(SECOND, || alive(mark).is_empty())
}

#[test]
fn the_end_of_the_command_is_the_end_of_all() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let (world, job, mark) = staying(who, rung, "exit 7");
            let began = Instant::now();
            let answer = world.run(&job);
            assert_eq!(
                (answer.exit.as_str(), answer.stdout.as_str()),
                ("Code(7)", "ready\n"),
                "{rung:?} {who:?} {answer:?}"
            );
            assert!(began.elapsed() < LONG && alive(&mark).is_empty(), "{rung:?} {who:?}");
        }
    }
}

#[test]
fn a_stopper_ends_all() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in here(rung) {
            // Without namespaces, "everything" would be everything of the user.
            let then = if rung == Rung::Namespaces { STOP_ALL } else { "wait" };
            let (world, job, mark) = staying(who, rung, then);
            let process = start(&world, &job, &mark);
            let stopper = process.stopper();
            let other = stopper.clone();
            std::thread::spawn(move || other.stop()).join().unwrap();
            stopper.stop();
            assert!(gone(&mark), "{rung:?} {who:?}");
            let ended = process.wait(&mut |_, _| {}).unwrap();
            assert_eq!((ended.exit, ended.bound), (CommandExit::Stopped, None), "{rung:?} {who:?}");
            stopper.stop();
        }
    }
}

#[test]
fn dropping_a_process_ends_all() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in here(rung) {
            let (world, job, mark) = staying(who, rung, "wait");
            let process = start(&world, &job, &mark);
            let id = process.id();
            drop(process);
            assert!(gone(&mark), "{rung:?} {who:?}");
            assert!(!PathBuf::from(format!("/proc/{id}")).exists(), "it is reaped");
        }
    }
}

#[test]
fn killing_the_keeper_ends_all() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in here(rung) {
            let (world, job, mark) = staying(who, rung, "wait");
            let process = start(&world, &job, &mark);
            kill(i32::try_from(process.id()).unwrap());
            assert!(gone(&mark), "{rung:?} {who:?}");
            assert!(matches!(process.wait(&mut |_, _| {}), Err(FenceError::Lost)), "{rung:?} {who:?}");
        }
    }
}

#[test]
fn killing_the_first_process_ends_all() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in here(rung) {
            let (world, job, mark) = staying(who, rung, "wait");
            let process = start(&world, &job, &mark);
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.id())).unwrap();
            kill(children.trim().parse().unwrap());
            assert!(gone(&mark), "{rung:?} {who:?}");
            assert!(matches!(process.wait(&mut |_, _| {}), Err(FenceError::Lost)), "{rung:?} {who:?}");
        }
    }
}

#[test]
fn killing_whoever_asked_ends_all() {
    for (rung, way) in [(Rung::Namespaces, "job"), (Rung::Namespaces, "reachable-job"), (Rung::Landlock, "job")] {
        for who in Who::at(rung) {
            let (world, job, mark) = staying(who, rung, "wait");
            let mut asker = world.asker(way);
            asker.stdin.take().unwrap().write_all(&serde_json::to_vec(&job).unwrap()).unwrap();
            assert!(within(LONG, || sleeping(&mark) == 4), "{rung:?} {who:?}");
            asker.kill().unwrap();
            assert!(gone(&mark), "{rung:?} {who:?}");
            asker.wait().unwrap();
        }
    }
}

/// The only process that waits to build a fence. Right after its start the system may not show its command line yet.
fn the_one_that_waits(helper: &str) -> i32 {
    assert!(within(LONG, || alive(helper).len() == 1), "{:?} wait", alive(helper));
    alive(helper)[0]
}

#[test]
fn who_builds_the_next_fence_waits_for_it_and_ends_with_it() {
    for who in here(Rung::Namespaces) {
        let world = World::new(who);
        let (fence, helper) = (world.fence(), world.helper().to_string_lossy().into_owned());
        let job = FenceJob { view: WorkspaceView::ReadOnly, ..world.job("exit 5") };
        let run = || {
            let process = fence.start(&job).unwrap();
            let id = i32::try_from(process.id()).unwrap();
            assert_eq!(process.wait(&mut |_, _| {}).unwrap().exit, CommandExit::Code(5), "{who:?}");
            id
        };
        run();
        assert_eq!(alive(&helper), [0; 0], "{who:?}: whoever runs one command has nobody wait");
        run();
        let waiting = the_one_that_waits(&helper);
        assert_eq!(run(), waiting, "{who:?}");
        let killed = the_one_that_waits(&helper);
        kill(killed);
        let stat = format!("/proc/{killed}/stat");
        assert!(within(SECOND, || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))), "{who:?}");
        assert_ne!(run(), killed, "{who:?}: whoever was killed is replaced");
        drop(fence);
        assert_eq!(alive(&helper), [0; 0], "{who:?}");
    }
}

#[test]
fn an_end_is_told_as_it_was() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            for (script, exit) in [
                ("exit 0", "Code(0)"),
                ("exit 77", "Code(77)"),
                ("kill -9 $$", "Signal(9)"),
                ("kill -TERM $$", "Signal(15)"),
            ] {
                assert_eq!(world.run(&FenceJob { rung, ..world.job(script) }).exit, exit, "{rung:?} {who:?}");
            }
        }
    }
}

#[test]
fn what_cannot_run_is_told() {
    let rung = Rung::Namespaces;
    for who in here(rung) {
        let world = World::new(who);
        let missing = FenceJob { command: vec!["no-such-program".to_owned()], ..world.job("") };
        assert!(
            matches!(run_here(&world, &missing), Err(FenceError::NotFound { program }) if program == "no-such-program")
        );
        let none = FenceJob { command: Vec::new(), ..world.job("") };
        assert!(matches!(run_here(&world, &none), Err(FenceError::NotFound { .. })));
        let elsewhere = FenceJob { folder: "/nowhere".into(), ..world.job("true") };
        assert!(
            matches!(run_here(&world, &elsewhere), Err(FenceError::Unavailable { step, .. }) if step == "enter /nowhere")
        );
        let layer = world.beside("no-layer");
        let aside = FenceJob { view: WorkspaceView::Aside { layer: layer.clone() }, ..world.job("true") };
        assert!(
            matches!(run_here(&world, &aside), Err(FenceError::Unavailable { step, .. }) if step.contains("upper"))
        );
        let staged = FenceJob { rung: Rung::Landlock, view: WorkspaceView::Aside { layer }, ..world.job("true") };
        assert!(matches!(run_here(&world, &staged), Err(FenceError::Unavailable { .. })));
    }
}

/// What is wrong with a program is no fault of the fence.
#[test]
fn a_program_that_does_not_start_is_told_with_its_reason() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in here(rung) {
            let world = World::new(who);
            world.file("plain", "no program");
            let executable = |name: &str, content: &str| {
                let file = world.file(name, content);
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
                file
            };
            executable("script", "#!/no/such/interpreter\n");
            let written = fs::File::options().append(true).open(executable("busy", "#!/bin/sh\n")).unwrap();
            for (command, reason) in [
                (vec!["./plain".to_owned()], "ermission denied"),
                (vec!["./script".to_owned()], "the interpreter that its first line names"),
                (vec!["./busy".to_owned()], "somebody is writing it"),
                (vec!["true".to_owned(), "x".repeat(200 << 10)], "fewer or shorter arguments"),
            ] {
                let ended = run_here(&world, &FenceJob { rung, command: command.clone(), ..world.job("") });
                let told = matches!(&ended, Err(FenceError::NotRun { program, why }) if *program == command[0] && why.contains(reason));
                assert!(told, "{rung:?} {who:?} {:?}: {ended:?}", command[0]);
            }
            drop(written);
        }
    }
}

#[test]
fn landlock_alone_never_runs_as_root() {
    let world = World::new(Who::all()[0]);
    let job = FenceJob { rung: Rung::Landlock, ..world.job("id -u") };
    if world.who == Who::Root {
        assert!(
            matches!(run_here(&world, &job), Err(FenceError::Unavailable { step, .. }) if step == "become another user")
        );
    } else {
        assert_eq!(run_here(&world, &job).unwrap().1, format!("{}\n", rustix::process::geteuid().as_raw()));
    }
}

#[test]
fn a_flood_of_output_is_heard_whole_and_in_pieces() {
    const FLOOD: u64 = 300 << 20;
    let world = World::new(Who::all()[0]);
    let job = world.job(&format!("head -c {FLOOD} /dev/zero; echo end >&2"));
    let (mut out, mut err, mut largest) = (0, Vec::new(), 0);
    let ended = world.fence().start(&job).unwrap().wait(&mut |stream, piece| {
        largest = largest.max(piece.len());
        match stream {
            CommandStream::Stdout => out += piece.len() as u64,
            CommandStream::Stderr => err.extend_from_slice(piece),
        }
    });
    assert!(matches!(ended, Ok(ProcessEnd { exit: CommandExit::Code(0), .. })), "{ended:?}");
    assert_eq!((out, err.as_slice()), (FLOOD, b"end\n".as_slice()));
    assert!(largest <= 128 << 10, "{largest}");
}

#[test]
fn its_beginning_divides_what_was_there_from_what_came() {
    for rung in [Rung::Namespaces, Rung::Landlock] {
        for who in Who::at(rung) {
            let world = World::new(who);
            world.file("sub/x", "");
            for round in 0..20 {
                let before = world.file(&format!("sub/before{round}"), "");
                // Without the wait for the clock, half of them would have the same time.
                fs::metadata(&before).unwrap();
                let before = changed(&world.file(&format!("sub/before{round}"), "again"));
                let answer = world.run(&FenceJob { rung, ..world.job(&format!("echo > sub/after{round}")) });
                let after = changed(&world.workspace.join(format!("sub/after{round}")));
                let began = answer.began.unwrap();
                assert!(before < began && began <= after, "{rung:?} {who:?} {before:?} {began:?} {after:?}");
            }
        }
    }
}

fn changed(path: &std::path::Path) -> FileTime {
    let meta = fs::metadata(path).unwrap();
    FileTime(meta.ctime(), u32::try_from(meta.ctime_nsec()).unwrap())
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_command_is_talked_with_until_it_hears_the_end() {
    for rung in [Rung::Landlock, Rung::Namespaces] {
        for who in here(rung) {
            let world = World::new(who);
            let script = "while read line; do echo \"heard $line\"; done; echo bye >&2; exit 3";
            let (process, socket) = world.fence().converse(&FenceJob { rung, ..world.job(script) }).unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            let waiting = std::thread::spawn(move || {
                let mut said = Vec::new();
                let ended = process.wait(&mut |_, piece| said.extend_from_slice(piece)).unwrap();
                (ended.exit, said)
            });
            let mut heard = BufReader::new(&socket);
            for word in ["one", "two"] {
                writeln!(&socket, "{word}").unwrap();
                let mut line = String::new();
                heard.read_line(&mut line).unwrap();
                assert_eq!(line, format!("heard {word}\n"), "{who:?} {rung:?}");
            }
            socket.shutdown(Shutdown::Write).unwrap();
            // Its end is heard, so nobody else holds the other end.
            assert_eq!(heard.read_line(&mut String::new()).unwrap(), 0, "{who:?} {rung:?}");
            assert_eq!(waiting.join().unwrap(), (CommandExit::Code(3), b"bye\n".to_vec()), "{who:?} {rung:?}");
        }
    }
}

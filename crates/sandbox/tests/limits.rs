//! Programs under limits: behind their walls they read a list and start nothing, and they end when they are told to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    path::Path,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use haft_sandbox::{
    fence::{CommandExit, CommandStream},
    limits::{LimitsError, OutputListener, ProgramSpec, ProgramStopper, Walls, run},
};

fn order(folder: &Path, words: &[&str], walls: Walls) -> ProgramSpec {
    ProgramSpec {
        program: words[0].into(),
        arguments: words[1..].iter().map(Into::into).collect(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".into())],
        folder: folder.to_owned(),
        walls,
        cpu_seconds: 10,
    }
}

fn alone(readable: &[&Path]) -> Walls {
    Walls::Alone { readable: readable.iter().map(|path| path.to_path_buf()).collect() }
}

#[derive(Default)]
struct Heard {
    said: Vec<u8>,
    complaints: Vec<u8>,
}

impl OutputListener for Heard {
    fn hear(&mut self, stream: CommandStream, bytes: &[u8]) {
        match stream {
            CommandStream::Stdout => self.said.extend_from_slice(bytes),
            CommandStream::Stderr => self.complaints.extend_from_slice(bytes),
        }
    }
}

/// Stops the program as soon as it says something.
struct Stops(ProgramStopper);

impl OutputListener for Stops {
    fn hear(&mut self, _: CommandStream, _: &[u8]) {
        self.0.stop();
    }
}

/// How long the pieces are.
#[derive(Default)]
struct Lengths(Vec<usize>);

impl OutputListener for Lengths {
    fn hear(&mut self, _: CommandStream, bytes: &[u8]) {
        self.0.push(bytes.len());
    }
}

/// Runs it and waits for its end.
fn waited<L: OutputListener>(
    order: ProgramSpec,
    stopper: &ProgramStopper,
    listener: L,
) -> (Result<CommandExit, LimitsError>, L) {
    let (tell, told) = channel();
    run(order, stopper.clone(), listener, move |listener, exit| tell.send((exit, listener)).unwrap()).unwrap();
    told.recv().unwrap()
}

/// How it ended, what it said and what it complained about.
fn ran(order: ProgramSpec) -> (CommandExit, String, String) {
    let (exit, Heard { said, complaints }) = waited(order, &ProgramStopper::new().unwrap(), Heard::default());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (exit.unwrap(), text(said), text(complaints))
}

#[test]
fn behind_walls_only_the_list_is_read_and_nothing_is_written() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&inside, &outside] {
        fs::write(folder.path().join("file"), "text\n").unwrap();
    }
    let walls = || alone(&[inside.path()]);
    let secret = outside.path().join("file");
    let (exit, said, _) = ran(order(inside.path(), &["/bin/cat", "file"], walls()));
    assert_eq!((exit, said.as_str()), (CommandExit::Code(0), "text\n"));
    for path in [secret.to_str().unwrap(), "/etc/shadow", "/proc/1/environ"] {
        let (exit, said, _) = ran(order(inside.path(), &["/bin/cat", path], walls()));
        assert_eq!((exit, said.as_str()), (CommandExit::Code(1), ""), "{path}");
    }
    for write in [&["/usr/bin/touch", "new"][..], &["/bin/rm", "file"], &["/bin/ln", "-s", "x", "link"]] {
        let (exit, ..) = ran(order(inside.path(), write, walls()));
        assert_ne!(exit, CommandExit::Code(0), "{write:?}");
    }
    assert_eq!(fs::read_dir(inside.path()).unwrap().count(), 1);
    // Without walls it is what its user may.
    let open = order(inside.path(), &["/bin/cat", secret.to_str().unwrap()], Walls::Open);
    assert_eq!(ran(open).1, "text\n");
}

#[test]
fn behind_walls_nothing_else_is_started_and_haft_itself_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["/bin/sh", "-c", "/bin/true && echo started"];
    let (exit, said, complaints) = ran(order(folder.path(), &words, alone(&[])));
    assert!(
        exit != CommandExit::Code(0) && said.is_empty() && complaints.contains("fork"),
        "{exit:?} {said} {complaints}"
    );
    assert_eq!(ran(order(folder.path(), &words, Walls::Open)).1, "started\n");
}

#[test]
fn variables_and_standard_input_are_not_inherited() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ran(order(folder.path(), &["/usr/bin/env"], Walls::Open)).1, "PATH=/usr/bin:/bin\n");
    assert_eq!(
        ran(order(folder.path(), &["/bin/cat"], alone(&[]))),
        (CommandExit::Code(0), String::new(), String::new())
    );
}

#[test]
fn a_run_that_is_stopped_ends_with_what_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let stopper = ProgramStopper::new().unwrap();
    let words = ["/bin/sh", "-c", "sleep 1000 & echo begun; wait"];
    let (exit, _) = waited(order(folder.path(), &words, Walls::Open), &stopper, Stops(stopper.clone()));
    assert_eq!(exit.unwrap(), CommandExit::Stopped);
    // What was stopped before it began ends at once.
    let (exit, _) = waited(order(folder.path(), &["/bin/sleep", "1000"], alone(&[])), &stopper, Heard::default());
    assert_eq!(exit.unwrap(), CommandExit::Stopped);
}

#[test]
fn what_is_left_behind_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["/bin/sh", "-c", "sleep 1000 & echo $!"];
    let (exit, said, _) = ran(order(folder.path(), &words, Walls::Open));
    assert_eq!(exit, CommandExit::Code(0));
    let left = Path::new("/proc").join(said.trim());
    let is_gone = || !left.exists() || fs::read_to_string(left.join("stat")).is_ok_and(|stat| stat.contains(") Z "));
    let begun = Instant::now();
    while !is_gone() && begun.elapsed() < Duration::from_secs(10) {
        thread::yield_now();
    }
    assert!(is_gone(), "{said} lives on");
}

#[test]
fn a_flood_is_heard_whole_and_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["/usr/bin/head", "-c", "50000000", "/dev/zero"];
    let (exit, Lengths(lengths)) =
        waited(order(folder.path(), &words, alone(&[])), &ProgramStopper::new().unwrap(), Lengths::default());
    assert!(lengths.iter().all(|length| *length <= 64 << 10));
    assert_eq!((exit.unwrap(), lengths.iter().sum::<usize>()), (CommandExit::Code(0), 50_000_000));
}

#[test]
fn what_does_not_exist_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = order(folder.path(), &["/nowhere/program"], alone(&[]));
    let (refused, _) = waited(missing, &ProgramStopper::new().unwrap(), Heard::default());
    assert!(refused.unwrap_err().to_string().contains("/nowhere/program"));
}

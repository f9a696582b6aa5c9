//! Many processes on one store: one wins, the dead are followed, the living are left alone, and nothing is lost.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use haft_runtime::{AnswerReceipt, CallId, CallState, ClaimResult, Journal, Questions};
use haft_store::Store;
use tempfile::TempDir;

use crate::{
    database::is_elsewhere,
    samples::{Answering, answered, first, grant, house, new_store, open, opened, question, scope},
};

const PROCESSES: usize = 16;
const SOON: Duration = Duration::from_secs(30);

/// Another process on the same store, ready to do what it was told.
pub(crate) struct Contender {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Contender {
    pub(crate) fn start(folder: &TempDir, what: &str, id: &str) -> Self {
        let mut contender = Self::spawn(command(folder, what, id));
        assert_eq!(contender.line(), "ready");
        contender
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A copy that was just made is busy until a child that another test has just forked execs.
        let patience = Instant::now() + SOON;
        let mut child = loop {
            match command.spawn() {
                Err(err) if err.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < patience => {
                    std::thread::yield_now();
                }
                spawned => break spawned.unwrap(),
            }
        };
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, lines: BufReader::new(stdout) }
    }

    pub(crate) fn go(&mut self) {
        self.stdin.write_all(b"!").unwrap();
    }

    pub(crate) fn lines_until(&mut self, last: &str) -> Vec<String> {
        std::iter::repeat_with(|| self.line()).take_while(|line| line != last).collect()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        assert!(read > 0, "the other process has ended");
        line.trim().to_owned()
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn contend() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/contend")
}

fn command(folder: &TempDir, what: &str, id: &str) -> Command {
    command_of(&contend(), folder, what, id)
}

#[expect(clippy::disallowed_methods, reason = "the other process of the test is the test's own example")]
fn command_of(program: &Path, folder: &TempDir, what: &str, id: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(folder.path().join("data")).arg(what).arg(id);
    command
}

/// Starts them all, lets them go at once, and counts who won.
fn race(folder: &TempDir, what: &str, id: &str) -> usize {
    let mut contenders: Vec<_> = (0..PROCESSES).map(|_| Contender::start(folder, what, id)).collect();
    contenders.iter_mut().for_each(Contender::go);
    let lines: Vec<String> = contenders.iter_mut().map(Contender::line).collect();
    assert!(lines.iter().all(|line| line == "won" || line == "lost"), "{lines:?}");
    lines.iter().filter(|line| *line == "won").count()
}

#[tokio::test]
async fn the_first_answer_of_many_processes_wins() {
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    let (racing, id) = (folder, call.to_string());
    let (scope, waiting) = (scope(), call.clone());
    let raced = tokio::task::spawn_blocking(move || (race(&racing, "answer", &id), racing));
    let waiting = first(&waiting);
    let (heard, raced) = tokio::join!(store.wait(&scope, &waiting, SOON), raced);
    let (won, _folder) = raced.unwrap();
    assert_eq!(won, 1);
    let winner = heard.unwrap().unwrap();
    let late = store.reply(&scope, &first(&call), &answered("late")).await.unwrap();
    assert_eq!(late, AnswerReceipt::TooLate(winner));
}

#[tokio::test]
async fn a_grant_for_n_uses_is_spent_n_times_by_many_processes() {
    let (folder, store) = new_store().await;
    for uses in [1, 5] {
        let grant = grant(Some(uses));
        store.remember(&scope(), &grant).await.unwrap();
        assert_eq!(race(&folder, "spend", grant.id.as_str()), uses as usize);
        let spent = store.grant(&scope(), &grant.id).await.unwrap().unwrap();
        assert_eq!((spent.used, spent.uses_left), (uses, Some(0)));
        assert!(spent.last_used.is_some_and(|last| last >= grant.created_at));
    }
}

#[tokio::test]
async fn a_waiting_call_is_claimed_only_from_the_dead_and_only_once() {
    let (folder, store) = new_store().await;
    let mut holder = Contender::start(&folder, "hold", "");
    let ids = holder.lines_until("held");
    let waiting = CallId::parse(&ids[2]).unwrap();
    assert!(store.owner_is_alive(&scope(), &waiting).await.unwrap());
    assert_eq!(race(&folder, "claim", &ids[2]), 0);
    drop(holder);
    wait_for_the_end_of_owner(&store, &waiting).await;
    assert_eq!(race(&folder, "claim", &ids[2]), 1);
    // The call was not waiting, so nobody may claim it.
    assert_eq!(store.claim(&scope(), &CallId::parse(&ids[1]).unwrap()).await.unwrap(), ClaimResult::NotClaimed);
}

/// A lock goes with its process, a lease runs out soon after.
async fn wait_for_the_end_of_owner(store: &Store, call: &CallId) {
    let patience = Instant::now() + SOON;
    while store.owner_is_alive(&scope(), call).await.unwrap() {
        assert!(Instant::now() < patience, "the owner of {call} still counts as alive");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_of_the_dead_are_taken_over_exactly_once_and_those_of_the_living_never() {
    let (folder, store) = new_store().await;
    let mine = opened(CallState::Executing);
    store.record(&scope(), mine).await.unwrap();
    let mut holder = Contender::start(&folder, "hold", "");
    let held = holder.lines_until("held");
    assert!(store.abandoned(&house()).await.unwrap().is_empty());
    drop(holder);
    wait_for_the_end_of_owner(&store, &CallId::parse(&held[0]).unwrap()).await;

    let mut recoverers: Vec<_> = (0..PROCESSES).map(|_| Contender::start(&folder, "abandoned", "")).collect();
    recoverers.iter_mut().for_each(Contender::go);
    // All of them live until the last is done, so that nobody takes over what another has taken.
    let mut taken: Vec<String> = recoverers.iter_mut().flat_map(|one| one.lines_until("done")).collect();
    taken.sort();
    assert_eq!(taken, held[..2]);
}

#[tokio::test]
async fn waiting_is_woken_by_another_process() {
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    let mut other = Contender::start(&folder, "answer", call.as_str());
    let scope = scope();
    let question = first(&call);
    let wait = store.wait(&scope, &question, SOON);
    let answer = async {
        tokio::task::yield_now().await;
        other.go();
    };
    let (heard, ()) = tokio::join!(wait, answer);
    assert!(heard.unwrap().is_some());

    let running = opened(CallState::Executing);
    let call = running.call.clone();
    store.record(&scope, running).await.unwrap();
    let stopper = async { Contender::start(&folder, "stop", call.as_str()).line() };
    let (stopped, line) = tokio::join!(tokio::time::timeout(SOON, store.stop_wanted(&scope, &call)), stopper);
    stopped.unwrap();
    assert_eq!(line, "true");
}

#[tokio::test]
async fn nothing_acknowledged_is_missing_after_kill() {
    let (folder, store) = new_store().await;
    store.close().await.unwrap();
    let mut acknowledged = HashSet::new();
    for _ in 0..3 {
        let mut writer = Contender::start(&folder, "write", "");
        acknowledged.extend(std::iter::repeat_with(|| writer.line()).take(300));
        writer.child.kill().unwrap();
        // What was acknowledged and printed before the end counts too.
        acknowledged.extend(writer.lines.by_ref().lines().map_while(Result::ok).filter(|line| line.len() == 35));
    }
    let store = open(&folder).await;
    for id in &acknowledged {
        let call = CallId::parse(id).unwrap();
        assert!(Journal::find(&store, &scope(), &call).await.unwrap().is_some(), "{id} is missing");
        assert_eq!(store.events(&scope(), &call).await.unwrap().len(), 1);
    }
    let last = CallId::parse(acknowledged.iter().max().unwrap()).unwrap();
    wait_for_the_end_of_owner(&store, &last).await;
    let taken = store.abandoned(&house()).await.unwrap();
    assert!(taken.len() >= acknowledged.len());
}

#[tokio::test]
async fn a_database_that_may_not_be_written_is_refused() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    store.close().await.unwrap();
    let data = folder.path().join("data");
    let database = data.join("haft.db");
    let before = std::fs::read(&database).unwrap();
    for (path, mode) in [(folder.path().to_owned(), 0o755), (data.clone(), 0o555), (database.clone(), 0o444)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // A copy that everybody may run, wherever the build output lies.
    let program = folder.path().join("contend");
    std::fs::copy(contend(), &program).unwrap();
    let mut as_nobody = command_of(&program, &folder, "open", "");
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0 {
        // Root may write everything, so somebody else has to try.
        as_nobody.uid(65_534).gid(65_534);
    }
    let line = Contender::spawn(as_nobody).line();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(line.starts_with("refused:") && line.contains("written"), "{line}");
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

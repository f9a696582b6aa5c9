//! `kill -9` at times spread over the whole length of a call: nothing acknowledged is lost, nothing happens twice.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::{
    fs,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{
    Answer, AnswerReceipt, Answered, CallId, Caller, PermittedAnswer, QuestionId, Questions, Scope, Source,
};
use haft_store::{Durability, Store};
use jiff::Timestamp;
use serde_json::{Value, json};
use support::{Fixture, Picture, Ran, Running, events, id, text};

/// Kills spread evenly over the length of a call.
const KILLS: u32 = 200;
/// So many of them must come after the call's first durable row.
const AFTER_THE_ROW: u32 = 50;
/// Files in the folder that is deleted.
const FILES: u32 = 300;
/// The call that deletes it.
const DELETE: [&str; 6] =
    ["call", "delete_file", r#"{"path":"folder","recursive":true}"#, "--json", "--auto-approve", "all"];
/// An edit adds one mark, so the file itself counts how often edits have happened.
const MARK: &str = r#"{"path":"marks.txt","old":"end","new":"+end"}"#;

#[test]
fn a_killed_delete_is_whole_or_absent() {
    let _alone = alone();
    kill_deletes(&Fixture::new(), KILLS, AFTER_THE_ROW);
}

#[test]
fn a_killed_delete_on_another_file_system_is_whole_or_absent() {
    let _alone = alone();
    match Fixture::across() {
        Some(fixture) => kill_deletes(&fixture, 40, 10),
        None => println!("skipped: /dev/shm is not another file system to write to"),
    }
}

/// Kills deletes of a folder while others wait and work in the same workspace.
fn kill_deletes(fixture: &Fixture, kills: u32, after_the_row: u32) {
    for file in 0..FILES {
        fixture.put(&format!("folder/{}/file{file}", file % 7), format!("content {file}\n"));
    }
    let others = Neighbours::start(fixture);
    let (old, journal) = (fixture.picture(), Calls::now(fixture));
    let mut deletes = Deletes { fixture, old, journal, tally: Tally::default() };
    let length = kill_evenly(&mut deletes, kills);
    // Where the row comes late, the even times may not hit enough of what follows it.
    for turn in 0..kills {
        if deletes.tally.after_the_row >= after_the_row {
            break;
        }
        deletes.killed(length.mul_f64(0.5 + 0.6 * f64::from(turn * 7 % kills) / f64::from(kills)));
    }
    println!("length {length:?}, {:?}", deletes.tally);
    assert!(deletes.tally.kills >= kills && deletes.tally.after_the_row >= after_the_row, "{:?}", deletes.tally);
    others.end_well(fixture);
}

#[test]
fn a_killed_edit_happens_once_or_not_at_all() {
    let _alone = alone();
    kill_edits(&Fixture::new());
    if let Some(fixture) = Fixture::across() {
        kill_edits(&fixture);
    }
}

fn kill_edits(fixture: &Fixture) {
    fixture.put("marks.txt", "marks: end\n");
    let others = Neighbours::start(fixture);
    let mut edits = Edits { fixture, marks: 0, journal: Calls::now(fixture), tally: Tally::default() };
    let length = kill_evenly(&mut edits, 40);
    println!("length {length:?}, {:?}", edits.tally);
    assert_eq!(edits.tally.kills, 40);
    others.end_well(fixture);
}

#[test]
fn after_a_killed_approver_the_call_ends_and_happens_once_at_most() {
    let _alone = alone();
    let fixture = Fixture::new();
    fixture.put("marks.txt", "marks: end\n");
    let mut approvals = Approvals { fixture: &fixture, marks: 0, after_the_answer: 0, stuck: Vec::new() };
    let length = kill_evenly(&mut approvals, 40);
    println!("length {length:?}, {} of 40 killed after the answer was stored", approvals.after_the_answer);
    let stuck = approvals.stuck;
    assert!(stuck.is_empty(), "{} calls were answered and wait for ever, the first: {:?}", stuck.len(), stuck[0]);
}

/// What a command has done to many files is brought in by another process than the one it ran in.
#[test]
fn after_a_killed_approver_what_a_command_did_is_there_whole_or_not_at_all() {
    let _alone = alone();
    let fixture = Fixture::new();
    for file in 0..60 {
        fixture.put(&format!("old/{file}"), format!("{file}\n"));
    }
    let old = fixture.picture();
    let mut commands = Commands { fixture: &fixture, old, after_the_answer: 0, acted: 0 };
    let length = kill_evenly(&mut commands, 32);
    let Commands { after_the_answer, acted, .. } = commands;
    println!("length {length:?}, {after_the_answer} of 32 killed after the answer was stored, {acted} happened");
    assert!(after_the_answer > 0, "no kill came after the answer");
}

/// What a kill leaves between the stored answer and the first step of whoever gave it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_giver_died_is_carried_out_by_the_next() {
    let fixture = Fixture::new();
    let answers = [(Answer::Approve { paths: None }, "success"), (Answer::Reject { message: None }, "rejected")];
    for (turn, (answer, status)) in answers.into_iter().enumerate() {
        let path = format!("answered{turn}.txt");
        let call = fixture.pending("write_file", &json!({"path": path, "content": "once\n"}));
        let scope = Scope::local(fixture.workspace.to_string_lossy());
        let store = Store::open(&fixture.data, Durability::Normal).await.unwrap();
        let answered = Answered {
            answer,
            by: Caller::owner("tester", scope.clone(), Source::Cli).who(),
            source: Source::Cli,
            at: Timestamp::now(),
        };
        let question = QuestionId { call: CallId::parse(&call).unwrap(), number: 1 };
        let taken = Questions::answer(&store, &scope, &question, &PermittedAnswer::unchecked(answered)).await.unwrap();
        assert_eq!(taken, AnswerReceipt::Taken);
        store.close().await.unwrap();
        // The next start may carry it on, or whoever answers again, or whoever waits for it.
        let again = fixture.run(&["approve", &call, "--json"]);
        let waited = fixture.run(&["wait", &call, "--timeout", "5", "--json"]);
        let story = fixture.story(&call);
        let words = format!("approve again: {}, wait: {}", again.said(), waited.said());
        assert_eq!(story["status"], status, "answered, and waits for ever; {words}");
        assert_eq!(fixture.path(&path).exists(), status == "success");
    }
}

#[test]
fn when_a_waiting_owner_is_killed_the_answer_still_counts_once() {
    let _alone = alone();
    let fixture = Fixture::new();
    fixture.put("marks.txt", "marks: end\n");
    let mut owners = Owners { fixture: &fixture, marks: 0, acted: 0 };
    let length = kill_evenly(&mut owners, 20);
    println!("length {length:?}, {} of 20 happened", owners.acted);
}

/// The times are measured, so these tests do not run at once.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is done again and again, and killed.
trait Victim {
    /// Lets it run to its end and says how long that took.
    fn undisturbed(&mut self) -> Duration;

    /// Kills it after so long, and looks at what is left.
    fn killed(&mut self, at: Duration);
}

/// Kills at times spread evenly over a little more than the whole length, which is measured again and again because
/// the machine may have other work. Gives the last length.
fn kill_evenly(victim: &mut impl Victim, kills: u32) -> Duration {
    let mut lengths: Vec<Duration> = (0..5).map(|_| victim.undisturbed()).collect();
    let median = |lengths: &[Duration]| {
        let mut last = lengths[lengths.len() - 5..].to_vec();
        last.sort();
        last[2]
    };
    for turn in 0..kills {
        if turn % 8 == 7 {
            lengths.push(victim.undisturbed());
        }
        // Not in order, so that a change in the machine's pace does not fall on one end of the call alone.
        victim.killed(median(&lengths).mul_f64(1.1 * f64::from(turn * 7 % kills) / f64::from(kills)));
    }
    median(&lengths)
}

struct Deletes<'a> {
    fixture: &'a Fixture,
    old: Picture,
    journal: Calls,
    tally: Tally,
}

impl Deletes<'_> {
    /// Takes a call back, byte for byte.
    fn undo(&mut self, call: &str) {
        let ran = self.fixture.run(&["undo", call, "--yes", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(self.fixture.picture() == self.old, "the undo of {call} did not bring everything back");
        self.journal.newest = id(&ran.json());
    }
}

impl Victim for Deletes<'_> {
    fn undisturbed(&mut self) -> Duration {
        let (took, ran) = timed(|| self.fixture.run(&DELETE));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        self.undo(&id(&ran.json()));
        took
    }

    fn killed(&mut self, at: Duration) {
        let killed = kill_after(Running::start(self.fixture.haft(&DELETE)), at);
        let now = Now::after_recovery(self.fixture, &mut self.journal, &mut self.tally, &killed);
        let (tree, old) = (self.fixture.picture(), &self.old);
        let folder = self.fixture.path("folder");
        let is_new = tree.iter().eq(old.iter().filter(|(path, _)| !path.starts_with(&folder)));
        assert!(is_new || tree == *old, "half a delete: {} of {} paths, {now:?}", tree.len(), old.len());
        assert_eq!(is_new, now.acted(), "{at:?}: the journal tells another story than the tree: {now:?}");
        self.tally.acted += u32::from(is_new);
        if let Some(call) = now.call().filter(|_| is_new) {
            self.undo(&call);
        }
    }
}

struct Edits<'a> {
    fixture: &'a Fixture,
    marks: u32,
    journal: Calls,
    tally: Tally,
}

impl Edits<'_> {
    const EDIT: [&'static str; 6] = ["call", "edit_file", MARK, "--json", "--auto-approve", "all"];
}

impl Victim for Edits<'_> {
    fn undisturbed(&mut self) -> Duration {
        let (took, ran) = timed(|| self.fixture.run(&Self::EDIT));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        self.journal.newest = id(&ran.json());
        self.marks += 1;
        took
    }

    fn killed(&mut self, at: Duration) {
        let killed = kill_after(Running::start(self.fixture.haft(&Self::EDIT)), at);
        let now = Now::after_recovery(self.fixture, &mut self.journal, &mut self.tally, &killed);
        let acted = u32::from(now.acted());
        assert_eq!(marks_in(self.fixture), self.marks + acted, "{at:?}: {now:?}");
        self.tally.acted += acted;
        self.marks += acted;
        assert_eq!(fs::read_dir(&self.fixture.workspace).unwrap().count(), 1, "something was left behind: {now:?}");
    }
}

struct Approvals<'a> {
    fixture: &'a Fixture,
    marks: u32,
    after_the_answer: u32,
    stuck: Vec<(Duration, String, Vec<String>)>,
}

impl Approvals<'_> {
    fn ask(&self) -> String {
        self.fixture.pending("edit_file", &serde_json::from_str(MARK).unwrap())
    }
}

impl Victim for Approvals<'_> {
    fn undisturbed(&mut self) -> Duration {
        let call = self.ask();
        let (took, ran) = timed(|| self.fixture.run(&["approve", &call]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        self.marks += 1;
        took
    }

    fn killed(&mut self, at: Duration) {
        let fixture = self.fixture;
        let call = self.ask();
        let killed = kill_after(Running::start(fixture.haft(&["approve", &call, "--json"])), at);
        self.after_the_answer += u32::from(!fixture.story(&call)["answer"].is_null());
        // Whoever comes next can answer, or learns what was decided; either way the call comes to its end.
        let again = fixture.run(&["approve", &call, "--json"]);
        let story = fixture.story(&call);
        let acted = u32::from(has_acted(&story["outcome"]));
        assert_eq!(marks_in(fixture), self.marks + acted, "{at:?}: {killed:?} {again:?} {story}");
        self.marks += acted;
        if killed.stdout.contains("\"status\":\"success\"") {
            assert_eq!(story["outcome"]["status"], "success", "an acknowledged success was lost: {story}");
        }
        if story["status"] == "pending" {
            self.stuck.push((at, again.said(), events(&story)));
        }
    }
}

struct Commands<'a> {
    fixture: &'a Fixture,
    old: Picture,
    after_the_answer: u32,
    acted: u32,
}

impl Commands<'_> {
    /// It makes, changes, deletes and moves.
    const COMMAND: &'static str = "for i in $(seq 0 19); do echo more >> old/$i; rm old/2$i old/3$i; \
        mkdir -p new/$i; echo $i > new/$i/file; done 2>/dev/null; mv old/40 moved; ln -s old/1 link; true";

    fn ask(&self) -> String {
        self.fixture.pending("shell_exec", &json!({"command": Self::COMMAND}))
    }

    fn undo(&self, call: &str) {
        let ran = self.fixture.run(&["undo", call, "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(self.fixture.picture() == self.old, "the undo of {call} did not bring everything back");
    }
}

impl Victim for Commands<'_> {
    fn undisturbed(&mut self) -> Duration {
        let call = self.ask();
        let (took, ran) = timed(|| self.fixture.run(&["approve", &call]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        self.undo(&call);
        took
    }

    fn killed(&mut self, at: Duration) {
        let fixture = self.fixture;
        let call = self.ask();
        let staged = fixture.json(&["changes", &call])["changes"].as_array().unwrap().len();
        kill_after(Running::start(fixture.haft(&["approve", &call, "--json"])), at);
        // Any next start recovers.
        let answered = !fixture.story(&call)["answer"].is_null();
        self.after_the_answer += u32::from(answered);
        let again = fixture.run(&["approve", &call, "--json"]);
        let story = fixture.story(&call);
        let changes = story["outcome"]["changes"].as_array().cloned().unwrap_or_default();
        let committed = changes.iter().filter(|change| change["state"] == "committed").count();
        assert!(committed == 0 || committed == staged, "{at:?}: {committed} of {staged}: {again:?} {story}");
        assert_ne!(story["status"], "pending", "{at:?}: {again:?} {story}");
        if committed == 0 {
            assert!(fixture.picture() == self.old, "{at:?}: half of it is there: {story}");
            return;
        }
        self.acted += 1;
        self.undo(&call);
    }
}

struct Owners<'a> {
    fixture: &'a Fixture,
    marks: u32,
    acted: u32,
}

impl Owners<'_> {
    /// A process that waits for the answer to its own call.
    fn start(&self) -> (Running, String) {
        let edit = ["call", "edit_file", MARK, "--json", "--wait", "100"];
        (Running::start(self.fixture.haft(&edit)), self.fixture.asked(&[]))
    }
}

impl Victim for Owners<'_> {
    fn undisturbed(&mut self) -> Duration {
        let (owner, call) = self.start();
        let (took, ran) = timed(|| self.fixture.run(&["approve", &call]));
        assert_eq!((ran.code, owner.finish().code), (Some(0), Some(0)), "{ran:?}");
        self.marks += 1;
        took
    }

    fn killed(&mut self, at: Duration) {
        let (owner, call) = self.start();
        let approver = Running::start(self.fixture.haft(&["approve", &call, "--json"]));
        let owner = kill_after(owner, at);
        let approved = approver.finish();
        let story = self.fixture.story(&call);
        let outcome = &story["outcome"];
        let acted = u32::from(has_acted(outcome));
        assert_eq!(marks_in(self.fixture), self.marks + acted, "{at:?}: {owner:?} {approved:?} {story}");
        self.marks += acted;
        self.acted += acted;
        let succeeded = outcome["status"] == "success";
        assert!(succeeded || outcome["error"]["code"] == "INTERRUPTED", "{at:?}: {outcome}");
        assert_eq!(approved.code, Some(i32::from(!succeeded)), "{at:?}: {approved:?} {story}");
    }
}

fn marks_in(fixture: &Fixture) -> u32 {
    let text = fixture.text("marks.txt").unwrap();
    let marks = text.chars().filter(|letter| *letter == '+').count();
    assert_eq!(text, format!("marks: {}end\n", "+".repeat(marks)), "half an edit");
    marks.try_into().unwrap()
}

/// Whether an ended call is in the workspace, as its outcome tells it.
fn has_acted(outcome: &Value) -> bool {
    let changes = || outcome["changes"].as_array().into_iter().flatten();
    outcome["status"] == "success" || changes().any(|change| change["state"] != "staged")
}

/// What the kills have hit.
#[derive(Debug, Default)]
struct Tally {
    kills: u32,
    /// The program had ended by itself when the kill came.
    too_late: u32,
    /// The journal knew the call.
    recorded: u32,
    /// The call had begun to act.
    after_the_row: u32,
    /// The program had printed its envelope.
    acknowledged: u32,
    /// What recovery ended.
    interrupted: u32,
    /// What was in the workspace.
    acted: u32,
}

/// How far the journal has been read: at most one call may come with each start.
struct Calls {
    newest: String,
}

impl Calls {
    fn now(fixture: &Fixture) -> Self {
        Self { newest: text(&fixture.json(&["log", "--limit", "1"])[0]["callId"]) }
    }

    /// The call that was added since the last look, if there is one.
    fn added(&mut self, rows: &[Value]) -> Option<Value> {
        let added: Vec<&Value> = rows.iter().take_while(|row| row["callId"] != self.newest).collect();
        assert!(added.len() <= 1, "one start made more than one call: {added:?}");
        let row = added.first().copied().cloned()?;
        self.newest = text(&row["callId"]);
        Some(row)
    }
}

/// What the journal says of a killed call; nothing when it does not know it.
#[derive(Debug)]
struct Now(Option<Value>);

impl Now {
    /// The next start of the program recovers; then everything must be told.
    fn after_recovery(fixture: &Fixture, journal: &mut Calls, tally: &mut Tally, killed: &Ran) -> Self {
        let row = journal.added(fixture.json(&["log", "--limit", "4"]).as_array().unwrap());
        if let Some(row) = &row {
            assert_eq!(row["state"], "ended", "left half-way: {row}");
        }
        let story = row.as_ref().map(|row| fixture.story(&text(&row["callId"])));
        tally.kills += 1;
        tally.too_late += u32::from(killed.signal.is_none());
        tally.recorded += u32::from(row.is_some());
        if let Some(story) = &story {
            let started = events(story).contains(&"tool.started".to_owned());
            tally.after_the_row += u32::from(killed.signal.is_some() && started);
            tally.interrupted += u32::from(story["outcome"]["error"]["code"] == "INTERRUPTED");
        }
        if killed.stdout.contains('\n') {
            tally.acknowledged += 1;
            let envelope = killed.json();
            assert_eq!(envelope["status"], "success", "{envelope}");
            let recorded = row.unwrap_or_else(|| panic!("an acknowledged call was lost: {envelope}"));
            assert_eq!((&recorded["callId"], &recorded["status"]), (&envelope["tool_call_id"], &json!("success")));
        }
        Self(story)
    }

    fn call(&self) -> Option<String> {
        self.0.as_ref().map(|story| text(&story["callId"]))
    }

    /// Whether the call has changed the workspace, as the journal tells it.
    fn acted(&self) -> bool {
        let Some(story) = &self.0 else { return false };
        let outcome = &story["outcome"];
        let acted = has_acted(outcome);
        if outcome["status"] != "success" {
            assert_eq!(outcome["error"]["code"], "INTERRUPTED", "{story}");
            let words = text(&outcome["error"]["message"]);
            assert_eq!(words.contains("was complete"), acted, "the sentence does not fit: {words}");
        }
        assert_eq!(outcome["undoable"], acted, "{story}");
        acted
    }
}

/// Other processes with calls of their own in the same workspace: one waits for an answer, one is at work.
struct Neighbours {
    waiting: Running,
    call: String,
    working: Running,
}

impl Neighbours {
    fn start(fixture: &Fixture) -> Self {
        let input = r#"{"path":"neighbour/file.txt","content":"mine\n","createDirs":true}"#;
        let waiting = Running::start(fixture.haft(&["call", "write_file", input, "--json", "--wait", "600"]));
        let call = fixture.asked(&[]);
        let input = json!({"callId": call, "timeoutMs": 240_000}).to_string();
        let working = Running::start(fixture.haft(&["call", "wait_call", &input, "--json"]));
        support::until("call at work", || {
            let rows = fixture.json(&["log"]);
            rows.as_array().unwrap().iter().any(|row| row["state"] == "preparing").then_some(())
        });
        Self { waiting, call, working }
    }

    /// Both are what they were: the answer reaches the one, and its end the other.
    fn end_well(self, fixture: &Fixture) {
        let rows = fixture.json(&["log", "--limit", "10000"]);
        let unfinished = rows.as_array().unwrap().iter().filter(|row| row["state"] != "ended");
        let mut unfinished: Vec<String> = unfinished.map(|row| text(&row["tool"])).collect();
        unfinished.sort();
        assert_eq!(unfinished, ["wait_call", "write_file"], "only the neighbours' calls are unfinished");
        assert_eq!(fixture.story(&self.call)["status"], "pending", "somebody touched a live call");
        let approved = fixture.run(&["approve", &self.call, "--json"]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        let waited = self.waiting.finish();
        assert_eq!((waited.code, id(&waited.json())), (Some(0), self.call.clone()), "{waited:?}");
        assert_eq!(fixture.text("neighbour/file.txt").as_deref(), Some("mine\n"));
        let worked = self.working.finish();
        assert_eq!(worked.code, Some(0), "{worked:?}");
        assert_eq!(worked.json()["result"]["structured"]["status"], "success", "{worked:?}");
    }
}

/// Lets the program run for so long and no longer.
fn kill_after(mut running: Running, at: Duration) -> Ran {
    running.ends_within(at);
    running.kill()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let done = work();
    (started.elapsed(), done)
}

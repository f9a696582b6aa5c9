//! `kill -9` at times spread over the whole length of a call: nothing acknowledged is lost, nothing happens twice.

mod support;

use std::{
    fs,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{Answer, AnswerReceipt, Answered, CallId, Questions, Scope, Source};
use haft_store::{Store, Sync};
use jiff::Timestamp;
use serde_json::{Value, json};
use support::{ALL, Fixture, Picture, Ran, Running, events, id, text};

/// Kills spread evenly over the length of a call.
const KILLS: u32 = 200;
/// So many of them must come after the call's first durable row.
const AFTER_THE_ROW: u32 = 50;
/// Files in the folder that is deleted.
const FILES: u32 = 400;

/// The times are measured, so these tests do not run at once.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_killed_delete_is_whole_or_absent() {
    let _alone = alone();
    let fixture = Fixture::new();
    kill_deletes(&fixture, KILLS, AFTER_THE_ROW);
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
    let old = fixture.picture();
    let delete = ["call", "delete_file", r#"{"path":"folder","recursive":true}"#, "--json", "--auto-approve", "all"];
    let undisturbed = measure(5, || {
        let (took, ran) = timed(|| fixture.run(&delete));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        undo(fixture, &id(&ran.json()), &old);
        took
    });
    let mut tally = Tally::default();
    let mut journal = Calls::now(fixture);
    for at in spread(undisturbed, kills) {
        one_killed_delete(fixture, &delete, at, &old, (&mut journal, &mut tally));
    }
    // Where the row comes late, the even times may not hit enough of what follows it.
    for at in late(undisturbed, kills) {
        if tally.after_the_row >= after_the_row {
            break;
        }
        one_killed_delete(fixture, &delete, at, &old, (&mut journal, &mut tally));
    }
    println!("undisturbed {undisturbed:?}, {tally:?}");
    assert!(tally.kills >= kills && tally.after_the_row >= after_the_row, "{tally:?}");
    others.end_well(fixture);
}

fn one_killed_delete(
    fixture: &Fixture,
    delete: &[&str],
    at: Duration,
    old: &Picture,
    (journal, tally): (&mut Calls, &mut Tally),
) {
    let killed = kill_after(Running::start(fixture.haft(delete)), at);
    let now = after_recovery(fixture, journal, tally, &killed);
    let tree = fixture.picture();
    let gone: Picture = old.clone().into_iter().filter(|(path, _)| !path.starts_with(fixture.path("folder"))).collect();
    assert!(tree == *old || tree == gone, "half a delete: {} of {} paths, {now:?}", tree.len(), old.len());
    let deleted = tree == gone;
    assert_eq!(deleted, now.acted(), "{at:?}: the journal tells another story than the tree: {now:?}");
    tally.acted += u32::from(deleted);
    if deleted {
        journal.newest = undo(fixture, &now.call().unwrap(), old);
    }
}

#[test]
fn a_killed_edit_happens_once_or_not_at_all() {
    let _alone = alone();
    let fixture = Fixture::new();
    kill_edits(&fixture);
    if let Some(fixture) = Fixture::across() {
        kill_edits(&fixture);
    }
}

/// Each edit adds one mark, so the file itself counts how often edits have happened.
fn kill_edits(fixture: &Fixture) {
    fixture.put("marks.txt", "marks: end\n");
    let others = Neighbours::start(fixture);
    let edit = ["call", "edit_file", r#"{"path":"marks.txt","old":"end","new":"+end"}"#, "--json"];
    let edit = [&edit[..], ALL].concat();
    let undisturbed = measure(5, || {
        let (took, ran) = timed(|| fixture.run(&edit));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        took
    });
    let mut marks = marks_in(fixture);
    assert_eq!(marks, 5);
    let mut tally = Tally::default();
    let mut journal = Calls::now(fixture);
    for at in spread(undisturbed, 40) {
        let killed = kill_after(Running::start(fixture.haft(&edit)), at);
        let now = after_recovery(fixture, &mut journal, &mut tally, &killed);
        let found = marks_in(fixture);
        assert_eq!(found, marks + u32::from(now.acted()), "{at:?}: {now:?}");
        tally.acted += found - marks;
        marks = found;
        assert_eq!(fs::read_dir(&fixture.workspace).unwrap().count(), 1, "something was left behind: {now:?}");
    }
    println!("undisturbed {undisturbed:?}, {tally:?}");
    assert_eq!(tally.kills, 40);
    others.end_well(fixture);
}

#[test]
fn after_a_killed_approver_the_call_ends_and_happens_once_at_most() {
    let _alone = alone();
    let fixture = Fixture::new();
    fixture.put("marks.txt", "marks: end\n");
    let ask = || fixture.pending("edit_file", &json!({"path": "marks.txt", "old": "end", "new": "+end"}));
    let undisturbed = measure(5, || {
        let call = ask();
        let (took, ran) = timed(|| fixture.run(&["approve", &call]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        took
    });
    let mut marks = marks_in(&fixture);
    let mut stuck = Vec::new();
    let mut after_the_answer = 0;
    for at in spread(undisturbed, 40) {
        let call = ask();
        let killed = kill_after(Running::start(fixture.haft(&["approve", &call, "--json"])), at);
        let story = fixture.story(&call);
        after_the_answer += u32::from(!story["answer"].is_null());
        // Whoever comes next can answer, or learns what was decided; either way the call comes to its end.
        let again = fixture.run(&["approve", &call, "--json"]);
        let story = fixture.story(&call);
        let outcome = &story["outcome"];
        let acted = outcome["status"] == "success" || outcome["changes"].is_array();
        let found = marks_in(&fixture);
        assert_eq!(found, marks + u32::from(acted), "{at:?}: {killed:?} {again:?} {story}");
        marks = found;
        if killed.stdout.contains("\"status\":\"success\"") {
            assert_eq!(outcome["status"], "success", "an acknowledged success was lost: {story}");
        }
        if story["status"] == "pending" {
            stuck.push((at, again.said(), events(&story)));
        }
    }
    println!("undisturbed {undisturbed:?}, {after_the_answer} of 40 killed after the answer was stored");
    assert!(stuck.is_empty(), "{} calls were answered and wait for ever, the first: {:?}", stuck.len(), stuck[0]);
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
        let store = Store::open(&fixture.data, Sync::Normal).await.unwrap();
        let answered = Answered { answer, by: "tester".to_owned(), source: Source::Cli, at: Timestamp::now() };
        let taken = Questions::answer(&store, &scope, &CallId::parse(&call).unwrap(), &answered).await.unwrap();
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
    let edit = ["call", "edit_file", r#"{"path":"marks.txt","old":"end","new":"+end"}"#, "--json", "--wait", "100"];
    let undisturbed = measure(3, || {
        let owner = Running::start(fixture.haft(&edit));
        let call = fixture.asked(&[]);
        let (took, ran) = timed(|| fixture.run(&["approve", &call]));
        assert_eq!((ran.code, owner.finish().code), (Some(0), Some(0)), "{ran:?}");
        took
    });
    let mut marks = marks_in(&fixture);
    let mut acted_in_all = 0;
    for at in spread(undisturbed, 20) {
        let owner = Running::start(fixture.haft(&edit));
        let call = fixture.asked(&[]);
        let approver = Running::start(fixture.haft(&["approve", &call, "--json"]));
        let owner = kill_after(owner, at);
        let approved = approver.finish();
        let story = fixture.story(&call);
        let outcome = &story["outcome"];
        let acted = outcome["status"] == "success" || outcome["changes"].is_array();
        assert_eq!(marks_in(&fixture), marks + u32::from(acted), "{at:?}: {owner:?} {approved:?} {story}");
        marks += u32::from(acted);
        acted_in_all += u32::from(acted);
        let recorded = (&outcome["status"], &outcome["error"]["code"]);
        let expected = if outcome["status"] == "success" { Some(0) } else { Some(1) };
        assert!(outcome["status"] == "success" || outcome["error"]["code"] == "INTERRUPTED", "{at:?}: {recorded:?}");
        assert_eq!(approved.code, expected, "{at:?}: {approved:?} {story}");
    }
    println!("undisturbed {undisturbed:?}, {acted_in_all} of 20 happened");
}

fn marks_in(fixture: &Fixture) -> u32 {
    let text = fixture.text("marks.txt").unwrap();
    let marks = text.chars().filter(|letter| *letter == '+').count();
    assert_eq!(text, format!("marks: {}end\n", "+".repeat(marks)), "half an edit");
    marks.try_into().unwrap()
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

/// How far the journal has been read: exactly one call may come with each start.
struct Calls {
    newest: String,
}

impl Calls {
    fn now(fixture: &Fixture) -> Self {
        Self { newest: text(&fixture.json(&["log", "--limit", "1"])[0]["id"]) }
    }

    /// The call that was added since the last look, if there is one.
    fn added(&mut self, rows: &[Value]) -> Option<Value> {
        let added: Vec<&Value> = rows.iter().take_while(|row| row["id"] != self.newest).collect();
        assert!(added.len() <= 1, "one start made more than one call: {added:?}");
        let row = added.first().copied().cloned()?;
        self.newest = text(&row["id"]);
        Some(row)
    }
}

/// What the journal says of a killed call.
#[derive(Debug)]
struct Now {
    row: Option<Value>,
    story: Option<Value>,
}

impl Now {
    fn call(&self) -> Option<String> {
        self.row.as_ref().map(|row| text(&row["id"]))
    }

    /// Whether the call has changed the workspace, as the journal tells it.
    fn acted(&self) -> bool {
        let Some(story) = &self.story else { return false };
        let outcome = &story["outcome"];
        match outcome["status"].as_str() {
            Some("success") => true,
            Some("error") => {
                assert_eq!(outcome["error"]["code"], "INTERRUPTED", "{story}");
                let acted = outcome["changes"].as_array().is_some_and(|changes| !changes.is_empty());
                let words = text(&outcome["error"]["message"]);
                assert_eq!(words.contains("was complete"), acted, "the sentence does not fit: {words}");
                assert_eq!(outcome["undoable"], acted, "{story}");
                acted
            }
            _ => panic!("a call is left half-way: {story}"),
        }
    }
}

/// The next start of the program recovers; then everything must be told.
fn after_recovery(fixture: &Fixture, journal: &mut Calls, tally: &mut Tally, killed: &Ran) -> Now {
    let rows = fixture.json(&["log", "--limit", "4"]);
    let rows = rows.as_array().unwrap();
    let row = journal.added(rows);
    if let Some(row) = &row {
        assert_eq!(row["state"], "ended", "left half-way: {row}");
    }
    let story = row.as_ref().map(|row| fixture.story(&text(&row["id"])));
    tally.kills += 1;
    tally.too_late += u32::from(killed.signal.is_none());
    tally.recorded += u32::from(row.is_some());
    if let Some(story) = &story {
        tally.after_the_row += u32::from(killed.signal.is_some() && events(story).contains(&"tool.started".to_owned()));
        tally.interrupted += u32::from(story["outcome"]["error"]["code"] == "INTERRUPTED");
    }
    if killed.stdout.contains('\n') {
        tally.acknowledged += 1;
        let envelope = killed.json();
        assert_eq!(envelope["status"], "success", "{envelope}");
        let recorded = row.as_ref().unwrap_or_else(|| panic!("an acknowledged call was lost: {envelope}"));
        assert_eq!((&recorded["id"], &recorded["status"]), (&envelope["tool_call_id"], &json!("success")));
    }
    Now { row, story }
}

/// Takes a call back, and gives the id of the call that did it.
fn undo(fixture: &Fixture, call: &str, old: &Picture) -> String {
    let ran = fixture.run(&["undo", call, "--yes", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fixture.picture() == *old, "the undo of {call} did not bring everything back");
    id(&ran.json())
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
        let story = fixture.story(&self.call);
        assert_eq!(story["status"], "pending", "somebody touched a live call: {story}");
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

/// Evenly over a little more than the whole length.
fn spread(length: Duration, times: u32) -> impl Iterator<Item = Duration> {
    let step = length.mul_f64(1.1) / times;
    (0..times).map(move |time| step * time)
}

/// Over the second half of the length only.
fn late(length: Duration, times: u32) -> impl Iterator<Item = Duration> {
    (0..times).map(move |time| length.mul_f64(0.5) + length.mul_f64(0.6) * (time * 7 % times) / times)
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let done = work();
    (started.elapsed(), done)
}

/// The median of a few.
fn measure(times: usize, mut once: impl FnMut() -> Duration) -> Duration {
    let mut all: Vec<Duration> = (0..times).map(|_| once()).collect();
    all.sort();
    all[times / 2]
}

//! The journal as people and scripts see it: pages, following, one call's story, numbers, and no secrets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::{Value, json};
use support::{ALL, Fixture, LIMIT, events, id, text, until, user};

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn ids(rows: &Value) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| text(&row["callId"])).collect()
}

#[test]
fn the_pages_of_the_log_join_without_a_gap() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for number in 0..7 {
        let path = if number % 2 == 0 { "a.txt" } else { "nothing.txt" };
        fixture.call("read_file", &json!({"path": path}), &[]);
    }
    fixture.call("list_directory", &json!({}), &[]);
    let all = ids(&fixture.json(&["log"]));
    assert_eq!(all.len(), 8);
    let (mut paged, mut before) = (Vec::new(), Vec::<String>::new());
    loop {
        let mut args = vec!["log", "--limit", "3"];
        args.extend(before.iter().map(String::as_str));
        let page = ids(&fixture.json(&args));
        let Some(last) = page.last() else { break };
        before = vec!["--before".to_owned(), last.clone()];
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let errors = fixture.json(&["log", "--tool", "read_file", "--status", "error", "--since", "1h", "--limit", "2"]);
    assert_eq!(ids(&errors).len(), 2);
    let rest = ids(&fixture.json(&["log", "--status", "error", "--before", &ids(&errors)[1]]));
    assert_eq!(rest.len(), 1);
    let bad = fixture.run(&["log", "--before", "yesterday"]);
    assert_eq!(bad.code, Some(1));
    assert!(bad.stderr.contains("not a call id"), "{bad:?}");
    assert_eq!(fixture.run(&["log", "--follow", "--before", &all[0]]).code, Some(2));
}

#[test]
fn the_rung_of_what_a_call_started_is_in_every_view() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    let (_, outcome) = fixture.call("shell_exec", &json!({"command": "cat a.txt"}), &[]);
    let rung = &outcome["isolation"];
    assert!(["landlock", "namespaces"].contains(&text(rung).as_str()), "{outcome:#}");
    let rows = fixture.json(&["log"]);
    assert_eq!((&rows[0]["isolation"], &rows[1]["isolation"]), (rung, &json!("none")), "{rows:#}");
    assert_eq!(&fixture.story(&id(&outcome))["isolation"], rung);
    let following = Following::start(&fixture, &[]);
    assert_eq!(following.next()["isolation"], json!("none"));
    assert_eq!(&following.next()["isolation"], rung);
    following.end();
}

/// `haft log --follow --json`, line by line.
struct Following {
    child: Child,
    lines: Receiver<Value>,
}

impl Following {
    fn start(fixture: &Fixture, flags: &[&str]) -> Self {
        let args = [&["log", "--follow", "--json"], flags].concat();
        let mut child = fixture.haft(&args).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| tell.send(serde_json::from_str(&line).unwrap()))
        });
        Self { child, lines }
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(LIMIT).unwrap()
    }

    /// Ctrl-C, its exit code, and what it had not been asked for yet.
    fn end(mut self) -> (Option<i32>, Vec<Value>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, self.lines.iter().collect())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn following_tells_every_call_of_every_process_once() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let (_, before) = fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    let following = Following::start(&fixture, &[]);
    assert_eq!(following.next()["callId"], before["tool_call_id"], "it begins with what was last");
    let made: Vec<String> = std::thread::scope(|scope| {
        let calls = |writer: u32| {
            let fixture = &fixture;
            move || -> Vec<String> {
                let one = |number| {
                    let path = format!("{writer}-{number}.txt");
                    let input = json!({"path": path, "content": "x\n"});
                    match number % 2 {
                        0 => id(&fixture.call("write_file", &input, ALL).1),
                        _ => id(&fixture.call("read_file", &json!({"path": "a.txt"}), &[]).1),
                    }
                };
                (0..6).map(one).collect()
            }
        };
        let writers: Vec<_> = (0..4).map(|writer| scope.spawn(calls(writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let told: Vec<String> = made.iter().map(|_| text(&following.next()["callId"])).collect();
    let (code, more) = following.end();
    assert_eq!((code, more), (Some(0), vec![]));
    assert_eq!(told.iter().collect::<BTreeSet<_>>(), made.iter().collect::<BTreeSet<_>>());
    assert_eq!(told.len(), made.len());
}

#[test]
fn following_tells_when_a_call_asks_and_how_it_ends() {
    let fixture = Fixture::new();
    let following = Following::start(&fixture, &["--tool", "write_file"]);
    let call = fixture.pending("write_file", &json!({"path": "n", "content": "n"}));
    fixture.call("list_directory", &json!({}), &[]);
    let edited = fixture.run(&["approve", &call, "--input", r#"{"path":"m","content":"m\n"}"#, "--json"]).json();
    let child = id(&edited);
    let told: Vec<_> = (0..3)
        .map(|_| following.next())
        .map(|row| (text(&row["callId"]), text(&row["state"]), text(&row["status"])))
        .collect();
    let row = |id: &String, state: &str, status: &str| (id.clone(), state.to_owned(), status.to_owned());
    assert_eq!(told[0], row(&call, "waiting", "pending"));
    let rest: BTreeSet<_> = told[1..].iter().cloned().collect();
    assert_eq!(rest, BTreeSet::from([row(&call, "ended", "pending"), row(&child, "ended", "success")]));
    assert_eq!(following.end(), (Some(0), vec![]));
}

#[test]
fn following_ends_when_nobody_reads() {
    let fixture = Fixture::new();
    let mut child = fixture.haft(&["log", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let code = until("an end", || {
        fixture.call("list_directory", &json!({}), &[]);
        child.try_wait().unwrap()
    });
    assert_eq!(code.code(), Some(0));
}

#[test]
fn one_call_is_a_story_that_fits_the_screen() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old\n");
    let content = format!("{} and more\n", "a long line of text ".repeat(20));
    let call = fixture.pending("write_file", &json!({"path": "a.txt", "content": content}));
    let edited = fixture.run(&["approve", &call, "--input", r#"{"path":"a.txt","content":"new\n"}"#, "--json"]).json();
    let child = id(&edited);
    assert_eq!(fixture.run(&["undo", &child, "--yes"]).code, Some(0));
    let parent = fixture.run(&["log", "show", &call]).stdout;
    let of_child = format!("child     {child} the edited input: success");
    for part in ["question", "it would change `a.txt`", "answer", user().as_str(), &of_child] {
        assert!(parent.contains(part), "`{part}` is missing in\n{parent}");
    }
    let shown = fixture.run(&["log", "show", &child]).stdout;
    for part in [&call, "asked", "committed a.txt", "undo_call: success"] {
        assert!(shown.contains(part), "`{part}` is missing in\n{shown}");
    }
    for line in parent.lines().chain(shown.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let story = fixture.story(&child);
    assert_eq!((&story["parent"], story["children"].as_array().unwrap().len()), (&json!(call), 1));
    assert_eq!(story["children"][0]["tool"], "undo_call");
    assert_eq!(events(&story).last().map(String::as_str), Some("tool.completed"));
}

#[test]
fn a_long_output_is_shown_with_its_head_its_tail_and_the_way_to_the_rest() {
    let fixture = Fixture::new();
    fixture.put("big.txt", (0..5000).map(|line| format!("line {line} of many\n")).collect::<String>());
    let (_, outcome) = fixture.call("shell_exec", &json!({"command": "cat big.txt"}), &[]);
    let shown = fixture.run(&["log", "show", &id(&outcome)]).stdout;
    assert!(shown.contains("line 0 of") && shown.contains("line 4999 of") && shown.contains("left out"), "{shown}");
    assert!(shown.contains(&format!("haft call result_query --call-id {}", id(&outcome))), "{shown}");
    assert!(shown.lines().count() < 70, "{shown}");
}

#[test]
fn no_view_shows_a_secret_and_the_caller_gets_it_whole() {
    let fixture = Fixture::new();
    fixture.put("a.txt", format!("token: {TOKEN}\n"));
    let (_, read) = fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    assert!(read.to_string().contains(TOKEN), "the result of one's own call is exact");
    let missing = format!("{TOKEN}/nothing");
    let (_, failed) = fixture.call("read_file", &json!({"path": missing}), &[]);
    let call = fixture
        .pending("write_file", &json!({"path": "b.txt", "content": format!("password = \"hunter2\" {TOKEN}\n")}));
    for view in [
        &["log", "show", &id(&read)][..],
        &["log", "show", &id(&failed)],
        &["log", "show", &call],
        &["stats"],
        &["log"],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = fixture.run(&[view, json].concat());
            assert!(!ran.said().contains("16C7e42F") && !ran.said().contains("hunter2"), "{view:?}: {ran:?}");
        }
    }
    assert!(fixture.run(&["log", "show", &call]).stdout.contains("[redacted]"));
    // What a yes commits is shown exactly, on the card and to programs; the rest of the question is not.
    assert!(fixture.run(&["approvals"]).stdout.contains(&format!("+password = \"hunter2\" {TOKEN}")));
    let open = fixture.json(&["approvals"]);
    assert!(text(&open[0]["evidence"]["staged"]["changes"][0]["diff"]).contains(TOKEN));
    assert!(!open[0]["input"].to_string().contains("16C7e42F"), "{open}");
    // And it is committed exactly.
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    assert_eq!(fixture.text("b.txt"), Some(format!("password = \"hunter2\" {TOKEN}\n")));
}

#[test]
fn stats_count_what_happened() {
    let fixture = Fixture::new();
    assert_eq!(fixture.json(&["stats"]), json!([]));
    assert!(fixture.run(&["stats"]).stdout.contains("no calls yet"));
    fixture.put("a.txt", "a\n");
    for path in ["a.txt", "a.txt", "b.txt"] {
        fixture.call("read_file", &json!({"path": path}), &[]);
    }
    let call = fixture.pending("write_file", &json!({"path": "n", "content": "n"}));
    fixture.run(&["reject", &call]);
    let call = fixture.pending("write_file", &json!({"path": "n", "content": "n"}));
    fixture.run(&["cancel", &call]);
    let rows = fixture.json(&["stats", "--since", "7d"]);
    let numbers = |row: &Value| {
        ["total_calls", "success_count", "error_count", "rejected_count", "cancelled_count", "asked_count"]
            .map(|name| row[name].as_i64().unwrap())
    };
    assert_eq!((&rows[0]["tool_name"], numbers(&rows[0])), (&json!("read_file"), [3, 2, 1, 0, 0, 0]));
    assert_eq!((&rows[1]["tool_name"], numbers(&rows[1])), (&json!("write_file"), [2, 0, 0, 1, 1, 2]));
    assert_eq!(rows[0]["last_error"]["code"], "FILE_NOT_FOUND");
    for name in ["avg_execution_time_ms", "p50_ms", "p95_ms", "p99_ms", "cache_hits", "retries"] {
        assert!(rows[0][name].is_number(), "{name}: {rows}");
    }
    let people = fixture.run(&["stats"]);
    assert!(people.stdout.contains("P95") && people.stdout.contains("FILE_NOT_FOUND"), "{people:?}");
    assert!(people.stdout.lines().all(|line| line.chars().count() <= 80), "{people:?}");
    assert_eq!(fixture.run(&["stats", "--since", "soon"]).code, Some(2));
    assert_eq!(fixture.json(&[])["callsToday"], 5);
}

#[test]
fn another_process_is_heard_soon() {
    let fixture = Fixture::new();
    let following = Following::start(&fixture, &[]);
    // The first one only shows that it listens.
    fixture.call("list_directory", &json!({}), &[]);
    following.next();
    // On a machine with other work not every one is heard at once, but one of them is.
    until("a call that was heard within 50 ms", || {
        fixture.call("list_directory", &json!({}), &[]);
        let ended = std::time::Instant::now();
        following.next();
        (ended.elapsed() < Duration::from_millis(50)).then_some(())
    });
}

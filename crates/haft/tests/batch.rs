//! `haft batch`: outcomes in order, the same end as one call after the other, and nothing lost whatever comes in or goes
//! wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, Ran, text};

fn lines(calls: &[Value]) -> Vec<u8> {
    calls.iter().flat_map(|call| format!("{call}\n").into_bytes()).collect()
}

fn read(path: &str) -> Value {
    json!({"tool": "read_file", "input": {"path": path}})
}

fn write(path: &str, content: &str) -> Value {
    json!({"tool": "write_file", "input": {"path": path, "content": content}})
}

fn outcomes(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"))).collect()
}

fn statuses(ran: &Ran) -> Vec<String> {
    outcomes(ran).iter().map(|outcome| text(&outcome["status"])).collect()
}

fn batch(fixture: &Fixture, flags: &[&str], input: Vec<u8>) -> Ran {
    fixture.run_with_input(&[&["batch", "-", "--json"], flags].concat(), input)
}

#[test]
fn outcomes_come_in_the_order_of_the_calls_with_their_ids() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let calls = [
        json!({"id": "x", "tool": "read_file", "input": {"path": "a"}}),
        json!({"id": 7, "tool": "nope", "input": {}}),
        json!({"id": [1], "tool": "list_directory"}),
        json!({"tool": "read_file", "input": {"path": "missing"}}),
    ];
    let ran = batch(&fixture, &[], lines(&calls));
    assert_eq!(statuses(&ran), ["success", "error", "success", "error"]);
    let ids: Vec<Value> = outcomes(&ran).iter().map(|outcome| outcome["id"].clone()).collect();
    assert_eq!(ids, [json!("x"), json!(7), json!([1]), Value::Null]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    for outcome in outcomes(&ran) {
        assert_eq!(fixture.story(&text(&outcome["tool_call_id"]))["status"], outcome["status"], "each is recorded");
    }
}

#[test]
fn the_exit_code_is_that_of_the_worst() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    assert_eq!(batch(&fixture, &[], lines(&[read("a")])).code, Some(0));
    assert_eq!(batch(&fixture, &[], lines(&[read("a"), write("b", "b\n")])).code, Some(4));
    assert_eq!(batch(&fixture, &[], lines(&[write("b", "b\n"), read("c")])).code, Some(1));
    assert_eq!(batch(&fixture, &[], b"\n \n".to_vec()).code, Some(0));
    assert_eq!(fixture.run(&["batch"]).code, Some(2));
    let ran = fixture.run(&["batch", "absent.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot read the calls from `absent.jsonl`"), "{ran:?}");
    fixture.put("calls.jsonl", lines(&[read("a")]));
    let ran = fixture.run(&["batch", "calls.jsonl"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("read_file") && ran.stdout.ends_with("1 call: 1 success\n"), "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{ran:?}");
}

#[test]
fn what_comes_after_a_writer_sees_what_it_wrote() {
    let fixture = Fixture::new();
    fixture.put("a", "0\n");
    let mut calls = Vec::new();
    for version in 1..=20 {
        calls.extend([read("a"), read("a"), read("a"), write("a", &format!("{version}\n"))]);
    }
    calls.push(read("a"));
    let ran = batch(&fixture, ALL, lines(&calls));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let seen: Vec<String> = outcomes(&ran)
        .iter()
        .filter(|outcome| outcome["tool"] == "read_file")
        .map(|outcome| text(&outcome["result"]["structured"]["content"]))
        .collect();
    let expected: Vec<String> = (0..=20).flat_map(|version| vec![format!("{version}\n"); 3]).take(61).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_call_that_waits_for_a_person_holds_nobody_up() {
    let fixture = Fixture::new();
    fixture.put("a", "old\n");
    let ran = batch(&fixture, &[], lines(&[write("a", "new\n"), read("a"), write("b", "b\n"), read("a")]));
    assert_eq!(statuses(&ran), ["pending", "success", "pending", "success"]);
    assert_eq!(outcomes(&ran)[1]["result"]["structured"]["content"], "old\n", "nothing was committed");
    assert_eq!(fixture.json(&["approvals"]).as_array().unwrap().len(), 2, "both can be answered now");
}

#[test]
fn a_bad_line_keeps_its_place_and_loses_nothing_else() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let good = format!("{}\n", read("a"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bad: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"42".to_vec(),
        b"null".to_vec(),
        br#"{"tool": 5}"#.to_vec(),
        br#"{"input": {}}"#.to_vec(),
        br#"{"tool": "read_file", "inputs": {}}"#.to_vec(),
        br#"{"tool": "read_file", "input": []}"#.to_vec(),
        br#"{"tool": "read_file", "input": {"path": "a"}} {}"#.to_vec(),
        b"\xff\xfe\x00\x01".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        vec![0; 5000],
        (1..=255).filter(|byte| *byte != b'\n').collect(),
        deep.into_bytes(),
        [br#"{"tool": "read_file", "input": {"path": ""#.to_vec(), vec![b'x'; 17 << 20], b"\"}}".to_vec()].concat(),
    ];
    let mut input = Vec::new();
    for line in &bad {
        input.extend([line.as_slice(), b"\r\n", good.as_bytes()].concat());
    }
    // The last line needs no end.
    input.extend(good.trim_end().as_bytes());
    let ran = batch(&fixture, &[], input);
    let statuses = statuses(&ran);
    assert_eq!(statuses.len(), 2 * bad.len() + 1);
    for (at, status) in statuses.iter().enumerate() {
        assert_eq!(status, if at % 2 == 0 && at < 2 * bad.len() { "error" } else { "success" }, "line {}", at + 1);
    }
    assert_eq!(ran.code, Some(1));
    assert_eq!(outcomes(&ran)[30]["error"]["code"], "TOO_LARGE");
}

/// The program with both ends of its pipes in hand.
struct Piped {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Piped {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn say(&mut self, calls: &[Value]) {
        self.child.stdin.as_mut().unwrap().write_all(&lines(calls)).unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line:?}"))
    }

    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Its exit code and what it said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        drop(self.stdout);
        let ended = self.child.wait_with_output().unwrap();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}

#[test]
fn each_outcome_is_there_before_the_next_call_is_written() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let mut running = Piped::start(fixture.haft(&["batch", "-", "--json", "--auto-approve", "all"]));
    for version in 0..5 {
        running.say(&[write("a", &format!("{version}\n"))]);
        assert_eq!(running.next()["status"], "success");
        running.say(&[read("a")]);
        assert_eq!(running.next()["result"]["structured"]["content"], format!("{version}\n"));
    }
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_hundred_thousand_lines_need_no_more_memory_than_a_few() {
    const LINES: usize = 100_000;
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let mut running = Piped::start(fixture.haft(&["batch", "-", "--json"]));
    let mut stdin = running.child.stdin.take().unwrap();
    let (let_go, held) = mpsc::channel::<()>();
    let writing = std::thread::spawn(move || {
        // 150 MB in all.
        let (call, rest) = (format!("{}\n", read("a")), format!("{{\"{}\n", "x".repeat(1500)));
        for line in 0..LINES {
            stdin.write_all(if line % 1000 == 0 { &call } else { &rest }.as_bytes()).unwrap();
        }
        let _ = held.recv();
    });
    for line in 0..LINES {
        let outcome = running.next();
        assert_eq!(outcome["status"], if line % 1000 == 0 { "success" } else { "error" }, "line {line}");
    }
    let peak = running.status("VmHWM") / 1024;
    drop(let_go);
    writing.join().unwrap();
    assert_eq!(running.end().0, Some(1));
    assert!(peak < 100, "{peak} MiB");
}

#[test]
fn a_flood_of_output_needs_little_more_memory_than_silence() {
    let fixture = Fixture::new();
    let mut running = Piped::start(fixture.haft(&["batch", "-", "--json"]));
    let mut peak_after = |command: &str| {
        running.say(&[json!({"tool": "shell_exec", "input": {"command": command}})]);
        assert_eq!(running.next()["status"], "success");
        running.status("VmHWM") / 1024
    };
    let (silent, flood) = (peak_after("true"), peak_after("yes 'a line of text' | head -c 300M"));
    assert_eq!(running.end().0, Some(0));
    assert!(flood < silent + 20, "{flood} MiB, and {silent} without a word");
}

#[test]
fn when_nobody_reads_any_more_nothing_more_is_started() {
    let fixture = Fixture::new();
    let calls: Vec<Value> = (0..500).map(|at| write(&format!("f{at}"), "x\n")).collect();
    fixture.put("calls.jsonl", lines(&calls));
    let mut running = Piped::start(fixture.haft(&["batch", "calls.jsonl", "--json", "--auto-approve", "all"]));
    assert_eq!(running.next()["status"], "success");
    let (code, said) = running.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("nobody reads the outcomes any more; nothing after line"), "{said}");
    let line: usize = said.split("after line ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let written = (0..500).filter(|at| fixture.path(&format!("f{at}")).exists()).count();
    assert_eq!(written, line, "what was started was finished, and said so");
    assert!(written < 500, "{said}");
}

#[test]
fn an_interrupt_cancels_what_is_under_way_and_says_what_was_not_started() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let waiting = fixture.pending("write_file", &json!({"path": "new", "content": "new\n"}));
    let wait = json!({"tool": "wait_call", "input": {"callId": waiting, "timeoutMs": 200_000}});
    let mut running = Piped::start(fixture.haft(&["batch", "-", "--json", "--auto-approve", "all"]));
    running.say(&[read("a"), wait, write("b", "b\n"), read("a")]);
    assert_eq!(running.next()["status"], "success");
    support::until("call at work", || {
        let rows = fixture.json(&["log", "--tool", "wait_call"]);
        rows.as_array().unwrap().first().filter(|row| row["state"] == "preparing").cloned()
    });
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    let cancelled = running.next();
    assert_eq!((&cancelled["status"], &cancelled["tool"]), (&json!("cancelled"), &json!("wait_call")));
    let (code, said) = running.end();
    assert_eq!((code, said.as_str()), (Some(130), "warning: stopped; nothing after line 2 was started\n"));
    assert!(!fixture.path("b").exists());
    assert_eq!(fixture.json(&["log", "--tool", "write_file"]).as_array().unwrap().len(), 1, "only the one that waits");
}

#[test]
fn killed_in_the_middle_it_has_done_what_it_said_and_nothing_by_halves() {
    let fixture = Fixture::new();
    let content = "0123456789\n".repeat(2000);
    let calls: Vec<Value> = (0..400).flat_map(|at| [write(&format!("f{at}"), &content), read("f0")]).collect();
    for told_before in [1, 20, 61] {
        for at in 0..400 {
            let _ = fs::remove_file(fixture.path(&format!("f{at}")));
        }
        fixture.put("calls.jsonl", lines(&calls));
        let mut running = Piped::start(fixture.haft(&["batch", "calls.jsonl", "--json", "--auto-approve", "all"]));
        for _ in 0..told_before {
            assert_eq!(running.next()["status"], "success");
        }
        running.child.kill().unwrap();
        let mut told = told_before;
        let mut rest = String::new();
        while running.stdout.read_line(&mut rest).is_ok_and(|length| length > 0) {
            told += usize::from(rest.ends_with('\n'));
            rest.clear();
        }
        running.end();
        // Any command recovers.
        let log = fixture.json(&["log", "--limit", "2000"]);
        assert!(log.as_array().unwrap().iter().all(|row| row["state"] == "ended"), "{log}");
        let written: Vec<usize> = (0..400).filter(|at| fixture.path(&format!("f{at}")).exists()).collect();
        assert!(written.iter().all(|at| fixture.text(&format!("f{at}")).as_ref() == Some(&content)));
        assert_eq!(written, (0..written.len()).collect::<Vec<_>>(), "in order");
        // Writes are every second line, one at a time.
        assert!((told.div_ceil(2)..=told / 2 + 2).contains(&written.len()), "{told} told, {} written", written.len());
    }
}

#[test]
fn an_answer_is_remembered_within_a_batch_unless_it_is_not_wanted() {
    const KNOWN: &[i64] = &[0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    let kind = rustix::fs::statfs(&fixture.workspace).unwrap().f_type;
    let calls = lines(&[read("a"), write("b", "b\n"), read("a"), write("a", "c\n"), read("a")]);
    let cached = |flags: &[&str]| -> Vec<bool> {
        let ran = batch(&fixture, flags, calls.clone());
        outcomes(&ran).iter().map(|outcome| outcome["cached"].as_bool().unwrap()).collect()
    };
    assert_eq!(cached(ALL), [false, false, KNOWN.contains(&kind), false, false]);
    assert_eq!(cached(&[ALL, &["--no-cache"]].concat()), [false; 5]);
}

#[test]
fn a_long_outcome_is_printed_whole() {
    let fixture = Fixture::new();
    let long: String = (1..=9000).map(|line| format!("needle {line} {}\n", "x".repeat(40))).collect();
    fixture.put("long", &long);
    let grep = json!({"tool": "grep", "input": {"pattern": "needle", "maxResults": 9000}});
    let ran = batch(&fixture, &[], lines(&[read("absent"), grep, read("absent")]));
    assert_eq!(statuses(&ran), ["error", "success", "error"], "in order");
    let result = &outcomes(&ran)[1]["result"];
    assert_eq!(text(&result["content"]).lines().count(), 9000);
    assert_eq!(result["structured"]["matches"].as_array().unwrap().len(), 9000);
}

#[test]
fn in_a_pipe_no_line_is_cut() {
    let fixture = Fixture::new();
    let path = format!("{}-the-end", "long-name-".repeat(12));
    let ran = fixture.run_with_input(&["batch", "-"], lines(&[read(&path)]));
    assert!(ran.stdout.lines().next().unwrap().contains(&path), "{ran:?}");
}

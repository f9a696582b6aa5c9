//! Results as people and scripts get them: whole, with the command's own exit code, in the file's own encoding.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{ALL, Fixture, events, id, text};

#[test]
fn a_pipe_gets_everything() {
    let fixture = Fixture::new();
    let lines: String = (0..5000).map(|line| format!("the needle number {line}\n")).collect();
    fixture.put("hay.txt", &lines);
    let ran = fixture.run(&["call", "grep", "--pattern", "needle", "--maxResults", "10000"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 5000), "{}", ran.stdout.len());
    assert!(!ran.stdout.contains("omitted"));
    let (code, outcome) = fixture.call("grep", &json!({"pattern": "needle", "maxResults": 10000}), &[]);
    let result = &outcome["result"];
    assert_eq!((code, result["structured"]["matches"].as_array().unwrap().len()), (0, 5000));
    assert_eq!((&result["structured"]["truncated"], result["metadata"].get("truncated")), (&json!(false), None));
    let ran = fixture.run(&["call", "read_file", "--path", "hay.txt", "--limit", "3000", "--lineNumbers", "false"]);
    let expected: String = lines.split_inclusive('\n').take(3000).collect();
    assert!(
        ran.stdout.starts_with(&expected) && ran.stdout.contains("read on with offset=3001"),
        "{}",
        ran.stdout.len()
    );
}

#[test]
fn what_a_stopped_command_had_said_can_be_read_whole() {
    let fixture = Fixture::new();
    let input = json!({"command": "seq 1 20000; sleep 60", "timeoutMs": 3000});
    let (code, outcome) = fixture.call("shell_exec", &input, &[]);
    let (error, call) = (&outcome["error"], id(&outcome));
    assert_eq!((code, &error["code"], &error["details"]["callId"]), (1, &json!("TIMEOUT"), &json!(call)), "{error}");
    assert!(!text(&error["details"]["stdout"]).contains("\n10000\n"), "it is cut");
    let (mut said, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let (_, window) = fixture.call("result_query", &json!({"callId": call, "offset": from, "limit": 30000}), &[]);
        let window = &window["result"]["structured"];
        said.push_str(&text(&window["content"]));
        offset = window["nextOffset"].as_u64();
    }
    assert!(said.starts_with("[stdout]\n1\n2\n") && said.contains("\n10000\n"), "{}", said.len());
    assert!(said.ends_with("\n20000\n"), "{}", said.len());
}

#[test]
fn a_failed_command_fails_the_line_it_is_typed_in() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["call", "shell_exec", "--command", "echo said; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "said\n"), "{ran:?}");
    let (code, outcome) = fixture.call("shell_exec", &json!({"command": "exit 3"}), &[]);
    let exit = &outcome["result"]["structured"]["exitCode"];
    assert_eq!((code, &outcome["status"], exit), (0, &json!("success"), &json!(3)), "{outcome:#}");
    let log = fixture.run(&["log"]);
    assert_eq!(log.stdout.matches("  exit 3  shell_exec").count(), 2, "{log:?}");
    assert!(fixture.run(&["log", "show", &id(&outcome)]).stdout.contains("success, exit 3"));
    assert_eq!(fixture.run(&["call", "shell_exec", "--command", "true"]).code, Some(0));
}

#[test]
fn the_log_says_what_was_asked_and_how_it_ended() {
    let fixture = Fixture::new();
    fixture.call("read_file", &json!({"path": "nowhere"}), &[]);
    fixture.call("write_file", &json!({"path": "a", "content": "a"}), ALL);
    let rows = fixture.json(&["log"]);
    let (written, missing) = (&rows[0], &rows[1]);
    assert_eq!((&written["input"]["path"], &written["approvedBy"]), (&json!("a"), &json!("config")), "{rows:#}");
    assert!(text(&written["callId"]).starts_with("tc_") && written.get("id").is_none(), "{rows:#}");
    assert!(text(&missing["error"]).contains("it does not exist") && missing["input"]["path"] == "nowhere", "{rows:#}");
    fixture.call("red_file", &json!({}), &[]);
    let stats = fixture.json(&["stats"]);
    assert!(!stats.to_string().contains("red_file"), "a mistyped name is no tool: {stats:#}");
}

#[test]
fn a_command_has_started_before_it_says_anything() {
    let fixture = Fixture::new();
    for (command, code) in [("echo said", 0), ("echo said > said; echo so", 0), ("echo said; sleep 60", 1)] {
        let (ended, outcome) = fixture.call("shell_exec", &json!({"command": command, "timeoutMs": 2000}), ALL);
        assert_eq!((ended, &outcome["attempts"]), (code, &json!(1)), "{command}: {outcome:#}");
        let told = events(&fixture.story(&id(&outcome)));
        let at = |name: &str| told.iter().position(|event| event == name);
        assert!(at("tool.started").is_some() && at("tool.started") < at("tool.output_appended"), "{command}: {told:?}");
        assert_eq!(told.iter().filter(|event| *event == "tool.started").count(), 1, "{command}: {told:?}");
    }
    let (_, outcome) = fixture.call("shell_exec", &json!({"command": "sleep 1; echo late"}), &[]);
    let story = fixture.story(&id(&outcome));
    let at = |name: &str| {
        let told = story["events"].as_array().unwrap().iter();
        let event = told.clone().find(|event| event["data"]["event"] == name).unwrap();
        text(&event["at"]).parse::<jiff::Timestamp>().unwrap()
    };
    let silent = at("tool.output_appended").duration_since(at("tool.started"));
    assert!(silent.as_secs_f64() > 0.8, "it was told when it began: {story:#}");
}

#[test]
fn a_time_limit_has_one_field_and_its_old_name_keeps_its_unit() {
    let fixture = Fixture::new();
    let code = |tool: &str, input: Value| -> String {
        let (_, outcome) = fixture.call(tool, &input, ALL);
        outcome["error"]["code"].as_str().unwrap_or("success").to_owned()
    };
    assert_eq!(code("shell_exec", json!({"command": "sleep 60", "timeout": 300})), "TIMEOUT");
    let sleep = "import time; time.sleep(1.2)";
    assert_eq!(code("run_code", json!({"language": "python", "code": sleep, "timeout": 20})), "success");
    assert_eq!(code("run_code", json!({"language": "python", "code": sleep, "timeoutMs": 500})), "TIMEOUT");
    let both = json!({"language": "python", "code": "1", "timeout": 2, "timeoutMs": 500});
    assert_eq!(code("run_code", both), "INVALID_ARGS");
    let same = json!({"language": "python", "code": "1", "timeout": 2, "timeoutMs": 2000});
    assert_eq!(code("run_code", same), "success");
    for (limit, ends) in [("300ms", true), ("300", true), ("60s", false)] {
        let ran = fixture.run(&["call", "shell_exec", "--timeout", limit, "--command", "sleep 1.5"]);
        assert_eq!(ran.code, Some(i32::from(ends)), "{limit}: {ran:?}");
    }
    for tool in fixture.json(&["tools"]).as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["properties"].get("timeout"), None, "{}", tool["name"]);
    }
}

#[test]
fn a_read_has_nothing_to_commit() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    for (tool, input) in [("read_file", json!({"path": "a"})), ("shell_exec", json!({"command": "cat a"}))] {
        let (_, outcome) = fixture.call(tool, &input, &[]);
        for command in ["commit", "discard"] {
            let ran = fixture.run(&[command, &id(&outcome)]);
            let said = format!("changed no files, so there is nothing to {command}");
            assert!(ran.code == Some(1) && ran.stderr.contains(&said), "{tool}: {ran:?}");
        }
    }
}

#[test]
fn files_keep_their_encoding_and_line_ends() {
    let fixture = Fixture::new();
    fixture.put("latin.txt", b"caf\xe9 au lait\n");
    fixture.put("wide.txt", b"\xff\xfeh\0i\0\r\0\n\0y\0o\0u\0");
    fixture.put("windows.txt", "one\r\ntwo\r\nthree\r\n");
    let read = |path: &str| fixture.call("read_file", &json!({"path": path}), &[]).1["result"]["structured"].clone();
    let (latin, wide) = (read("latin.txt"), read("wide.txt"));
    assert_eq!((&latin["content"], &latin["charset"]), (&json!("café au lait\n"), &json!("windows-1252")));
    assert_eq!((&wide["content"], &wide["charset"]), (&json!("hi\r\nyou"), &json!("utf-16le")));
    let edit = |path: &str, old: &str, new: &str| {
        let (_, outcome) = fixture.call("edit_file", &json!({"path": path, "old": old, "new": new}), ALL);
        outcome["error"]["code"].as_str().unwrap_or("success").to_owned()
    };
    let call = fixture.pending("edit_file", &json!({"path": "latin.txt", "old": "lait", "new": "thé"}));
    let card = fixture.run(&["changes", &call]).stdout;
    assert!(card.contains("-café au lait") && card.contains("+café au thé"), "{card}");
    fixture.run(&["reject", &call]);
    assert_eq!(edit("latin.txt", "lait", "thé"), "success");
    assert_eq!(fs::read(fixture.path("latin.txt")).unwrap(), b"caf\xe9 au th\xe9\n");
    assert_eq!(edit("latin.txt", "thé", "茶"), "INVALID_ARGS");
    assert_eq!(edit("wide.txt", "hi\nyou", "ho\nme"), "success");
    assert_eq!(fs::read(fixture.path("wide.txt")).unwrap(), b"\xff\xfeh\0o\0\r\0\n\0m\0e\0");
    assert_eq!(edit("windows.txt", "one\ntwo\n", "1\n2\n"), "success");
    assert_eq!(fixture.text("windows.txt").as_deref(), Some("1\r\n2\r\nthree\r\n"));
    let append = |path: &str, content: &str| {
        let (_, outcome) =
            fixture.call("write_file", &json!({"path": path, "content": content, "mode": "append"}), ALL);
        assert_eq!(outcome["status"], json!("success"), "{outcome:#}");
    };
    append("latin.txt", "là\n");
    append("new.txt", "first\n");
    append("new.txt", "second\n");
    assert_eq!(fs::read(fixture.path("latin.txt")).unwrap(), b"caf\xe9 au th\xe9\nl\xe0\n");
    assert_eq!(fixture.text("new.txt").as_deref(), Some("first\nsecond\n"));
}

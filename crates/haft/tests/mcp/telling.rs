//! What a model is told beside a result: which files changed and the id that undoes it, what was left out, and that a
//! person changed its input.

use serde_json::json;

use crate::{
    client::{Client, Era, MUTE, call_id, facts, failed, said, succeeded},
    support::{Fixture, text},
};

#[test]
fn a_model_can_undo_what_it_did_by_what_it_was_told() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    for era in Era::BOTH {
        let mut client = Client::with(&fixture, era, MUTE, &["--auto-approve", "all"]);
        let done = client.call("shell_exec", &json!({"command": "echo two > a.txt; echo new > b.txt"}));
        succeeded(&done);
        let (value, call) = (&done["structuredContent"], call_id(&done));
        assert_eq!((&value["callId"], &value["changed"]), (&json!(call), &json!(["a.txt", "b.txt"])), "{done:#}");
        let line = format!("[changed a.txt, b.txt (created); `undo_call` with `callId` {call} undoes it]");
        assert!(said(&done).ends_with(&line), "{done:#}");
        let undone = client.call("undo_call", &json!({"callId": value["callId"]}));
        succeeded(&undone);
        assert_eq!((fixture.text("a.txt").as_deref(), fixture.text("b.txt")), (Some("one\n"), None));
        let again = client.call("undo_call", &json!({"callId": undone["structuredContent"]["callId"]}));
        succeeded(&again);
        assert_eq!(fixture.text("b.txt").as_deref(), Some("new\n"));
        succeeded(&client.call("undo_call", &json!({"callId": again["structuredContent"]["callId"]})));
        // Where nothing changed and nothing was cut, there is nothing to tell.
        let read = client.call("read_file", &json!({"path": "a.txt"}));
        assert_eq!(read["structuredContent"].get("callId"), None, "{read:#}");
    }
}

#[test]
fn a_command_that_ran_into_its_limit_says_no_more_than_one_that_did_not() {
    let fixture = Fixture::new();
    let large: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
    fixture.put("large.txt", &large);
    for era in Era::BOTH {
        let mut client = Client::with(&fixture, era, MUTE, &["--auto-approve", "all"]);
        let late = client.call("shell_exec", &json!({"command": "cat large.txt; sleep 60", "timeoutMs": 1500}));
        failed(&late, "error", "TIMEOUT");
        assert!(late.to_string().len() < 40_000, "{}", late.to_string().len());
        assert_eq!(said(&late).matches("line 1\n").count(), 1, "it is said twice");
        assert!(said(&late).contains("line 59999") && said(&late).contains(" characters omitted …"));
    }
}

#[test]
fn a_long_file_is_read_to_a_whole_line_and_on() {
    let fixture = Fixture::new();
    let lines: Vec<String> = (1..=3000).map(|line| format!("this is line {line} of the file\n")).collect();
    fixture.put("long.txt", lines.concat());
    let mut client = Client::new(&fixture, Era::Stateless, MUTE);
    let (mut read, mut offset) = (String::new(), 1);
    while offset <= 3000 {
        let part = client.call("read_file", &json!({"path": "long.txt", "offset": offset, "limit": 3000}));
        let value = &part["structuredContent"];
        assert!(said(&part).chars().count() < 30_000 && !said(&part).contains("omitted"), "{}", said(&part));
        assert_eq!((value.get("cut"), &facts(&part)["truncated"]), (None, &value["truncated"]));
        read.push_str(&text(&value["content"]));
        offset = value["endLine"].as_u64().unwrap() + 1;
        let goes_on = value["truncated"] == json!(true);
        assert_eq!(said(&part).ends_with(&format!("; read on with offset={offset})")), goes_on, "{}", said(&part));
    }
    assert!(read == lines.concat());
}

#[test]
fn base64_is_whole_or_refused() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> = (0..200_000_u32).map(|number| (number * 7 % 251) as u8).collect();
    fixture.put("fits.bin", &bytes);
    fixture.put("large.bin", [bytes.clone(), bytes].concat());
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let whole = client.call("read_file", &json!({"path": "fits.bin", "encoding": "base64"}));
    let content = text(&whole["structuredContent"]["content"]);
    assert_eq!((content.len(), said(&whole) == content), (200_000_usize.div_ceil(3) * 4, true));
    assert_eq!(whole["structuredContent"]["truncated"], json!(false));
    failed(&client.call("read_file", &json!({"path": "large.bin", "encoding": "base64"})), "error", "TOO_LARGE");
}

#[test]
fn a_failure_says_everything_once() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let wrong = client.call("read_file", &json!({"pth": "a"}));
    failed(&wrong, "error", "INVALID_ARGS");
    assert!(!said(&wrong).contains('{') && facts(&wrong)["error"]["details"]["issues"].is_array(), "{wrong:#}");
}

#[test]
fn a_model_hears_that_a_person_changed_its_input() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let id = client.begin("write_file", &json!({"path": "wrong.txt", "content": "x\n"}));
    let call = fixture.asked(&[]);
    let input = json!({"path": "right.txt", "content": "y\n"});
    let edited = fixture.run(&["approve", &call, "--input", &input.to_string(), "--json"]);
    assert_eq!(edited.code, Some(0), "{edited:?}");
    let done = client.result_of(&id);
    succeeded(&done);
    assert_eq!((&done["structuredContent"]["argsModified"], &facts(&done)["argsModified"]), (&input, &input));
    assert!(said(&done).contains("[a person changed your input before approving it; it ran with "), "{done:#}");
}

//! Questions in every client's language: asked where a form can be shown, open elsewhere meanwhile, answered once.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    client::{
        ASKS, ASKS_AS_EVER, ASKS_ELSEWHERE, Client, Era, MUTE, NAME, call_id, facts, failed, recorded, said, succeeded,
    },
    support::{Fixture, text, until},
};

/// Less than any question is waited for.
const SOON: Duration = Duration::from_secs(20);

/// A call that must be asked for.
fn writing() -> Value {
    json!({"path": "made.txt", "content": "made\n"})
}

/// What a client sends back for a form that a person filled in.
fn filled_in(approve: bool, words: &str) -> Value {
    json!({"action": "accept", "content": {"approve": approve, "message": words}})
}

/// The calls whose question is open.
fn open(fixture: &Fixture) -> Vec<String> {
    fixture.json(&["approvals"]).as_array().unwrap().iter().map(|question| text(&question["callId"])).collect()
}

/// Who has answered a call's question, and through what.
fn answered(fixture: &Fixture, call: &str) -> (String, String) {
    let answer = &fixture.story(call)["answer"];
    (text(&answer["by"]["name"]), text(&answer["source"]))
}

fn asked_again(client: &Client) -> bool {
    client.heard().iter().any(|message| message["method"] == "elicitation/create")
}

/// Tries the call again with what was asked for.
fn again(client: &mut Client, input: &Value, state: &Value, given: &Value) -> Value {
    let params = json!({
        "name": "write_file",
        "arguments": input,
        "requestState": state,
        "inputResponses": {"approval": given},
    });
    client.ask("tools/call", params)
}

/// Begins the call in the newer era; gives the question and the state.
fn required(client: &mut Client, input: &Value) -> (Value, Value) {
    let result = client.call("write_file", input);
    assert_eq!(result["resultType"], json!("input_required"), "{result:#}");
    let question = &result["inputRequests"]["approval"];
    assert_eq!(question["method"], json!("elicitation/create"), "{result:#}");
    (question["params"].clone(), result["requestState"].clone())
}

/// Calls and gives this answer in the client, in whichever way it is asked.
fn call_and_answer(client: &mut Client, era: Era, given: &Value) -> Value {
    if era == Era::Stateless {
        let (_, state) = required(client, &writing());
        return again(client, &writing(), &state, given)["result"].clone();
    }
    let call = client.begin("write_file", &writing());
    let (form, _) = client.form();
    client.send(&json!({"jsonrpc": "2.0", "id": form, "result": given}));
    client.result_of(&call)
}

#[test]
fn a_yes_in_the_client_is_the_persons_through_that_client() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, ASKS);
        let result = call_and_answer(&mut client, era, &filled_in(true, ""));
        succeeded(&result);
        assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
        let (by, source) = answered(&fixture, &call_id(&result));
        assert!(by.ends_with(&format!(" through {NAME}")) && source == "mcp", "{by} {source}");
        let told = fixture.run(&["log", "show", &call_id(&result)]);
        assert!(told.stdout.contains(&by), "{told:?}");
        assert_eq!(fixture.run(&["undo", &call_id(&result), "--yes"]).code, Some(0));
        assert_eq!(fixture.text("made.txt"), None);
    }
}

#[test]
fn the_form_shows_what_a_yes_covers() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, ASKS);
    client.begin("write_file", &writing());
    let (_, older) = client.form();
    let (newer, _) = required(&mut Client::new(&fixture, Era::Stateless, ASKS), &writing());
    for form in [older, newer] {
        let shown = text(&form["message"]);
        assert!(shown.contains("write_file") && shown.contains("made.txt") && shown.contains("+made"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        assert_eq!(form["requestedSchema"]["properties"]["approve"]["type"], json!("boolean"), "{form:#}");
        assert_eq!(form["requestedSchema"]["required"], json!(["approve"]), "{form:#}");
    }
}

#[test]
fn the_form_shows_all_of_it_or_says_where_the_rest_is() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, ASKS);
    for (lines, ends_with) in [(60, "+line 59\n"), (4_000, "+line 0\n"), (30_000, "")] {
        let content: String = (0..lines).map(|line| format!("line {line}\n")).collect();
        client.begin("write_file", &json!({"path": "made.txt", "content": content}));
        let (id, form) = client.form();
        let shown = text(&form["message"]);
        assert!(shown.contains(ends_with), "{shown}");
        let is_all = shown.contains(&format!("+line {}\n", lines - 1));
        let says_where = shown.contains("not all of it stands here; all of it: haft changes tc_");
        assert_eq!((is_all, says_where), (lines == 60, lines != 60), "{shown}");
        client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}));
    }
}

#[test]
fn a_no_in_the_client_rejects_with_the_persons_words() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, ASKS);
        let result = call_and_answer(&mut client, era, &filled_in(false, "not in this folder"));
        failed(&result, "rejected", "REJECTED");
        assert!(said(&result).contains("not in this folder"), "{result:#}");
        assert_eq!((fixture.text("made.txt"), open(&fixture)), (None, vec![]));
    }
}

#[test]
fn a_client_that_cannot_answer_waits_for_somebody_else() {
    let unable = json!({"error": {"code": -32601, "message": "Method not found"}});
    let silly = json!({"result": {"action": "accept", "content": {"approve": "perhaps"}}});
    for mut given in [unable, silly] {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, Era::Initialize, ASKS);
        let waiting = client.begin("write_file", &writing());
        let (form, _) = client.form();
        (given["jsonrpc"], given["id"]) = (json!("2.0"), form);
        client.send(&given);
        client.ask("tools/list", json!({}));
        let call = fixture.asked(&[]);
        assert_eq!(fixture.run(&["approve", &call]).code, Some(0), "{given}");
        let result = client.result_of(&waiting);
        succeeded(&result);
        assert_eq!((call_id(&result), fixture.text("made.txt").as_deref()), (call.clone(), Some("made\n")));
        assert!(!asked_again(&client), "{given}");
        assert!(!answered(&fixture, &call).0.contains(NAME), "{given}");
    }
}

#[test]
fn a_client_that_declines_hears_at_once_that_a_person_can_still_answer() {
    for action in ["decline", "cancel"] {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, Era::Initialize, ASKS);
        let begun = Instant::now();
        let waiting = client.begin("write_file", &writing());
        let (form, shown) = client.form();
        assert!(text(&shown["message"]).contains("No: send it with `approve` off"), "{shown}");
        client.send(&json!({"jsonrpc": "2.0", "id": form, "result": {"action": action}}));
        let result = client.result_of(&waiting);
        failed(&result, "pending", "PENDING");
        assert!(begun.elapsed() < SOON, "{action}: {:?}", begun.elapsed());
        let call = call_id(&result);
        assert!(said(&result).contains("A person can still answer with `haft approve"), "{result:#}");
        assert_eq!((open(&fixture), asked_again(&client)), (vec![call.clone()], false), "{action}");
        assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
        assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
        assert!(!answered(&fixture, &call).0.contains(NAME));
    }
}

#[test]
fn somebody_elsewhere_may_be_quicker_than_the_client() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, ASKS);
    let waiting = client.begin("write_file", &writing());
    let (form, _) = client.form();
    let call = fixture.asked(&[]);
    assert_eq!(fixture.run(&["reject", &call]).code, Some(0));
    failed(&client.result_of(&waiting), "rejected", "REJECTED");
    client.ask("tools/list", json!({}));
    let withdrawn = client.heard().iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], form);
    // Too late.
    client.send(&json!({"jsonrpc": "2.0", "id": form, "result": filled_in(true, "")}));
    client.ask("tools/list", json!({}));
    assert_eq!(fixture.text("made.txt"), None);
    assert!(!answered(&fixture, &call).0.contains(NAME));
}

#[test]
fn what_destroys_or_is_flagged_is_never_asked_in_the_client() {
    let flagged = json!({"path": ".envrc", "content": "use flake\n"});
    for era in Era::BOTH {
        for (tool, input) in [("delete_file", json!({"path": "old.txt"})), ("write_file", flagged.clone())] {
            let fixture = Fixture::new();
            fixture.put("old.txt", "old\n");
            let mut client = Client::new(&fixture, era, ASKS);
            let waiting = client.begin(tool, &input);
            let call = fixture.asked(&[]);
            client.ask("tools/list", json!({}));
            assert!(!asked_again(&client), "{tool}");
            assert!(fixture.text("old.txt").is_some());
            assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
            let result = client.result_of(&waiting);
            succeeded(&result);
            assert_eq!((call_id(&result), asked_again(&client)), (call, false), "{tool}");
        }
    }
}

#[test]
fn a_client_that_only_says_that_it_can_be_asked_shows_forms() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, ASKS_AS_EVER);
        succeeded(&call_and_answer(&mut client, era, &filled_in(true, "")));
    }
}

#[test]
fn a_client_without_a_form_hears_of_the_answer_that_is_given_elsewhere() {
    for (era, able) in Era::BOTH.into_iter().flat_map(|era| [(era, MUTE), (era, ASKS_ELSEWHERE)]) {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, able);
        let waiting = client.begin("write_file", &writing());
        let call = fixture.asked(&[]);
        assert_eq!(fixture.run(&["reject", &call, "--message", "use another name"]).code, Some(0));
        let result = client.result_of(&waiting);
        failed(&result, "rejected", "REJECTED");
        assert!(said(&result).contains("use another name") && !asked_again(&client), "{result:#}");
    }
}

#[test]
fn a_yes_to_some_of_the_paths_tells_the_model_of_the_others() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let waiting = client.begin("shell_exec", &json!({"command": "echo 1 > a; echo 2 > b"}));
    let call = fixture.asked(&[]);
    assert_eq!(fixture.run(&["commit", &call, "a"]).code, Some(0));
    let result = client.result_of(&waiting);
    succeeded(&result);
    assert_eq!((fixture.text("a").as_deref(), fixture.text("b")), (Some("1\n"), None));
    assert_eq!(facts(&result)["leftStaged"], json!(["b"]), "{result:#}");
    for told in [said(&result), text(&result["structuredContent"]["leftStaged"])] {
        assert!(told.contains("Not applied yet: `b`") && told.contains(&call), "{told}");
    }
}

#[test]
fn a_state_counts_for_its_own_call_only() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, ASKS);
    let (_, state) = required(&mut client, &writing());
    let given = filled_in(true, "");
    let other = json!({"path": "other.txt", "content": "other\n"});
    let (_, others) = required(&mut client, &other);
    let mut tampered = text(&state).into_bytes();
    let middle = tampered.len() / 2;
    tampered[middle] = if tampered[middle] == b'A' { b'B' } else { b'A' };
    let tampered = json!(String::from_utf8(tampered).unwrap());
    let attempts = [
        (writing(), tampered),
        (writing(), others),
        (other, state.clone()),
        (writing(), json!("")),
        (writing(), json!("rs1...")),
    ];
    for (input, state) in attempts {
        let refused = again(&mut client, &input, &state, &given);
        assert_eq!(refused["error"]["code"], json!(-32602), "{refused:#}");
        assert!(text(&refused["error"]["message"]).contains("requestState"), "{refused:#}");
    }
    assert_eq!((fixture.text("made.txt"), fixture.text("other.txt"), open(&fixture).len()), (None, None, 2));
    succeeded(&again(&mut client, &writing(), &state, &given)["result"]);
    // The same once more answers what has become of it, and does nothing.
    std::fs::remove_file(fixture.path("made.txt")).unwrap();
    succeeded(&again(&mut client, &writing(), &state, &given)["result"]);
    assert_eq!(fixture.text("made.txt"), None);
}

#[test]
fn a_client_that_cancels_what_is_required_gets_pending_and_no_second_question() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, ASKS);
    let (_, state) = required(&mut client, &writing());
    let call = fixture.asked(&[]);
    for given in [json!({"action": "cancel"}), json!({"action": "decline"}), json!({}), json!({"action": "cancel"})] {
        let result = again(&mut client, &writing(), &state, &given)["result"].clone();
        failed(&result, "pending", "PENDING");
        assert!(said(&result).contains("wait_call") && said(&result).contains(&call), "{result:#}");
        assert_eq!((call_id(&result), open(&fixture)), (call.clone(), vec![call.clone()]));
    }
    let waiting = client.begin("wait_call", &json!({"callId": call}));
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    let result = client.result_of(&waiting);
    succeeded(&result);
    assert_eq!(result["structuredContent"]["status"], json!("success"), "{result:#}");
    assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
}

#[test]
fn whoever_waits_for_a_call_reads_in_the_text_how_it_ended() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let writing = client.begin("write_file", &writing());
    let call = fixture.asked(&[]);
    assert_eq!(fixture.run(&["reject", &call, "--message", "not in this folder"]).code, Some(0));
    failed(&client.result_of(&writing), "rejected", "REJECTED");
    let missing = client.call("read_file", &json!({"path": "nowhere"}));
    recorded(&fixture, &missing);
    for (call, words) in [
        (call, ["rejected\n", "REJECTED: ", "not in this folder"]),
        (call_id(&missing), ["error\n", "FILE_NOT_FOUND: ", "nowhere"]),
    ] {
        let waited = client.call("wait_call", &json!({"callId": call}));
        succeeded(&waited);
        assert!(words.iter().all(|word| said(&waited).contains(word)), "{waited:#}");
    }
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_takes_its_question_along() {
    // The last one waits for a yes that its client may not give.
    let waits = [
        (Era::Initialize, ASKS, "write_file", writing()),
        (Era::Initialize, MUTE, "write_file", writing()),
        (Era::Stateless, MUTE, "write_file", writing()),
        (Era::Stateless, ASKS, "delete_file", json!({"path": "old.txt"})),
    ];
    for (era, able, tool, input) in waits {
        let fixture = Fixture::new();
        fixture.put("old.txt", "old\n");
        let mut client = Client::new(&fixture, era, able);
        let waiting = client.begin(tool, &input);
        let call = fixture.asked(&[]);
        client.notify("notifications/cancelled", json!({"requestId": waiting}));
        until("its end", || open(&fixture).is_empty().then_some(()));
        until("its record", || (fixture.story(&call)["outcome"]["status"] == "cancelled").then_some(()));
        assert_eq!((fixture.text("made.txt"), fixture.text("old.txt").as_deref()), (None, Some("old\n")));
        client.ask("tools/list", json!({}));
        assert!(client.heard().iter().all(|message| message["id"] != waiting || message.get("method").is_some()));
    }
}

#[test]
fn at_the_end_of_a_server_what_waits_for_a_yes_stays_open() {
    let ways: [fn(&mut Client); 2] = [|client| client.signal(Signal::TERM), Client::close_input];
    // Its client may not answer the first, and is asked about the second.
    let calls =
        [("delete_file", json!({"path": "old.txt"})), ("write_file", json!({"path": "old.txt", "content": ""}))];
    let all = Era::BOTH.into_iter().flat_map(|era| ways.map(|end| (era, end)));
    for ((era, end), (tool, input)) in all.flat_map(|way| calls.clone().map(|call| (way, call))) {
        let fixture = Fixture::new();
        fixture.put("old.txt", "old\n");
        let mut client = Client::new(&fixture, era, ASKS);
        client.begin(tool, &input);
        let call = fixture.asked(&[]);
        let begun = Instant::now();
        end(&mut client);
        assert!(client.end().success() && begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(open(&fixture), vec![call.clone()], "{era:?} {tool}");
        assert_eq!(fixture.text("old.txt").as_deref(), Some("old\n"));
        assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
        assert_ne!(fixture.text("old.txt").as_deref(), Some("old\n"), "{era:?} {tool}");
    }
}

#[test]
fn a_client_that_waits_for_a_call_is_asked_what_that_asks_unless_it_has_put_it_away() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let pending = fixture.pending("write_file", &writing());
        let waits = json!({"callId": pending});
        let mut client = Client::new(&fixture, era, ASKS);
        let result = if era == Era::Stateless {
            let asked = client.call("wait_call", &waits);
            assert_eq!(asked["resultType"], json!("input_required"), "{asked:#}");
            let given = json!({"approval": filled_in(true, "")});
            let params = json!({"name": "wait_call", "arguments": waits, "requestState": asked["requestState"],
                "inputResponses": given});
            client.ask("tools/call", params)["result"].clone()
        } else {
            let waiting = client.begin("wait_call", &waits);
            let (form, _) = client.form();
            client.send(&json!({"jsonrpc": "2.0", "id": form, "result": filled_in(true, "")}));
            client.result_of(&waiting)
        };
        succeeded(&result);
        assert_eq!(result["structuredContent"]["result"]["path"], "made.txt", "{result:#}");
        assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
        assert!(answered(&fixture, &pending).0.ends_with(&format!(" through {NAME}")));

        let other = json!({"path": "other.txt", "content": ""});
        let put_away = json!({"action": "decline"});
        let result = if era == Era::Stateless {
            let (_, state) = required(&mut client, &other);
            again(&mut client, &other, &state, &put_away)["result"].clone()
        } else {
            let call = client.begin("write_file", &other);
            let (form, _) = client.form();
            client.send(&json!({"jsonrpc": "2.0", "id": form, "result": put_away}));
            client.result_of(&call)
        };
        failed(&result, "pending", "PENDING");
        let waited = client.call("wait_call", &json!({"callId": call_id(&result), "timeoutMs": 0}));
        assert_eq!(waited["structuredContent"], json!({"status": "pending"}), "{waited:#}");
        assert!(!asked_again(&client), "{era:?}");
    }
}

#[test]
fn whoever_waits_hears_when_nobody_has_answered_in_time() {
    let fixture = Fixture::new();
    let settings = fixture.home.join(".config/haft");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("haft.toml"), "[approvals]\nexpire = '1s'\n").unwrap();
    let begun = Instant::now();
    let input = writing().to_string();
    let called = fixture.run(&["call", "write_file", &input, "--json", "--wait", "100"]).json();
    assert_eq!(called["error"]["code"], "APPROVAL_EXPIRED", "{called:#}");
    let pending = fixture.run(&["call", "write_file", &input, "--json"]).json();
    let waited = fixture.run(&["wait", &text(&pending["tool_call_id"]), "--json"]).json();
    assert_eq!(waited["error"]["code"], "APPROVAL_EXPIRED", "{waited:#}");
    let mut client = Client::new(&fixture, Era::Stateless, MUTE);
    let pending = fixture.run(&["call", "write_file", &input, "--json"]).json();
    let waited = client.call("wait_call", &json!({"callId": pending["tool_call_id"]}));
    assert!(said(&waited).contains("APPROVAL_EXPIRED"), "{waited:#}");
    assert!(begun.elapsed() < SOON * 2, "{:?}", begun.elapsed());
}

#[test]
fn an_answered_request_that_is_cancelled_withdraws_nothing() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, ASKS);
    let (_, state) = required(&mut client, &writing());
    for id in 1..10 {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    client.ask("tools/list", json!({}));
    assert_eq!(open(&fixture).len(), 1);
    succeeded(&again(&mut client, &writing(), &state, &filled_in(true, ""))["result"]);
}

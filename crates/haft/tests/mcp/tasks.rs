//! Calls that wait as tasks: looked at, answered and cancelled, also by a server that was started later.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    client::{ASKS, Client, Era, MUTE, NAME, TASKS, call_id, failed, said, succeeded},
    streaming::{self, Sleepers},
    support::{Fixture, text, until},
};

/// Less than any command of these tests takes.
const SOON: Duration = Duration::from_secs(20);

fn client(fixture: &Fixture) -> Client {
    Client::new(fixture, Era::Stateless, TASKS)
}

fn writing() -> Value {
    json!({"path": "made.txt", "content": "made\n"})
}

/// Begins a call that becomes a task; gives its id.
fn begun(client: &mut Client, tool: &str, input: &Value) -> String {
    let task = client.call(tool, input);
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task:#}");
    text(&task["taskId"])
}

fn look(client: &mut Client, task: &str) -> Value {
    let looked = client.ask("tasks/get", json!({"taskId": task}));
    assert!(looked.get("result").is_some(), "{looked:#}");
    looked["result"].clone()
}

/// The task once it has come to an end.
fn ended(client: &mut Client, task: &str) -> Value {
    until("its end", || Some(look(client, task)).filter(|task| task["status"] != "working"))
}

fn update(client: &mut Client, task: &str, approve: bool) {
    let given = json!({"action": "accept", "content": {"approve": approve, "message": "not so"}});
    let answer = client.ask("tasks/update", json!({"taskId": task, "inputResponses": {"approval": given}}));
    assert!(answer.get("result").is_some(), "{answer:#}");
}

#[test]
fn a_call_that_asks_becomes_a_task_that_the_client_answers() {
    let fixture = Fixture::new();
    let mut client = client(&fixture);
    let task = begun(&mut client, "write_file", &writing());
    let looked = look(&mut client, &task);
    assert_eq!(looked["status"], json!("input_required"), "{looked:#}");
    assert!(text(&looked["inputRequests"]["approval"]["params"]["message"]).contains("made.txt"), "{looked:#}");
    assert!(looked["ttlMs"].as_u64().unwrap() > 0 && looked["pollIntervalMs"].as_u64().unwrap() > 0, "{looked:#}");
    update(&mut client, &task, true);
    let done = ended(&mut client, &task);
    assert_eq!(done["status"], json!("completed"), "{done:#}");
    succeeded(&done["result"]);
    assert_eq!((call_id(&done["result"]), fixture.text("made.txt").as_deref()), (task.clone(), Some("made\n")));
    assert!(text(&fixture.story(&task)["answer"]["by"]["name"]).ends_with(&format!(" through {NAME}")));
    // An answer that comes again changes nothing.
    update(&mut client, &task, false);
    succeeded(&look(&mut client, &task)["result"]);
}

#[test]
fn a_task_tells_when_it_changed_last() {
    let fixture = Fixture::new();
    let mut client = client(&fixture);
    let task = begun(&mut client, "write_file", &writing());
    let open = fixture.json(&["approvals"])[0].clone();
    assert_eq!(look(&mut client, &task)["lastUpdatedAt"], open["askedAt"], "{open:#}");
    update(&mut client, &task, true);
    let done = ended(&mut client, &task);
    assert_eq!(done["lastUpdatedAt"], fixture.story(&task)["outcome"]["finished_at"], "{done:#}");
    assert_eq!(done, look(&mut client, &task));
    let task = begun(&mut client, "write_file", &json!({"path": "other.txt", "content": "other\n"}));
    client.ask("tasks/cancel", json!({"taskId": task}));
    let over = until("its end", || Some(look(&mut client, &task)).filter(|task| task["status"] == "cancelled"));
    assert_eq!(over["lastUpdatedAt"], fixture.story(&task)["outcome"]["finished_at"], "{over:#}");
}

#[test]
fn a_call_that_asks_nothing_is_no_task() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    succeeded(&client(&fixture).call("read_file", &json!({"path": "a.txt"})));
}

#[test]
fn a_task_may_be_rejected_and_answered_elsewhere() {
    let fixture = Fixture::new();
    let mut client = client(&fixture);
    let task = begun(&mut client, "write_file", &writing());
    update(&mut client, &task, false);
    let done = ended(&mut client, &task);
    failed(&done["result"], "rejected", "REJECTED");
    assert!(said(&done["result"]).contains("not so"), "{done:#}");
    let task = begun(&mut client, "write_file", &writing());
    assert_eq!(fixture.run(&["approve", &task]).code, Some(0));
    succeeded(&ended(&mut client, &task)["result"]);
}

#[test]
fn what_destroys_is_a_task_without_a_question_to_the_client() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    let mut client = client(&fixture);
    let task = begun(&mut client, "delete_file", &json!({"path": "old.txt"}));
    let looked = look(&mut client, &task);
    assert_eq!(looked["status"], json!("working"), "{looked:#}");
    assert!(text(&looked["statusMessage"]).contains(&format!("haft approve {task}")), "{looked:#}");
    update(&mut client, &task, true);
    assert_eq!(look(&mut client, &task)["status"], json!("working"));
    assert!(fixture.text("old.txt").is_some());
    assert_eq!(fixture.run(&["approve", &task]).code, Some(0));
    succeeded(&ended(&mut client, &task)["result"]);
    assert_eq!(fixture.text("old.txt"), None);
}

#[test]
fn a_task_asks_nothing_of_a_client_that_shows_no_forms() {
    for elicitation in ["", r#", "elicitation": {"url": {}}"#] {
        let fixture = Fixture::new();
        let able = format!(r#"{{"extensions": {{"io.modelcontextprotocol/tasks": {{}}}}{elicitation}}}"#);
        let mut client = Client::new(&fixture, Era::Stateless, &able);
        let task = begun(&mut client, "write_file", &writing());
        let looked = look(&mut client, &task);
        assert_eq!(looked["status"], json!("working"), "{looked:#}");
        assert!(text(&looked["statusMessage"]).contains(&format!("haft approve {task}")), "{looked:#}");
        assert_eq!(fixture.run(&["approve", &task]).code, Some(0));
        succeeded(&ended(&mut client, &task)["result"]);
    }
}

#[test]
fn a_cancelled_task_is_over() {
    let fixture = Fixture::new();
    let mut client = client(&fixture);
    let task = begun(&mut client, "write_file", &writing());
    for _ in 0..2 {
        let answer = client.ask("tasks/cancel", json!({"taskId": task}));
        assert!(answer.get("result").is_some(), "{answer:#}");
        assert_eq!(
            until("its end", || {
                Some(text(&look(&mut client, &task)["status"]))
                    .filter(|status| status != "working" && status != "input_required")
            }),
            "cancelled"
        );
    }
    update(&mut client, &task, true);
    assert_eq!(look(&mut client, &task)["status"], json!("cancelled"));
    assert_eq!(fixture.text("made.txt"), None);
    assert_eq!(fixture.json(&["approvals"]), json!([]));
}

/// A server that runs an approved task, and the command that it runs.
fn at_work(fixture: &Fixture, seconds: u32) -> (Client, Sleepers) {
    let mut client = client(fixture);
    let sleepers = Sleepers::new(seconds);
    let mut input = sleepers.input();
    // It is asked about before it runs.
    input["network"] = json!(true);
    let task = begun(&mut client, "shell_exec", &input);
    update(&mut client, &task, true);
    sleepers.wait_until_at_work();
    (client, sleepers)
}

#[test]
fn the_end_of_a_server_ends_the_tasks_that_it_runs() {
    let ways: [fn(&mut Client); 3] =
        [|client| client.signal(Signal::TERM), |client| client.signal(Signal::INT), Client::close_input];
    for (end, seconds) in ways.into_iter().zip(191..) {
        let fixture = Fixture::new();
        let (mut client, sleepers) = at_work(&fixture, seconds);
        let begun = Instant::now();
        end(&mut client);
        assert!(client.end().success() && begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(sleepers.alive(), 0);
        // With the network on, nobody knows what it has done outside.
        let row = streaming::ended(&fixture);
        assert_eq!((&row["status"], &row["code"]), (&json!("error"), &json!("OUTCOME_UNKNOWN")), "{row:#}");
    }
}

#[test]
fn a_task_at_work_that_is_cancelled_was_stopped_on_request() {
    let fixture = Fixture::new();
    let (mut client, sleepers) = at_work(&fixture, 194);
    let task = text(&fixture.json(&["log", "--tool", "shell_exec"])[0]["callId"]);
    client.ask("tasks/cancel", json!({"taskId": task}));
    let done = ended(&mut client, &task);
    let told =
        "OUTCOME_UNKNOWN: the call was stopped on request; what it sent until then may have arrived: check before";
    assert!(said(&done["result"]).starts_with(told), "{done:#}");
    assert_eq!(sleepers.alive(), 0);
}

#[test]
fn there_are_no_tasks_but_those_that_were_begun() {
    let fixture = Fixture::new();
    let mut able = client(&fixture);
    for task in ["", "tc_no", "tc_01a1e429d34b726393c847212818500c", "../../etc/passwd"] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let answer = able.ask(method, json!({"taskId": task, "inputResponses": {}}));
            assert_eq!(answer["error"]["code"], json!(-32602), "{method} {task}: {answer:#}");
        }
    }
    let unnamed = able.ask("tasks/get", json!({}));
    assert_eq!(unnamed["error"]["code"], json!(-32602), "{unnamed:#}");
    let task = begun(&mut able, "write_file", &writing());
    for unable in [ASKS, MUTE] {
        let answer = Client::new(&fixture, Era::Stateless, unable).ask("tasks/get", json!({"taskId": task}));
        assert!(answer.get("error").is_some(), "{answer:#}");
    }
}

#[test]
fn a_task_outlives_the_server_that_began_it() {
    let fixture = Fixture::new();
    let mut first = client(&fixture);
    let task = begun(&mut first, "write_file", &writing());
    first.kill();
    let mut second = client(&fixture);
    assert_eq!(look(&mut second, &task)["status"], json!("input_required"));
    update(&mut second, &task, true);
    succeeded(&ended(&mut second, &task)["result"]);
    assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
    second.kill();
    // How it ended is still known, and nothing is done twice.
    std::fs::remove_file(fixture.path("made.txt")).unwrap();
    let mut third = client(&fixture);
    succeeded(&look(&mut third, &task)["result"]);
    update(&mut third, &task, true);
    assert_eq!(fixture.text("made.txt"), None);
}

#[test]
fn a_state_outlives_the_server_that_gave_it() {
    let fixture = Fixture::new();
    let mut first = Client::new(&fixture, Era::Stateless, ASKS);
    let state = first.call("write_file", &writing())["requestState"].clone();
    first.kill();
    let given = json!({"action": "accept", "content": {"approve": true}});
    let params = json!({
        "name": "write_file",
        "arguments": writing(),
        "requestState": state,
        "inputResponses": {"approval": given},
    });
    let answer = Client::new(&fixture, Era::Stateless, ASKS).ask("tools/call", params);
    succeeded(&answer["result"]);
    assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
}

#[test]
fn a_question_outlives_the_client_that_was_killed_while_it_waited() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, ASKS);
    client.begin("write_file", &writing());
    client.form();
    let call = fixture.asked(&[]);
    client.kill();
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    assert_eq!(fixture.text("made.txt").as_deref(), Some("made\n"));
}

//! A server that asks in the middle of a call: whoever is behind the call answers, in whichever era both are.

use serde_json::{Value, json};

use crate::{
    bench::{Bench, server},
    client::{ASKS, Client, Era, MUTE, TASKS, said, succeeded},
    support::{ALL, Running, Terminal, events, text, until},
};

const EACH: [bool; 2] = [false, true];

/// Somebody with a server of either era that asks.
fn bench(modern: bool) -> Bench {
    Bench::with(&json!({"asks": true, "modern": modern}))
}

/// A call that goes on in another process, and waits for answers.
fn begun(bench: &Bench, tool: &str) -> Running {
    let words = ["call", &format!("mcp__fake__{tool}"), "--json", "--wait", "100"];
    Running::start(bench.0.haft(&[&words[..], ALL].concat()))
}

/// The one open question, once there is one.
fn asked(bench: &Bench) -> Value {
    until("a question", || {
        let open = bench.0.json(&["approvals"]);
        open.as_array().unwrap().first().cloned()
    })
}

fn call_of(question: &Value) -> String {
    text(&question["callId"])
}

/// What the server was told, as it says itself.
fn told(outcome: &Value) -> Value {
    serde_json::from_str(outcome["result"]["content"].as_str().unwrap_or_else(|| panic!("{outcome:#}"))).unwrap()
}

#[test]
fn it_is_answered_from_another_process() {
    for modern in EACH {
        let bench = bench(modern);
        let calling = begun(&bench, "ask");
        let question = asked(&bench);
        let (call, form) = (call_of(&question), &question["evidence"]["form"]);
        assert_eq!(form["message"], "The MCP server `fake` asks: What is the password?", "{question:#}");
        assert_eq!(form["schema"]["properties"]["password"]["type"], "string", "{question:#}");
        for wrong in [&["--always", "call"][..], &["--alike"]] {
            assert_eq!(bench.0.run(&[&["approve", &call], wrong].concat()).code, Some(1));
        }
        assert_eq!(bench.0.run(&["commit", &call]).code, Some(1));
        let card = bench.0.run(&["approvals"]).said();
        assert!(card.contains("fake") && card.contains("password (text)") && card.contains("--input"), "{card}");
        for (wrong, why) in [("{}", "`password`"), (r#"{"password": "x"}"#, "at least 3"), (r#"{"pass": 1}"#, "pass")] {
            let refused = bench.0.run(&["approve", &call, "--input", wrong]);
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert!(refused.stderr.contains(why) || refused.stderr.contains("password"), "{refused:?}");
            assert_eq!(call_of(&asked(&bench)), call, "it stays open");
        }
        let given = bench.0.run(&["approve", &call, "--input", r#"{"password": "hunter22"}"#]);
        assert_eq!(given.code, Some(0), "{given:?}");
        let outcome = calling.finish().json();
        let heard = json!({"action": "accept", "content": {"color": "g", "password": "hunter22"}});
        assert_eq!(told(&outcome), heard);
        assert_eq!(bench.0.json(&["approvals"]), json!([]));
        // The journal tells who was asked what, and what was said but for the secret.
        let story = bench.0.json(&["log", "show", &call]);
        let kinds = events(&story);
        assert!(kinds.contains(&"tool.asks".to_owned()) && kinds.contains(&"tool.answered".to_owned()), "{kinds:?}");
        let shown = bench.0.run(&["log", "show", &call]).said();
        assert!(shown.contains("asks: The MCP server `fake`") && shown.contains(r#""color":"g""#), "{shown}");
        let answered = story["events"].as_array().unwrap().iter().find(|one| one["data"]["event"] == "tool.answered");
        assert_eq!(answered.unwrap()["data"]["answer"]["values"]["password"], "[redacted]", "{story:#}");
        let late = bench.0.run(&["approve", &call, "--input", r#"{"password": "late"}"#]);
        assert!(late.code == Some(1) && late.stderr.contains("already answered"), "{late:?}");
    }
}

#[test]
fn it_may_ask_again_and_may_be_told_no() {
    for modern in EACH {
        let bench = bench(modern);
        let calling = begun(&bench, "ask_again");
        let first = asked(&bench);
        let call = call_of(&first);
        bench.0.json(&["approve", &call, "--input", r#"{"password": "first"}"#]);
        let second =
            until("the second question", || Some(asked(&bench)).filter(|one| one["number"] != first["number"]));
        assert_eq!(call_of(&second), call);
        bench.0.json(&["reject", &call, "--message", "no more"]);
        assert_eq!(told(&calling.finish().json()), json!({"action": "decline"}));
    }
}

#[test]
fn what_a_client_says_in_advance_counts_only_where_it_may_answer() {
    for (may, says) in [("safe", "accept"), ("none", "")] {
        let bench = bench(true);
        bench.settings(&format!("[mcp]\nclient_may_approve = '{may}'\n"));
        let mut client = Client::with(&bench.0.fixture, Era::Stateless, ASKS, ALL);
        let given = json!({"secret": {"action": "accept", "content": {"password": "given before"}}});
        let params = json!({"name": "mcp__fake__ask", "arguments": {}, "inputResponses": given});
        let request = client.request("tools/call", params);
        if says.is_empty() {
            bench.0.json(&["approve", &call_of(&asked(&bench)), "--input", r#"{"password": "by a person"}"#]);
        }
        let told = said(&client.result_of(&request));
        assert_eq!(told.contains("given before"), !says.is_empty(), "{may}: {told}");
        assert_eq!(told.contains("by a person"), says.is_empty(), "{may}: {told}");
    }
}

#[test]
fn nobody_who_could_answer_is_no_answer() {
    for modern in EACH {
        let outcome = bench(modern).does("ask", &json!({}));
        assert_eq!(outcome["content"], r#"{"action": "cancel"}"#, "{outcome:#}");
    }
}

#[test]
fn only_forms_are_passed_on() {
    for modern in EACH {
        let bench = bench(modern);
        for (tool, why) in
            [("ask_page", "only forms"), ("ask_model", "sampling/createMessage"), ("ask_roots", "roots/list")]
        {
            let (_, outcome) = bench.call(tool, &json!({}));
            let outcome = outcome.to_string();
            assert!(outcome.contains(why) || outcome.contains("does not pass on"), "{tool}: {outcome}");
            assert_eq!(bench.0.json(&["approvals"]), json!([]));
        }
    }
}

#[test]
fn a_person_at_the_terminal_fills_it_in_field_by_field() {
    let bench = bench(true);
    let words = ["call", "mcp__fake__ask", "--auto-approve", "all"];
    let mut terminal = Terminal::start(bench.0.haft(&words));
    terminal.read_until("Answer this?");
    terminal.type_in("y\n");
    terminal.read_until("password");
    terminal.type_in("x\n");
    terminal.read_until("at least 3");
    terminal.type_in("hunter22\n");
    assert!(terminal.read_until("[g]").contains("Red (r)"));
    terminal.type_in("7\n");
    terminal.read_until("none of the list");
    terminal.type_in("1\n");
    let shown = terminal.read_until("hunter22\"");
    assert!(shown.contains(r#""color": "r""#) && shown.contains("accept"), "{shown}");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn whoever_watches_for_questions_is_asked_each_of_them() {
    let bench = bench(false);
    let mut terminal = Terminal::start(bench.0.haft(&["approvals", "--watch"]));
    terminal.read_until("waiting for questions");
    let calling = begun(&bench, "ask_again");
    for _ in 0..2 {
        terminal.read_until("Answer this?");
        terminal.type_in("y\n");
        terminal.read_until("password");
        terminal.type_in("abc\n");
        terminal.read_until("[g]");
        terminal.type_in("\n");
        terminal.read_until("goes on with it");
    }
    let heard = json!({"action": "accept", "content": {"color": "g", "password": "abc"}});
    assert_eq!(told(&calling.finish().json()), heard);
}

#[test]
fn a_process_that_is_killed_takes_its_question_with_it() {
    for modern in EACH {
        let bench = bench(modern);
        let calling = begun(&bench, "ask");
        let call = call_of(&asked(&bench));
        calling.kill();
        assert_eq!(bench.0.json(&["approvals"]), json!([]));
        let story = bench.0.json(&["log", "show", &call]);
        assert_eq!(story["outcome"]["error"]["code"], "INTERRUPTED", "{story:#}");
        let late = bench.0.run(&["approve", &call, "--input", r#"{"password": "late"}"#]);
        assert_eq!(late.code, Some(1), "{late:?}");
    }
}

/// Answers once what the client is asked, in its own way; gives the result of the call.
fn answered_in(client: &mut Client, era: Era, tool: &str, given: &Value) -> Value {
    let name = format!("mcp__fake__{tool}");
    if era == Era::Initialize {
        let call = client.begin(&name, &json!({}));
        let (id, form) = client.form();
        assert!(text(&form["message"]).starts_with("The MCP server `fake` asks"), "{form:#}");
        client.send(&json!({"jsonrpc": "2.0", "id": id, "result": given}));
        return client.result_of(&call);
    }
    let asked = client.call(&name, &json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let (key, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(text(&form["params"]["message"]).contains("What is the password?"), "{asked:#}");
    let inputs = Value::Object([(key.clone(), given.clone())].into_iter().collect());
    let again = json!({"name": name, "arguments": {}, "requestState": asked["requestState"], "inputResponses": inputs});
    client.ask("tools/call", again)["result"].clone()
}

#[test]
fn a_client_passes_the_question_on_in_its_own_era() {
    let accept = json!({"action": "accept", "content": {"password": "hunter22"}});
    for modern in EACH {
        let bench = bench(modern);
        bench.servers(&[]);
        for era in Era::BOTH {
            let mut client = Client::with(&bench.0.fixture, era, ASKS, ALL);
            let result = answered_in(&mut client, era, "ask", &accept);
            succeeded(&result);
            assert!(said(&result).contains(r#""password": "hunter22""#), "{result:#}");
            let declined = answered_in(&mut client, era, "ask", &json!({"action": "decline"}));
            assert_eq!(said(&declined), r#"{"action": "decline"}"#, "{declined:#}");
            assert!(client.leave().success());
        }
    }
}

#[test]
fn a_client_is_told_what_is_wrong_and_asked_again() {
    let bench = bench(true);
    let wrong = json!({"action": "accept", "content": {"password": "x"}});
    let mut older = Client::with(&bench.0.fixture, Era::Initialize, ASKS, ALL);
    let call = older.begin("mcp__fake__ask", &json!({}));
    let (id, _) = older.form();
    older.send(&json!({"jsonrpc": "2.0", "id": id, "result": wrong}));
    let (id, form) = older.form();
    assert!(text(&form["message"]).contains("at least 3"), "{form:#}");
    older.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"password": "abc"}}}));
    succeeded(&older.result_of(&call));
    let mut newer = Client::with(&bench.0.fixture, Era::Stateless, ASKS, ALL);
    let again = answered_in(&mut newer, Era::Stateless, "ask", &wrong);
    assert_eq!(again["resultType"], "input_required", "{again:#}");
    assert!(again["inputRequests"].to_string().contains("at least 3"), "{again:#}");
}

#[test]
fn what_a_client_puts_away_is_answered_elsewhere() {
    for era in Era::BOTH {
        let bench = bench(false);
        let mut client = Client::with(&bench.0.fixture, era, ASKS, ALL);
        let cancelled = json!({"action": "cancel"});
        let give =
            |bench: &Bench| bench.0.json(&["approve", &call_of(&asked(bench)), "--input", r#"{"password": "abc"}"#]);
        if era == Era::Initialize {
            let call = client.begin("mcp__fake__ask", &json!({}));
            let (id, _) = client.form();
            client.send(&json!({"jsonrpc": "2.0", "id": id, "result": cancelled}));
            give(&bench);
            succeeded(&client.result_of(&call));
        } else {
            let pending = answered_in(&mut client, era, "ask", &cancelled);
            assert!(said(&pending).starts_with("PENDING: "), "{pending:#}");
            let call = call_of(&asked(&bench));
            give(&bench);
            let waited = client.call("wait_call", &json!({"callId": call}));
            assert!(waited.to_string().contains("success"), "{waited:#}");
        }
    }
}

#[test]
fn a_client_that_follows_tasks_answers_the_task() {
    let bench = bench(true);
    let mut client = Client::with(&bench.0.fixture, Era::Stateless, TASKS, ALL);
    let task = client.call("mcp__fake__ask", &json!({}));
    assert_eq!(task["resultType"], "task", "{task:#}");
    let id = text(&task["taskId"]);
    let look = |client: &mut Client| client.ask("tasks/get", json!({"taskId": id}))["result"].clone();
    let asked = look(&mut client);
    assert_eq!(asked["status"], "input_required", "{asked:#}");
    let update = |client: &mut Client, values: Value| {
        let given = json!({"secret": {"action": "accept", "content": values}});
        client.ask("tasks/update", json!({"taskId": id, "inputResponses": given}))
    };
    let wrong = update(&mut client, json!({"password": "x"}));
    assert!(text(&wrong["error"]["message"]).contains("at least 3"), "{wrong:#}");
    update(&mut client, json!({"password": "abc"}));
    let done = until("the end of the task", || Some(look(&mut client)).filter(|task| task["status"] == "completed"));
    succeeded(&done["result"]);
}

#[test]
fn a_server_that_ends_ends_what_waits_for_answers() {
    for (era, able) in [(Era::Stateless, ASKS), (Era::Initialize, MUTE)] {
        let bench = bench(true);
        let mut client = Client::with(&bench.0.fixture, era, able, ALL);
        client.begin("mcp__fake__ask", &json!({}));
        let call = call_of(&asked(&bench));
        assert!(client.leave().success());
        assert_eq!(bench.0.json(&["approvals"]), json!([]));
        let story = bench.0.json(&["log", "show", &call]);
        assert_ne!(story["status"], "executing", "{story:#}");
    }
}

#[test]
fn sounds_and_files_arrive_as_such() {
    let bench = Bench::new();
    bench.list(&json!({ "fake": server(&json!({"asks": true})) }));
    let mut client = Client::with(&bench.0.fixture, Era::Initialize, MUTE, ALL);
    let result = client.call("mcp__fake__media", &json!({}));
    let content = result["content"].as_array().unwrap();
    let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    assert_eq!((content.len(), &content[0]), (3, &audio), "{result:#}");
    let files = [
        json!({"uri": "x://a", "mimeType": "text/csv", "text": "a,b"}),
        json!({"uri": "x://b", "mimeType": "image/gif", "blob": "BBBB"}),
    ];
    assert_eq!((&content[1]["resource"], &content[2]["resource"]), (&files[0], &files[1]), "{result:#}");
    let printed = bench.0.run(&["call", "mcp__fake__media", "--auto-approve", "all"]).said();
    for line in ["[audio/wav; --json prints it]", "[x://a, text/csv, 3 characters", "a,b", "[x://b, image/gif"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

//! What is listed and answered: alike in both eras, but for the words that each has.

use std::fs;

use haft_runtime::Shape;
use serde_json::{Value, json};

use crate::{
    client::{ASKS, Client, Era, MUTE, call_id, facts, failed, recorded, said, succeeded},
    support::{Fixture, text},
};

/// The smallest picture there is.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

#[test]
fn a_server_says_what_it_is_and_can() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::silent(fixture.haft(&["mcp"]), era, MUTE);
        let result = client.greet()["result"].clone();
        assert!(result["capabilities"]["tools"].is_object() && result["capabilities"]["resources"].is_object());
        assert!(text(&result["instructions"]).contains("wait_call"), "{result:#}");
        match era {
            Era::Initialize => {
                assert_eq!(result["protocolVersion"], json!(era.version()));
                assert_eq!(result["serverInfo"]["name"], json!("haft"));
            }
            Era::Stateless => {
                assert!(result["supportedVersions"].as_array().unwrap().contains(&json!(era.version())));
                assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], json!("haft"));
            }
        }
        assert!(client.leave().success());
    }
}

#[test]
fn every_tool_is_listed_whole_in_order_and_with_the_same_bytes() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let mut list = || {
            client.request_as(&json!("list"), "tools/list", json!({}));
            client.line().unwrap()
        };
        let listed = list();
        assert_eq!(listed, list());
        let answer: Value = serde_json::from_str(&listed).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<String> = tools.iter().map(|tool| text(&tool["name"])).collect();
        assert!(names.is_sorted() && names.iter().any(|name| name == "read_file"), "{names:?}");
        for tool in tools {
            assert!(!text(&tool["title"]).is_empty() && !text(&tool["description"]).is_empty(), "{tool:#}");
            let kinds = (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]);
            assert_eq!(kinds, (&json!("object"), &json!("object")), "{tool:#}");
        }
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let hints = &tool["annotations"];
            (hints["readOnlyHint"].clone(), hints["destructiveHint"].clone())
        };
        assert_eq!(hints("read_file"), (json!(true), json!(false)));
        // Not destructive would mean that they only add something.
        for tool in ["delete_file", "write_file", "edit_file", "shell_exec"] {
            assert_eq!(hints(tool), (json!(false), json!(true)), "{tool}");
        }
    }
}

#[test]
fn many_tools_are_listed_in_pages_without_gap_or_repetition() {
    let fixture = Fixture::new();
    for number in 0..300 {
        let manifest =
            format!("name = \"mine_{number:03}\"\ndescription = \"Number {number}.\"\ncommand = [\"true\"]\n");
        fixture.put(&format!(".haft/tools/mine_{number:03}.toml"), manifest);
    }
    assert_eq!(fixture.run(&["trust", "--yes"]).code, Some(0));
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let mut names: Vec<String> = Vec::new();
        let (mut cursor, mut pages) = (json!({}), 0);
        loop {
            let page = client.ask("tools/list", cursor.clone())["result"].clone();
            names.extend(page["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])));
            pages += 1;
            let Some(next) = page.get("nextCursor") else { break };
            cursor = json!({"cursor": next});
        }
        assert!(pages > 1, "{pages}");
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert_eq!(names.iter().filter(|name| name.starts_with("mine_")).count(), 300);
        let project = client.call("mine_007", &json!({}));
        succeeded(&project);
    }
}

#[test]
fn a_result_is_text_and_value_and_both_fit() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "grüße\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let result = client.call("read_file", &json!({"path": "a.txt"}));
        succeeded(&result);
        assert_eq!(said(&result), "     1→grüße");
        assert_eq!(result["structuredContent"]["content"], json!("grüße\n"), "{result:#}");
        assert_eq!(result.get("resultType"), (era == Era::Stateless).then_some(&json!("complete")));
        let story = recorded(&fixture, &result);
        assert_eq!(
            (&story["tool"], &story["outcome"]["status"]),
            (&json!("read_file"), &json!("success")),
            "{story:#}"
        );
    }
}

#[test]
fn a_picture_is_handed_over_as_one() {
    let fixture = Fixture::new();
    fixture.put("dot.png", PICTURE);
    for era in Era::BOTH {
        let result = Client::new(&fixture, era, MUTE).call("read_file", &json!({"path": "dot.png"}));
        let picture = &result["content"][1];
        assert_eq!((&picture["type"], &picture["mimeType"]), (&json!("image"), &json!("image/png")), "{result:#}");
        assert!(text(&picture["data"]).starts_with("iVBORw0KGgo"), "{result:#}");
    }
}

#[test]
fn a_large_result_is_short_with_a_link_to_the_whole() {
    let fixture = Fixture::new();
    let large: String = (0..50_000).map(|line| format!("line {line}\n")).collect();
    fixture.put("large.txt", &large);
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let result = client.call("shell_exec", &json!({"command": "cat large.txt"}));
        succeeded(&result);
        assert!(result.to_string().len() < 68 << 10, "{}", result.to_string().len());
        let (value, call) = (&result["structuredContent"], call_id(&result));
        let (said, cut) = (text(&value["stdout"]), &value["cut"]);
        assert!(said.starts_with("line 0\nline 1\n") && said.ends_with("line 49998\nline 49999\n"), "{said}");
        assert!(said.contains(" characters omitted …\n"), "{cut:#}");
        assert_eq!(
            (&value["truncated"], &value["callId"], &value["exitCode"]),
            (&json!(true), &json!(call), &json!(0))
        );
        assert!(text(&result["content"][0]["text"]).contains(&format!("`result_query` with `callId` {call} reads")));
        assert_eq!(facts(&result)["truncated"], json!(true), "{result:#}");
        let parts = cut["parts"].as_array().unwrap();
        assert!(parts.iter().any(|part| part["pointer"] == "/stdout" && part["total"] == large.len()), "{cut:#}");
        fits(&mut client, "shell_exec", value);
        // The end of what is missing in the middle.
        let at = json!({"callId": call, "pointer": "/stdout", "offset": 300_000, "limit": 30_000});
        let more = client.call("result_query", &at);
        assert!(text(&more["structuredContent"]["content"]) == large[300_000..330_000], "{more:#}");
        let link = &result["content"][1];
        assert_eq!(link["type"], json!("resource_link"), "{result:#}");
        let read = client.ask("resources/read", json!({"uri": link["uri"]}));
        let whole: Value = serde_json::from_str(&text(&read["result"]["contents"][0]["text"])).unwrap();
        assert!(text(&whole["stdout"]) == large, "{}", text(&whole["stdout"]).len());
        let missing = client.ask("resources/read", json!({"uri": "haft://result/tc_no"}));
        assert!(text(&missing["error"]["message"]).contains("haft://result/tc_no"), "{missing:#}");
    }
}

/// What is missing in a text that was cut.
fn omitted(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(" omitted")).collect()
}

#[test]
fn whoever_waits_for_a_call_gets_what_it_gave() {
    let fixture = Fixture::new();
    fixture.put("dot.png", PICTURE);
    let calls = [
        ("shell_exec", json!({"command": "seq 50000"})),
        ("shell_exec", json!({"command": "seq 3"})),
        ("read_file", json!({"path": "dot.png"})),
    ];
    for (era, (tool, input)) in Era::BOTH.into_iter().flat_map(|era| calls.clone().map(|call| (era, call))) {
        let mut client = Client::new(&fixture, era, MUTE);
        let given = client.call(tool, &input);
        recorded(&fixture, &given);
        let waited = client.call("wait_call", &json!({"callId": call_id(&given)}));
        succeeded(&waited);
        let value = &waited["structuredContent"];
        fits(&mut client, "wait_call", value);
        assert_eq!(value["result"], given["structuredContent"], "{tool}");
        assert_eq!((&value["status"], &value["tool"]), (&json!("success"), &json!(tool)));
        assert_eq!(omitted(&said(&waited)), omitted(&said(&given)), "{tool}");
        assert!(said(&waited).ends_with(&said(&given)), "{}", said(&waited));
        let beside = |result: &Value| result["content"].as_array().unwrap()[1..].to_vec();
        assert_eq!(beside(&waited), beside(&given), "{tool}");
        let first = said(&waited).lines().next().unwrap().to_owned();
        assert_eq!(first.contains(&call_id(&given)), !omitted(&said(&given)).is_empty(), "{first}");
        // Waiting for the wait gives the same, and so does reading on by its id.
        recorded(&fixture, &waited);
        let again = client.call("wait_call", &json!({"callId": call_id(&waited)}));
        assert_eq!((&again["content"], &again["structuredContent"]), (&waited["content"], value), "{tool}");
        let [read, whole] =
            [&waited, &given].map(|call| client.call("result_query", &json!({"callId": call_id(call)})));
        assert_eq!(read["structuredContent"], whole["structuredContent"], "{tool}");
    }
}

/// A value is what the tool's schema says, cut or not.
fn fits(client: &mut Client, tool: &str, value: &Value) {
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema = &tools.iter().find(|listed| listed["name"] == tool).unwrap()["outputSchema"];
    assert_eq!(Shape::new(schema).unwrap().fault(value), None);
}

#[test]
fn a_long_text_stands_in_a_value_once_and_a_short_one_as_it_is() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, MUTE);
    let long = client.call("shell_exec", &json!({"command": "seq 1000"}));
    let value = &long["structuredContent"];
    assert!(text(&value["stdout"]).ends_with("\n1000\n"), "{long:#}");
    assert_eq!((value.get("output"), value.get("cut"), &value["truncated"]), (None, None, &json!(false)));
    assert_eq!(long["content"].as_array().unwrap().len(), 1, "{long:#}");
    fits(&mut client, "shell_exec", value);
    let short = client.call("shell_exec", &json!({"command": "seq 3; echo no >&2"}));
    let value = &short["structuredContent"];
    assert_eq!((&value["stdout"], &value["stderr"]), (&json!("1\n2\n3\n"), &json!("no\n")), "{short:#}");
    assert_eq!((said(&short).as_str(), value.get("cut")), ("1\n2\n3\nno\n[exit 0]", None), "{short:#}");
}

#[test]
fn a_list_that_is_too_long_is_cut_with_a_link_to_the_whole() {
    let fixture = Fixture::new();
    for number in 0..900 {
        fixture.put(&format!("folder/with_a_name_of_its_own_{number:03}"), "");
    }
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let result = client.call("list_directory", &json!({"path": "folder"}));
    let value = &result["structuredContent"];
    assert!(value.to_string().len() < 40 << 10, "{}", value.to_string().len());
    let part = &value["cut"]["parts"][0];
    let pointer = text(&part["pointer"]);
    assert_eq!(value.pointer(&pointer).unwrap().as_array().unwrap().len(), part["kept"], "{part}");
    fits(&mut client, "list_directory", value);
    let link = result["content"].as_array().unwrap().iter().find(|block| block["type"] == "resource_link").unwrap();
    let read = client.ask("resources/read", json!({"uri": link["uri"]}));
    let whole: Value = serde_json::from_str(&text(&read["result"]["contents"][0]["text"])).unwrap();
    assert_eq!(whole.pointer(&pointer).unwrap().as_array().unwrap().len(), 900);
}

#[test]
fn a_failure_is_told_to_the_model_with_its_code() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, ASKS);
        let missing = client.call("read_file", &json!({"path": "nowhere"}));
        failed(&missing, "error", "FILE_NOT_FOUND");
        assert_eq!(facts(&missing)["error"]["code"], json!("FILE_NOT_FOUND"), "{missing:#}");
        assert_eq!(facts(&missing)["error"]["recoverable"], json!(false), "{missing:#}");
        failed(&client.call("read_file", &json!({"pth": "a"})), "error", "INVALID_ARGS");
        failed(&client.call("read_file", &json!({"path": "../../etc/passwd"})), "error", "INVALID_PATH");
    }
}

#[test]
fn what_is_no_call_is_the_protocols_own_error() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let unknown = client.ask("tools/call", json!({"name": "red_file", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown:#}");
        assert!(text(&unknown["error"]["message"]).contains("red_file"), "{unknown:#}");
        let method = client.ask("tools/dance", json!({}));
        assert_eq!(method["error"]["code"], json!(-32601), "{method:#}");
        let nameless = client.ask("tools/call", json!({"arguments": {}}));
        assert_eq!(nameless["error"]["code"], json!(-32602), "{nameless:#}");
        let list = client.ask("tools/call", json!({"name": "read_file", "arguments": ["a.txt"]}));
        assert_eq!(list["error"]["code"], json!(-32602), "{list:#}");
        for cursor in [json!(5), json!({}), json!(["a"]), json!(true)] {
            let list = client.ask("tools/list", json!({"cursor": cursor}));
            assert_eq!(list["error"]["code"], json!(-32602), "{list:#}");
            assert!(text(&list["error"]["message"]).contains("expected a string"), "{list:#}");
        }
        assert!(client.ask("tools/list", json!({"cursor": null}))["result"]["tools"].is_array());
    }
}

#[test]
fn a_version_that_nobody_knows_is_refused_with_those_that_are_known() {
    let fixture = Fixture::new();
    let mut client = Client::silent(fixture.haft(&["mcp"]), Era::Initialize, MUTE);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2031-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let refused = client.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(refused["error"]["code"], json!(-32022), "{refused:#}");
    let known = refused["error"]["data"]["supported"].as_array().unwrap();
    assert!(Era::BOTH.iter().all(|era| known.contains(&json!(era.version()))), "{refused:#}");
    // In the older era, the server names one that it knows, and the client decides.
    let about = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": about});
    let answer = client.ask("initialize", params);
    assert_eq!(answer["result"]["protocolVersion"], json!("2025-11-25"), "{answer:#}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn ids_may_be_text_and_come_back_as_they_were() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        for id in [json!("one"), json!("1"), json!(1), json!(""), json!("ü\n\"")] {
            client.request_as(&id, "tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
            assert_eq!(client.hear()["id"], id);
        }
    }
}

#[test]
fn a_call_that_waits_holds_up_no_other() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for era in Era::BOTH {
        let _ = fs::remove_file(fixture.path("b.txt"));
        let mut client = Client::new(&fixture, era, MUTE);
        let waiting = client.begin("write_file", &json!({"path": "b.txt", "content": "b\n"}));
        let call = fixture.asked(&[]);
        succeeded(&client.call("read_file", &json!({"path": "a.txt"})));
        assert_eq!(fixture.text("b.txt"), None);
        assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
        let result = client.result_of(&waiting);
        succeeded(&result);
        assert_eq!((call_id(&result), fixture.text("b.txt").as_deref()), (call, Some("b\n")));
    }
}

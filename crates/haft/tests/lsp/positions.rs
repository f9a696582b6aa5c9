//! Lines and columns, whatever a server counts.

use haft_runtime::ErrorCode;
use serde_json::{Value, json};

use crate::bench::{Bench, servers};

/// An emoji, a combining accent, a tab, CRLF, and a last line without an end.
const TEXT: &str = "🦀 word bad\r\n\te\u{301} word\n\nword";

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "col": from }, "end": { "line": line, "col": to } })
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_characters_whatever_the_server_counts() {
    for options in [json!({}), json!({ "encoding": "utf-8" }), json!({ "encoding": "utf-32", "pull": true })] {
        let bench = Bench::fake(options.clone());
        bench.fixture.put("a.fake", TEXT);
        let found = bench.ask("references", json!({ "path": "a.fake", "line": 4, "col": 5 })).await;
        let ranges: Vec<&Value> = found["references"].as_array().unwrap().iter().map(|one| &one["range"]).collect();
        assert_eq!(ranges, [&range(1, 3, 7), &range(2, 5, 9), &range(4, 1, 5)], "{options}");
        assert_eq!((&found["total"], &found["truncated"], &found["ready"]), (&json!(3), &json!(false), &json!(true)));
        assert_eq!(found["references"][1]["preview"], json!("e\u{301} word"));
        let few = bench.ask("references", json!({ "path": "a.fake", "line": 1, "col": 1, "limit": 1 })).await;
        assert_eq!((few["references"].as_array().unwrap().len(), &few["truncated"]), (1, &json!(true)));
        let wrong = bench.ask("diagnostics", json!({ "path": "a.fake" })).await;
        assert_eq!(wrong["diagnostics"][0]["range"], range(1, 8, 11), "{options}");
        assert_eq!(wrong["counts"], json!({ "error": 0, "warning": 1, "information": 0, "hint": 0 }));
        let symbols = bench.ask("symbols", json!({ "path": "a.fake" })).await;
        assert_eq!((&symbols["symbols"][0]["kind"], &symbols["path"]), (&json!("function"), &json!("a.fake")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_past_the_end_is_refused_with_the_bounds() {
    let bench = Bench::fake(json!({}));
    bench.fixture.put("a.fake", TEXT);
    for (line, col, expected) in
        [(5, 1, "lines are 1 to 4"), (4, 6, "columns are 1 to 5"), (1, 12, "columns are 1 to 11")]
    {
        let refused = bench.try_to("hover", json!({ "path": "a.fake", "line": line, "col": col })).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidArgs);
        assert!(refused.message.contains(expected), "{}", refused.message);
    }
    assert!(servers(&bench.fixture).is_empty(), "no server is started for that");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_known_the_value_says_so() {
    let bench = Bench::fake(json!({}));
    bench.fixture.put("a.fake", "unknown");
    let found = bench.ask("hover", json!({ "path": "a.fake", "line": 1, "col": 1 })).await;
    assert_eq!(found, json!({ "contents": null, "ready": true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_outside_is_named_and_never_read() {
    let bench = Bench::fake(json!({ "mode": "outside" }));
    bench.fixture.put("a.fake", "word");
    bench.fixture.put(".env", "SECRET=1");
    std::os::unix::fs::symlink("/etc/hostname", bench.fixture.path("leads-out.fake")).unwrap();
    let found = bench.ask("definition", json!({ "path": "a.fake", "line": 1, "col": 1 })).await;
    let told = |one: &Value| (one["path"].clone(), one["external"] == true, one.get("preview").is_some());
    let told: Vec<_> = found["locations"].as_array().unwrap().iter().map(told).collect();
    let expected = [
        ("/etc/passwd", true, false),
        ("made:up", true, false),
        ("leads-out.fake", true, false),
        ("gone.fake", false, false),
        (".env", false, false),
        ("a.fake", false, true),
    ];
    assert_eq!(told, expected.map(|(path, external, preview)| (json!(path), external, preview)));
    for (path, code) in [
        ("leads-out.fake", ErrorCode::InvalidPath),
        ("../a.fake", ErrorCode::InvalidPath),
        (".env", ErrorCode::PermissionDenied),
        ("none.fake", ErrorCode::FileNotFound),
    ] {
        assert_eq!(bench.try_to("symbols", json!({ "path": path })).await.unwrap_err().code, code, "{path}");
    }
}

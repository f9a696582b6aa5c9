//! What is put in, and what stays.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, merge, parse, put};

fn haft() -> Value {
    json!({"command": "/bin/haft", "args": ["mcp"]})
}

fn with(text: &str) -> String {
    let once = put(text, &["servers", "haft"], &haft()).unwrap();
    assert_eq!(put(&once, &["servers", "haft"], &haft()).unwrap(), once, "twice is once");
    assert_eq!(at(&parse(&once).unwrap(), &["servers", "haft"]), Some(&haft()));
    once
}

const ENTRY: &str = r#""haft": {
      "command": "/bin/haft",
      "args": [
        "mcp"
      ]
    }"#;

#[test]
fn a_new_file_holds_the_entry_alone() {
    for empty in ["", " \n", "{}", "{\n}\n"] {
        let written = with(empty);
        assert_eq!(written.trim_end(), format!("{{\n  \"servers\": {{\n    {ENTRY}\n  }}\n}}"), "{empty:?}");
    }
}

#[test]
fn comments_order_and_layout_stay() {
    let old = "// mine\n{\n  \"z\": [1,2], // why\n  \"servers\": {\n    \"x\": {\"command\": \"a,b}\"} /* x */\n  },\n  \"a\": 1\n}\n";
    let new = with(old);
    assert_eq!(new, old.replace("\"a,b}\"} /* x */", &format!("\"a,b}}\"}}, /* x */\n    {ENTRY}")));
}

#[test]
fn a_remark_stays_with_its_entry_and_a_trailing_comma_trails() {
    let trailing = "{\n  \"servers\": {\n    \"x\": 1, // last\n    /* end */\n  },\n}\n";
    assert_eq!(with(trailing), trailing.replace("// last", &format!("// last\n    {ENTRY},")));
    let several = "{\n  \"servers\": {\n    \"x\": 1 /* a\n    b */ // c\n  }\n}\n";
    assert_eq!(with(several), several.replace("1 /*", "1, /*").replace("// c", &format!("// c\n    {ENTRY}")));
    let begun = "{\"servers\": {\"x\": 1 // c\n}}";
    assert!(with(begun).starts_with("{\"servers\": {\"x\": 1, // c\n\"haft\": {\n"), "{}", with(begun));
    assert!(with(r#"{"servers": {"x": 1,},}"#).starts_with(r#"{"servers": {"x": 1, "haft": {"#));
    assert!(with(r#"{"servers": {"x": 1,},}"#).ends_with("]},},}"));
}

#[test]
fn lines_end_as_the_others_do() {
    let ends_in_two = |text: &str| text.replace('\n', "\r\n");
    for old in [
        "{\n}\n",
        "{\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"b\"}\n\t}\n}\n",
        "{\n  \"servers\": {\n    \"x\": 1 /* a\n    b */ // c\n  }\n}\n",
        "{\n  \"servers\": {\n    \"haft\": {\"old\": true}, // c\n  }\n}\n",
    ] {
        assert_eq!(with(&ends_in_two(old)), ends_in_two(&with(old)));
    }
}

#[test]
fn an_old_entry_is_replaced_where_it_stands() {
    let old = "{\n  \"servers\": {\n    \"haft\": {\"old\": true},\n    \"x\": 1\n  }\n}";
    assert_eq!(with(old), format!("{{\n  \"servers\": {{\n    {ENTRY},\n    \"x\": 1\n  }}\n}}"));
}

#[test]
fn only_what_is_said_is_set_in_an_entry_that_is_there() {
    let merged = |text: &str, entry: &Value| {
        let once = merge(text, &["servers", "haft"], entry).unwrap();
        assert_eq!(merge(&once, &["servers", "haft"], entry).unwrap(), once, "twice is once");
        once
    };
    let old = "{\n  \"servers\": {\n    \"haft\": {\n      // why\n      \"env\": {\"A\": \"b\"}, // mine\n      \"command\": \"old\" /* here */,\n      \"args\": [\"mcp\"]\n    }\n  }\n}";
    let mut entry = haft();
    entry["env"] = json!({});
    assert_eq!(merged(old, &entry), old.replace("\"old\"", "\"/bin/haft\""));
    let on_one_line = r#"{"servers": {"haft": {"command": ["old"], "my": 1 /* c */}}}"#;
    let new = merged(on_one_line, &haft());
    assert!(
        new.starts_with(r#"{"servers": {"haft": {"command": "/bin/haft", "my": 1"#) && new.contains("/* c */"),
        "{new}"
    );
    for none in ["", "{}", "{\"servers\": {\"haft\": null}}"] {
        assert_eq!(merged(none, &haft()), put(none, &["servers", "haft"], &haft()).unwrap());
    }
    assert!(merge("{\"servers\": []}", &["servers", "haft"], &haft()).is_err());
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    assert_eq!(with(r#"{"a":1}"#), r#"{"a":1, "servers": {"haft":{"command":"/bin/haft","args":["mcp"]}}}"#);
    let inside = r#"{"servers":{"x":{}}}"#;
    assert_eq!(with(inside), r#"{"servers":{"x":{}, "haft": {"command":"/bin/haft","args":["mcp"]}}}"#);
}

#[test]
fn tabs_stay_tabs_and_a_comment_in_an_empty_object_stays() {
    let tabs = with("{\n\t\"a\": 1\n}\n");
    assert!(tabs.contains("\n\t\"servers\": {\n\t\t\"haft\": {\n\t\t\t\"command\"") && !tabs.contains("  "), "{tabs}");
    let inside = "{\n  \"servers\": { /* none */";
    for (begin, end) in [("{\n  // nothing yet\n", "}\n"), ("{ // mine\n", "}\n"), (inside, " }\n}\n")] {
        let written = with(&format!("{begin}{end}"));
        assert!(written.starts_with(begin), "{written}");
    }
}

#[test]
fn what_is_no_json_object_is_left_alone() {
    for odd in [
        "[]",
        "{",
        "{]",
        "nonsense",
        "{\"servers\": 1}",
        "{\"a\": 1 2}",
        "{,}",
        "{\"servers\": {}, \"servers\": {}, x}",
    ] {
        assert!(put(odd, &["servers", "haft"], &haft()).is_err(), "{odd}");
    }
    let twice = "{\"servers\": {\"a\": 1}, \"servers\": {\"b\": 1}}";
    assert!(put(twice, &["servers", "haft"], &haft()).is_err(), "it is not clear which one counts");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\n\"\\\\/*,ü]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let keys = prop_oneof![Just("servers".to_owned()), Just("haft".to_owned()), "[a-z\"/]{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_there_stays(value in any_json(), on_one_line in any::<bool>()) {
        let text = if on_one_line { value.to_string() } else { serde_json::to_string_pretty(&value).unwrap() };
        let fits = value.is_object() && value.get("servers").is_none_or(Value::is_object);
        match put(&text, &["servers", "haft"], &haft()) {
            Ok(new) => {
                let mut wanted = value;
                wanted["servers"]["haft"] = haft();
                prop_assert_eq!(serde_json::from_str::<Value>(&new).unwrap(), wanted);
            }
            Err(err) => prop_assert!(!fits, "{err:#}: {text}"),
        }
    }
}

#[test]
fn what_is_removed_takes_only_its_comma_along() {
    for (before, after) in [
        ("{\"m\": {\"a\": 1, \"x\": {\"y\": 2}, \"b\": 3}}", "{\"m\": {\"a\": 1, \"b\": 3}}"),
        ("{\"m\": {\"x\": 2}}", "{\"m\": {}}"),
        ("{\n  \"m\": {\n    \"a\": 1, // one\n    \"x\": 2\n  }\n}\n", "{\n  \"m\": {\n    \"a\": 1 // one\n  }\n}\n"),
        (
            "{\n  \"m\": {\n    // first\n    \"x\": 2,\n    \"a\": 1,\n  },\n}\n",
            "{\n  \"m\": {\n    // first\n    \"a\": 1,\n  },\n}\n",
        ),
        ("{\"m\": {\n  \"a\": 1,\n  \"x\": 2,\n}}", "{\"m\": {\n  \"a\": 1,\n}}"),
    ] {
        assert_eq!(super::remove(before, &["m", "x"]).unwrap(), after, "{before}");
    }
    assert!(super::remove("{\"m\": {}}", &["m", "x"]).is_err());
    assert!(super::remove("{}", &["m", "x"]).is_err());
}

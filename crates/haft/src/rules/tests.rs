//! Rules as people write them, rightly and wrongly.

use haft_runtime::{
    CallFacts, CallId, Change, ChangeKind, ChangeList, Evidence, Flag, Isolation, ToolOutput, Turn, Verdict,
};
use serde_json::Value;

use super::{BuiltinRules, Profile, read};

fn rules(text: &str) -> anyhow::Result<Vec<haft_runtime::Rule>> {
    let table: toml::Table = text.parse().unwrap();
    read(&table["rule"], "the test")
}

#[test]
fn a_rule_says_what_it_says() {
    let rules = rules(
        r#"
        [[rule]]
        tool = "write_file"
        decision = "allow"
        reason = "build output"
        bounds = { paths = ["target/**"], kinds = ["created"], max_files = 20, max_bytes = 1000, executables = true }
        [[rule]]
        decision = "deny"
        [rule.bounds]
        paths = ["secret/**"]
        "#,
    )
    .unwrap();
    assert_eq!((rules[0].name.as_str(), rules[0].tool.as_deref()), ("rule 1 of the test", Some("write_file")));
    assert_eq!((rules[0].verdict, rules[0].reason.as_deref()), (Verdict::Allow, Some("build output")));
    let bounds = rules[0].bounds.written();
    assert_eq!((bounds.max_files, bounds.max_bytes, bounds.executables), (Some(20), Some(1000), true));
    assert_eq!(bounds.kinds, Some(vec![ChangeKind::Created]));
    assert_eq!((rules[1].verdict, rules[1].tool.clone()), (Verdict::Deny, None));
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_place_and_the_nearest() {
    let table = [
        ("tol = \"x\"\ndecision = \"ask\"", "did you mean `tool`"),
        ("decision = \"maybe\"", "allow, ask or deny"),
        ("tool = \"x\"", "`decision` is missing"),
        ("decision = 1", "`decision` must be text"),
        ("decision = \"ask\"\nbounds = 3", "`bounds` has keys"),
        ("decision = \"ask\"\nbounds = { pathes = [\"a\"] }", "did you mean `paths`"),
        ("decision = \"ask\"\nbounds = { input = {} }", "there is no `input`"),
        ("decision = \"ask\"\nbounds = { paths = [\"[\"] }", "is no glob"),
        ("decision = \"ask\"\nbounds = { paths = [\"**/../x\"] }", "can match nothing"),
        ("decision = \"ask\"\nbounds = { paths = [] }", "`paths` is empty"),
        ("decision = \"ask\"\nbounds = { paths = \"a\" }", "sequence"),
        ("decision = \"ask\"\nbounds = { kinds = [\"made\"] }", "unknown variant `made`"),
        ("decision = \"allow\"\nbounds = { max_files = 0 }", "at least 1"),
        ("decision = \"allow\"\nbounds = { max_files = -1 }", "`-1`"),
        ("decision = \"deny\"\nbounds = { max_files = 3 }", "goes by single changes"),
    ];
    for (text, expected) in table {
        let said = format!("{:#}", rules(&format!("[[rule]]\ndecision = \"ask\"\n[[rule]]\n{text}")).unwrap_err());
        assert!(said.contains(expected) && said.contains("rule 2 of the test"), "{text}: {said}");
    }
    assert!(rules("rule = 3").unwrap_err().to_string().contains("[[rule]]"));
    assert!(rules("[rule]\ndecision = \"ask\"").unwrap_err().to_string().contains("[[rule]]"));
}

#[test]
fn the_shipped_rules_go_by_the_profile() {
    let names = |profile, derived| -> Vec<String> {
        BuiltinRules { profile, derived }.rules().into_iter().map(|rule| rule.name).collect()
    };
    let (derived, dynamic) = ("the built-in rule `derived`", "the built-in rule `dynamic`");
    assert_eq!(names(Profile::Strict, true), [derived]);
    assert_eq!(names(Profile::Dynamic, true), [derived, dynamic]);
    assert!(names(Profile::Strict, false).is_empty());
}

#[test]
fn what_is_derived_comes_in_however_it_changes() {
    let shipped = BuiltinRules { profile: Profile::Strict, derived: true };
    let rules = shipped.rules();
    let bounds = &rules[0].bounds;
    let covers = |change: Change| {
        let (output, turn) = (ToolOutput::default(), Turn::commit(CallId::new()));
        let changes = ChangeList(vec![change]);
        let evidence = Evidence::Staged { output, changes, turn, isolation: Some(Isolation::Namespaces) };
        bounds.contain(&CallFacts::new(&Value::Null, &evidence)).is_ok()
    };
    let built = |kind| Change { derived: true, executable: true, ..Change::staged("target/app", kind) };
    for kind in [ChangeKind::Created, ChangeKind::Changed, ChangeKind::Deleted, ChangeKind::Mode, ChangeKind::Renamed] {
        assert!(covers(built(kind)), "{kind:?}");
    }
    // Only links that lead to nothing else are derived.
    assert!(covers(built(ChangeKind::Link)));
    assert!(!covers(Change { flags: vec![Flag::LinkOutside], ..built(ChangeKind::Link) }));
    assert!(!covers(Change { derived: false, ..built(ChangeKind::Link) }));
    assert!(!covers(Change { derived: false, ..built(ChangeKind::Created) }));
    assert!(!covers(Change { flags: vec![Flag::RunsByItself], ..built(ChangeKind::Created) }));
}

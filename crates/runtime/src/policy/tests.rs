//! The decision, case by case: one row for each line of the house's order, and for the ties between them.

mod hosts;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Case, Decision, Policy, Rule, Step, Verdict, covered_by_the_run, decide, explain};
use crate::{
    ApprovedBy, Asks, AutoApprove, Bounds, CallId, CallerId, CallerKind, Change, ChangeKind, ChangeList, Described,
    Effect, Evidence, Flag, Grant, Isolation, ToolOutput, ToolSpec, Turn, WrittenBounds,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn person(id: &str) -> CallerId {
    CallerId { kind: CallerKind::Person, id: id.into() }
}

pub(crate) fn spec(asks: Asks) -> ToolSpec {
    ToolSpec {
        name: "write_file".into(),
        title: "Write file".into(),
        description: "Writes.".into(),
        category: "filesystem".into(),
        input_schema: json!({}),
        output_schema: json!({}),
        example: None,
        effect: Effect::Write,
        permission: "workspace.write".into(),
        aliases: vec![],
        deprecated_aliases: vec![],
        parameter_aliases: vec![],
        timeout: std::time::Duration::from_secs(30),
        asks,
        idempotent: false,
        open_world: false,
    }
}

fn change(path: &str, kind: ChangeKind, flags: Vec<Flag>) -> Change {
    Change { size: 10, added: 1, flags, ..Change::staged(path, kind) }
}

fn staged(changes: Vec<Change>, isolation: Option<Isolation>) -> Evidence {
    let turn = Turn::commit(CallId::new());
    Evidence::Staged { output: ToolOutput::default(), changes: ChangeList(changes), turn, isolation }
}

fn one_change() -> Evidence {
    staged(vec![change("src/a", ChangeKind::Created, vec![])], None)
}

fn written(written: WrittenBounds) -> Bounds {
    Bounds::try_from(written).unwrap()
}

fn beneath(glob: &str) -> Bounds {
    written(WrittenBounds { paths: Some(vec![glob.into()]), ..WrittenBounds::default() })
}

fn of_kinds(kinds: &[ChangeKind]) -> Bounds {
    written(WrittenBounds { kinds: Some(kinds.to_vec()), ..WrittenBounds::default() })
}

fn rule(verdict: Verdict, bounds: Bounds) -> Rule {
    Rule { name: "rule 1 of the test".into(), tool: None, bounds, verdict, reason: None }
}

/// What is decided, in a word, for one row of the table.
struct Row {
    asks: Asks,
    mode: AutoApprove,
    evidence: Evidence,
    own_form: Option<&'static str>,
    rules: Vec<Rule>,
    defaults: Vec<Rule>,
    tightening: Vec<Rule>,
    grants: Vec<Grant>,
    /// The mode of the tenant.
    tenant: Option<AutoApprove>,
}

impl Row {
    fn new(mode: AutoApprove, evidence: Evidence) -> Self {
        let (rules, defaults, tightening, grants) = (vec![], vec![], vec![], vec![]);
        Self { asks: Asks::ByEffect, mode, evidence, own_form: None, rules, defaults, tightening, grants, tenant: None }
    }

    fn asks(mut self, asks: Asks) -> Self {
        self.asks = asks;
        self
    }

    fn by_own_form(mut self) -> Self {
        self.own_form = Some("ann");
        self
    }

    fn rule(mut self, verdict: Verdict, bounds: Bounds) -> Self {
        self.rules.push(rule(verdict, bounds));
        self
    }

    fn tightened(mut self, verdict: Verdict, bounds: Bounds) -> Self {
        self.tightening.push(rule(verdict, bounds));
        self
    }

    fn grant(self, bounds: Bounds) -> Self {
        self.lease(Grant::new("write_file", bounds))
    }

    fn lease(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    fn decision(&self) -> Decision {
        let (decided, explained) = (self.with(decide), self.with(explain));
        assert_eq!(decided, explained.0, "whoever asks why hears of the same decision");
        assert!(!explained.1.is_empty());
        decided
    }

    fn steps(&self) -> Vec<Step> {
        self.with(explain).1
    }

    fn nearly(&self) -> Option<String> {
        match self.decision() {
            Decision::Ask { nearly, .. } => nearly,
            Decision::Yes { .. } | Decision::No(_) => panic!("must ask"),
        }
    }

    fn with<T>(&self, decide: impl Fn(&Policy, &Case<'_>) -> T) -> T {
        let effect = match &self.evidence {
            Evidence::Staged { changes, .. } => changes.effect(),
            Evidence::Plain(Described { preview: Some(_), .. }) => Effect::Write,
            Evidence::Plain(_) => Effect::Read,
        };
        let (rules, tightening) = (self.rules.clone(), self.tightening.clone());
        let defaults = self.defaults.clone();
        let policy = Policy {
            rules,
            defaults,
            tightening,
            minimum_unasked: Isolation::Namespaces,
            mode: self.tenant,
            versions: None,
        };
        let spec = spec(self.asks);
        let input = json!({"path": "src/a"});
        let case = Case {
            spec: &spec,
            input: &input,
            effect,
            evidence: &self.evidence,
            mode: self.mode,
            caller: &person("ann"),
            own_form: self.own_form,
            grants: &self.grants,
            now: NOW,
        };
        decide(&policy, &case)
    }

    fn word(&self) -> &'static str {
        match self.decision() {
            Decision::Yes { approved_by: ApprovedBy::Auto, .. } => "auto",
            Decision::Yes { approved_by: ApprovedBy::Config, .. } => "config",
            Decision::Yes { approved_by: ApprovedBy::User, .. } => "user",
            Decision::Ask { .. } => "ask",
            Decision::No(_) => "no",
        }
    }
}

fn reads() -> Evidence {
    Evidence::Plain(Described::default())
}

fn acts_outside() -> Evidence {
    Evidence::Plain(Described::showing("POST"))
}

fn exactly(input: serde_json::Value) -> Bounds {
    written(WrittenBounds { input: Some(input), ..WrittenBounds::default() })
}

#[test]
fn modes() {
    use AutoApprove::{Everything, Nothing, Reads};
    let table = [
        (Nothing, reads(), "ask"),
        (Nothing, one_change(), "ask"),
        (Reads, reads(), "auto"),
        (Reads, staged(vec![], Some(Isolation::Namespaces)), "auto"),
        (Reads, one_change(), "ask"),
        (Reads, acts_outside(), "ask"),
        (Everything, reads(), "config"),
        (Everything, one_change(), "config"),
        (Everything, acts_outside(), "config"),
    ];
    for (mode, evidence, expected) in table {
        let row = Row::new(mode, evidence);
        assert_eq!(row.word(), expected, "{mode:?} {:?}", row.evidence);
    }
}

#[test]
fn haft_s_own_records_are_shown_even_in_mode_none() {
    assert_eq!(Row::new(AutoApprove::Nothing, reads()).asks(Asks::NeverForReads).word(), "auto");
    assert_eq!(Row::new(AutoApprove::Nothing, one_change()).asks(Asks::NeverForReads).word(), "ask");
}

#[test]
fn a_tool_whose_author_says_so_runs_unasked_unless_it_destroys_or_touches_files() {
    let row = |mode, evidence| Row::new(mode, evidence).asks(Asks::OnlyToDestroy);
    assert_eq!(row(AutoApprove::Reads, acts_outside()).word(), "config");
    assert_eq!(row(AutoApprove::Reads, reads()).word(), "auto");
    assert_eq!(row(AutoApprove::Reads, one_change()).word(), "ask");
    assert_eq!(row(AutoApprove::Nothing, acts_outside()).word(), "ask");
    let spec = spec(Asks::OnlyToDestroy);
    let (evidence, caller, input) = (acts_outside(), person("anna"), json!({}));
    let case = |effect| Case {
        spec: &spec,
        input: &input,
        effect,
        evidence: &evidence,
        mode: AutoApprove::Reads,
        caller: &caller,
        own_form: None,
        grants: &[],
        now: NOW,
    };
    assert!(super::runs_by_its_own_word(&case(Effect::Execute)));
    assert!(!super::runs_by_its_own_word(&case(Effect::Destroy)));
}

#[test]
fn a_person_s_own_form_is_the_yes_to_what_destroys_nothing() {
    use AutoApprove::{Everything, Nothing, Reads};
    let form = |mode, evidence| Row::new(mode, evidence).by_own_form();
    for mode in [Nothing, Reads, Everything] {
        for evidence in [reads(), one_change(), acts_outside()] {
            assert_eq!(form(mode, evidence.clone()).word(), "user", "{mode:?} {evidence:?}");
            assert_eq!(form(mode, evidence.clone()).asks(Asks::Always).word(), "user", "{mode:?} {evidence:?}");
            assert_eq!(form(mode, evidence).asks(Asks::OnlyToDestroy).word(), "user", "{mode:?}");
        }
    }
    let Decision::Yes { by, .. } = form(Reads, one_change()).decision() else { panic!("a form is a yes") };
    assert_eq!(by.as_deref(), Some("ann"));
    let deletes = || staged(vec![change("src/a", ChangeKind::Deleted, vec![])], None);
    let flagged = || staged(vec![change("src/.envrc", ChangeKind::Changed, vec![Flag::RunsByItself])], None);
    let leaves = || staged(vec![change(".haft/x", ChangeKind::Created, vec![Flag::HaftFiles])], None);
    let low = || staged(vec![], Some(Isolation::Landlock));
    let must_ask = || Evidence::Plain(Described { must_ask: Some("it pushes".into()), ..Described::showing("push") });
    for evidence in [deletes(), flagged(), leaves(), low(), must_ask()] {
        assert_eq!(form(Reads, evidence.clone()).word(), "ask", "{evidence:?}");
    }
    assert_eq!(form(Everything, deletes()).word(), "config", "the mode still counts");
    assert_eq!(form(Everything, deletes()).asks(Asks::Always).word(), "ask");
    assert_eq!(form(Reads, one_change()).rule(Verdict::Deny, beneath("src/**")).word(), "no");
    assert_eq!(form(Reads, one_change()).rule(Verdict::Ask, beneath("src/**")).word(), "ask");
    assert_eq!(form(Reads, one_change()).tightened(Verdict::Ask, beneath("src/**")).word(), "ask");
}

#[test]
fn a_tenant_s_rules_tighten_what_an_author_lets_run() {
    let row = || Row::new(AutoApprove::Reads, acts_outside()).asks(Asks::OnlyToDestroy);
    assert_eq!(row().word(), "config");
    assert_eq!(row().rule(Verdict::Ask, Bounds::default()).word(), "ask");
    assert_eq!(row().rule(Verdict::Deny, Bounds::default()).word(), "no");
    assert_eq!(row().asks(Asks::Always).rule(Verdict::Allow, Bounds::default()).word(), "ask");
}

#[test]
fn own_rules_come_before_the_defaults() {
    let rows = |own, default| {
        let mut row = Row::new(AutoApprove::Reads, one_change()).rule(own, beneath("src/**"));
        row.defaults.push(rule(default, beneath("src/**")));
        row.word()
    };
    assert_eq!(rows(Verdict::Allow, Verdict::Deny), "config");
    assert_eq!(rows(Verdict::Deny, Verdict::Allow), "no");
    let mut only_default = Row::new(AutoApprove::Reads, one_change()).rule(Verdict::Deny, beneath("doc/**"));
    only_default.defaults.push(rule(Verdict::Allow, beneath("src/**")));
    assert_eq!(only_default.word(), "config");
}

#[test]
fn the_mode_of_a_tenant_holds_whatever_a_call_wishes_for() {
    use AutoApprove::{Everything, Nothing, Reads};
    let word = |wished, tenant, evidence| {
        let row = Row { tenant: Some(tenant), ..Row::new(wished, evidence) };
        row.word()
    };
    assert_eq!(word(Everything, Nothing, reads()), "ask");
    assert_eq!(word(Everything, Reads, one_change()), "ask");
    assert_eq!(word(Reads, Everything, one_change()), "config");
    assert_eq!(word(Nothing, Reads, reads()), "auto");
}

#[test]
fn some_things_are_asked_in_every_mode() {
    let all = AutoApprove::Everything;
    assert_eq!(Row::new(all, reads()).asks(Asks::Always).word(), "ask");
    assert_eq!(Row::new(all, one_change()).rule(Verdict::Ask, beneath("src/**")).word(), "ask");
    assert_eq!(Row::new(all, staged(vec![], Some(Isolation::Landlock))).word(), "ask");
    assert_eq!(Row::new(all, staged(vec![], Some(Isolation::Namespaces))).word(), "config");
    let described = |isolation| Evidence::Plain(Described { isolation, ..Described::showing("make") });
    assert_eq!(Row::new(all, described(Some(Isolation::Landlock))).word(), "ask");
    assert_eq!(Row::new(all, described(Some(Isolation::Namespaces))).word(), "config");
    let low =
        Row::new(AutoApprove::Reads, described(Some(Isolation::Landlock))).grant(exactly(json!({"path": "src/a"})));
    let Decision::Ask { reason, .. } = low.decision() else { panic!("no grant covers a lower rung") };
    let expected = "it would run on the rung landlock, below namespaces; what it does cannot be seen before, and \
                    cannot be undone";
    assert_eq!(reason, expected);
    for flag in [Flag::HaftFiles, Flag::GitHook, Flag::GitConfigCommand, Flag::LinkOutside, Flag::SetUid] {
        let evidence = staged(vec![change("x", ChangeKind::Changed, vec![flag])], None);
        assert_eq!(Row::new(all, evidence).word(), "ask", "{flag:?}");
    }
    for flag in [Flag::SensitiveName, Flag::RunsByItself, Flag::IgnoreRules, Flag::InsideGit] {
        let evidence = staged(vec![change("x", ChangeKind::Changed, vec![flag])], None);
        assert_eq!(Row::new(all, evidence).word(), "config", "{flag:?}");
    }
}

#[test]
fn no_rule_is_near_what_cannot_be_seen() {
    let described = Row::new(AutoApprove::Reads, Evidence::Plain(Described::showing("git fetch")));
    assert_eq!(described.rule(Verdict::Allow, beneath("src/**")).nearly(), None);
}

#[test]
fn what_must_be_asked_is_asked_in_mode_all_too() {
    let must_ask = Some("`rm` deletes `build`".to_owned());
    let evidence = Evidence::Plain(Described { must_ask, ..Described::showing("rm -r build") });
    let Decision::Ask { reason, .. } = Row::new(AutoApprove::Everything, evidence).decision() else {
        panic!("it may not run unasked")
    };
    assert_eq!(reason, "`rm` deletes `build`");
}

#[test]
fn a_rule_that_denies_wins_over_everything_that_follows_it() {
    let all = AutoApprove::Everything;
    assert_eq!(Row::new(all, one_change()).rule(Verdict::Deny, beneath("src/**")).word(), "no");
    assert_eq!(Row::new(all, reads()).rule(Verdict::Deny, Bounds::default()).word(), "no");
    let two =
        staged(vec![change("src/a", ChangeKind::Created, vec![]), change("x", ChangeKind::Created, vec![])], None);
    assert_eq!(Row::new(all, two).rule(Verdict::Deny, beneath("src/**")).word(), "no", "one change within is enough");
    let earlier = Row::new(AutoApprove::Reads, one_change()).rule(Verdict::Allow, beneath("src/**"));
    assert_eq!(earlier.rule(Verdict::Deny, beneath("src/**")).word(), "config", "the first that matches decides");
}

#[test]
fn a_workspace_s_rule_counts_only_where_it_is_stricter() {
    use Verdict::{Allow, Ask, Deny};
    let table = [
        (None, Ask, "ask"),
        (None, Deny, "no"),
        (Some(Allow), Ask, "ask"),
        (Some(Allow), Deny, "no"),
        (Some(Ask), Deny, "no"),
        (Some(Deny), Ask, "no"),
    ];
    for (own, brought, expected) in table {
        let mut row = Row::new(AutoApprove::Everything, one_change()).tightened(brought, beneath("src/**"));
        if let Some(own) = own {
            row = row.rule(own, beneath("src/**"));
        }
        assert_eq!(row.word(), expected, "{own:?} {brought:?}");
        let elsewhere = Row::new(AutoApprove::Everything, one_change()).tightened(brought, beneath("doc/**"));
        assert_eq!(elsewhere.word(), "config");
    }
}

#[test]
fn rules_and_grants_allow_what_they_contain() {
    let safe = AutoApprove::Reads;
    assert_eq!(Row::new(safe, one_change()).rule(Verdict::Allow, beneath("src/**")).word(), "config");
    assert_eq!(Row::new(safe, one_change()).rule(Verdict::Allow, beneath("doc/**")).word(), "ask");
    assert_eq!(Row::new(safe, one_change()).grant(beneath("src/**")).word(), "config");
    assert_eq!(Row::new(safe, one_change()).grant(beneath("src/*")).word(), "config");
    assert_eq!(Row::new(safe, one_change()).grant(beneath("*")).word(), "ask", "`*` stays within a folder");
    assert_eq!(Row::new(AutoApprove::Nothing, one_change()).grant(beneath("src/**")).word(), "ask");
    let flagged = || staged(vec![change("src/.envrc", ChangeKind::Changed, vec![Flag::RunsByItself])], None);
    assert_eq!(Row::new(safe, flagged()).grant(beneath("src/**")).word(), "ask", "a flagged path must be named");
    assert_eq!(Row::new(safe, flagged()).grant(beneath("src/.envrc")).word(), "config");
}

fn moved(from: &str, to: &str, directory: bool) -> Change {
    Change { from: Some(from.into()), directory, ..change(to, ChangeKind::Renamed, vec![]) }
}

#[test]
fn a_move_is_contained_only_with_both_ends_and_what_it_carries() {
    let safe = AutoApprove::Reads;
    let file = |from: &str, to: &str| staged(vec![moved(from, to, false)], None);
    let folder = |from: &str, to: &str| staged(vec![moved(from, to, true)], None);
    let with_programs = |glob: &str| written(WrittenBounds { executables: true, ..beneath(glob).into() });
    assert_eq!(Row::new(safe, file("src/a", "src/b")).grant(beneath("src/**")).word(), "config");
    assert_eq!(Row::new(safe, file("doc/a", "src/b")).grant(beneath("src/**")).word(), "ask", "it comes from outside");
    assert_eq!(Row::new(safe, file("src/a", "doc/b")).grant(beneath("src/**")).word(), "ask", "it goes outside");
    assert_eq!(Row::new(safe, folder("src/a", "src/b")).grant(with_programs("src/**")).word(), "config");
    assert_eq!(Row::new(safe, folder("src/a", "src/b")).grant(with_programs("src/*")).word(), "ask", "it is full");
    assert_eq!(
        Row::new(safe, folder("src/a", "src/b")).grant(beneath("src/**")).word(),
        "ask",
        "programs may be in it"
    );
    let kinds =
        |kinds: &[ChangeKind]| written(WrittenBounds { kinds: Some(kinds.to_vec()), ..beneath("src/**").into() });
    let over = || staged(vec![Change { replaces: Some(3), ..moved("src/a", "src/b", false) }], None);
    assert_eq!(Row::new(safe, over()).grant(kinds(&[ChangeKind::Renamed])).word(), "ask", "it overwrites");
    assert_eq!(Row::new(safe, over()).grant(kinds(&[ChangeKind::Renamed, ChangeKind::Changed])).word(), "config");
}

#[test]
fn a_rule_that_refuses_sees_both_ends_of_a_move_and_what_it_carries() {
    let all = AutoApprove::Everything;
    let denied = |evidence, bounds| Row::new(all, evidence).rule(Verdict::Deny, bounds).word();
    let file = || staged(vec![moved("secret/a", "src/b", false)], None);
    assert_eq!(denied(file(), beneath("secret/**")), "no");
    assert_eq!(denied(file(), beneath("src/*")), "no");
    assert_eq!(denied(file(), beneath("doc/**")), "config");
    let deletes = written(WrittenBounds { kinds: Some(vec![ChangeKind::Deleted]), ..beneath("secret/**").into() });
    assert_eq!(denied(file(), deletes), "no", "what moves away is gone from there");
    let folder = || staged(vec![moved("top", "new", true)], None);
    assert_eq!(denied(folder(), beneath("top/secret/**")), "no");
    assert_eq!(denied(folder(), beneath("new/x")), "no");
    assert_eq!(denied(folder(), beneath("**/*.lock")), "no", "there may be one in it");
    assert_eq!(denied(folder(), beneath("topmost/secret")), "config");
    assert_eq!(denied(folder(), beneath("elsewhere/**")), "config");
}

#[test]
fn what_could_not_be_staged_is_covered_by_its_exact_input_only() {
    let safe = AutoApprove::Reads;
    assert_eq!(Row::new(safe, acts_outside()).grant(Bounds::default()).word(), "ask");
    assert_eq!(Row::new(safe, acts_outside()).grant(exactly(json!({"path": "src/b"}))).word(), "ask");
    assert_eq!(Row::new(safe, acts_outside()).grant(exactly(json!({"path": "src/a"}))).word(), "config");
    assert_eq!(Row::new(safe, acts_outside()).rule(Verdict::Allow, Bounds::default()).word(), "ask");
}

#[test]
fn a_rule_for_a_tool_is_for_that_tool_only() {
    let safe = AutoApprove::Reads;
    for (tool, word) in [("write_file", "no"), ("delete_file", "ask")] {
        let mut row = Row::new(safe, one_change()).rule(Verdict::Deny, Bounds::default());
        row.rules[0].tool = Some(tool.into());
        assert_eq!(row.word(), word, "{tool}");
    }
    let mut other = Grant::new("delete_file", Bounds::default());
    other.tool = "delete_file".into();
    assert_eq!(Row::new(safe, one_change()).lease(other).word(), "ask");
}

#[test]
fn rules_ask_and_deny_by_what_one_change_is() {
    let all = AutoApprove::Everything;
    let executable = || Change { executable: true, ..change("bin/x", ChangeKind::Created, vec![]) };
    let executables = || written(WrittenBounds { executables: true, ..WrittenBounds::default() });
    let hosts = || written(WrittenBounds { hosts: Some(vec!["example.org".into()]), ..WrittenBounds::default() });
    let moved = || {
        let moved = Change { from: Some("secret/a".into()), ..change("open/a", ChangeKind::Renamed, vec![]) };
        staged(vec![moved], None)
    };
    let table = [
        (one_change(), of_kinds(&[ChangeKind::Created]), "no"),
        (one_change(), of_kinds(&[ChangeKind::Deleted]), "config"),
        (one_change(), executables(), "config"),
        (staged(vec![executable()], None), executables(), "no"),
        (staged(vec![executable()], None), beneath("bin/**"), "no"),
        (one_change(), hosts(), "config"),
        (moved(), beneath("secret/**"), "no"),
        (acts_outside(), beneath("src/**"), "config"),
        (acts_outside(), Bounds::default(), "no"),
    ];
    for (evidence, bounds, expected) in table {
        let row = Row::new(all, evidence).rule(Verdict::Deny, bounds);
        assert_eq!(row.word(), expected, "{:?} {:?}", row.rules, row.evidence);
    }
}

#[test]
fn a_grant_counts_while_it_lasts_and_for_whom_it_was_given() {
    let lease = || Grant::new("write_file", beneath("src/**"));
    let table = [
        (lease(), "config"),
        (Grant { until: Some(NOW + SignedDuration::from_micros(1)), ..lease() }, "config"),
        (Grant { until: Some(NOW), ..lease() }, "ask"),
        (Grant { uses_left: Some(1), ..lease() }, "config"),
        (Grant { uses_left: Some(0), ..lease() }, "ask"),
        (Grant { revoked: true, ..lease() }, "ask"),
        (Grant { caller: Some(person("ann")), ..lease() }, "config"),
        (Grant { caller: Some(person("bob")), ..lease() }, "ask"),
    ];
    for (grant, expected) in table {
        let row = Row::new(AutoApprove::Reads, one_change()).lease(grant.clone());
        assert_eq!(row.word(), expected, "{grant:?}");
        assert!(expected == "config" || row.nearly().is_none(), "what cannot count is not near");
    }
}

#[test]
fn both_ends_of_a_rename_must_lie_within() {
    let moved = |from: &str| {
        let moved = Change { from: Some(from.into()), ..change("src/a", ChangeKind::Renamed, vec![]) };
        Row::new(AutoApprove::Reads, staged(vec![moved], None)).grant(beneath("src/**"))
    };
    assert_eq!(moved("src/b").word(), "config");
    assert_eq!(moved("doc/b").word(), "ask");
}

#[test]
fn new_executables_are_covered_only_by_bounds_that_say_so() {
    let executable = Change { executable: true, ..change("src/run", ChangeKind::Created, vec![]) };
    let row = || Row::new(AutoApprove::Reads, staged(vec![executable.clone()], None));
    assert_eq!(row().grant(beneath("src/**")).word(), "ask");
    let with = WrittenBounds { executables: true, ..WrittenBounds::from(beneath("src/**")) };
    assert_eq!(row().grant(written(with)).word(), "config");
}

#[test]
fn the_yes_to_a_run_covers_what_no_rule_objects_to() {
    let row = Row::new(AutoApprove::Reads, acts_outside())
        .rule(Verdict::Deny, beneath("secret/**"))
        .rule(Verdict::Allow, beneath("doc/**"))
        .tightened(Verdict::Ask, of_kinds(&[ChangeKind::Deleted]))
        .tightened(Verdict::Ask, Bounds::default());
    let table = [
        (change("a", ChangeKind::Created, vec![]), true),
        (change("doc/a", ChangeKind::Changed, vec![]), true),
        (change("secret/a", ChangeKind::Created, vec![]), false),
        (change("a", ChangeKind::Deleted, vec![]), false),
        (change("a", ChangeKind::Created, vec![Flag::RunsByItself]), false),
    ];
    for (change, expected) in table {
        let covered = row.with(|policy, case| covered_by_the_run(policy, case.spec, &change));
        assert_eq!(covered, expected, "{change:?}");
    }
}

#[test]
fn a_grant_need_not_cover_what_a_rule_lets_in() {
    let output = |flags| Change { derived: true, executable: true, ..change("target/a", ChangeKind::Changed, flags) };
    let beside = |flags| staged(vec![change("src/a", ChangeKind::Created, vec![]), output(flags)], None);
    let lets_in = || written(WrittenBounds { derived: true, executables: true, ..WrittenBounds::default() });
    let granted = |flags| Row::new(AutoApprove::Reads, beside(flags)).grant(beneath("src/**"));
    assert_eq!(granted(vec![]).word(), "ask", "nothing lets the output in");
    assert_eq!(granted(vec![]).rule(Verdict::Allow, lets_in()).word(), "config");
    assert_eq!(granted(vec![]).rule(Verdict::Allow, lets_in()).rule(Verdict::Deny, beneath("target/**")).word(), "no");
    assert_eq!(granted(vec![Flag::RunsByItself]).rule(Verdict::Allow, lets_in()).word(), "ask");
    let elsewhere = Row::new(AutoApprove::Reads, beside(vec![])).grant(beneath("doc/**"));
    assert_eq!(elsewhere.rule(Verdict::Allow, lets_in()).word(), "ask");
}

#[test]
fn what_is_only_derived_is_covered_by_bounds_for_that() {
    let derived = |path: &str, kind| Change { derived: true, ..change(path, kind, vec![]) };
    let bounds = || written(WrittenBounds { derived: true, executables: true, ..WrittenBounds::default() });
    let row = |changes| Row::new(AutoApprove::Reads, staged(changes, None)).rule(Verdict::Allow, bounds());
    let built = || vec![derived("target/a", ChangeKind::Deleted), derived("target/b", ChangeKind::Created)];
    assert_eq!(row(built()).word(), "config");
    let source = change("src/a", ChangeKind::Created, vec![]);
    let mixed = row([built(), vec![source.clone()]].concat());
    let nearly = "rule 1 of the test does not cover it: `src/a` is neither build output nor a cache";
    assert_eq!((mixed.word(), mixed.nearly().as_deref()), ("ask", Some(nearly)));
    assert_eq!(row(vec![source]).nearly(), None, "what builds nothing is not nearly a build");
    let flagged = Change { flags: vec![Flag::InsideGit], ..derived(".git/x", ChangeKind::Changed) };
    assert_eq!(row(vec![flagged]).word(), "ask");
    let denied = |changes| Row::new(AutoApprove::Everything, staged(changes, None)).rule(Verdict::Deny, bounds());
    let plain = Change { executable: true, ..change("src/a", ChangeKind::Changed, vec![]) };
    let tool = Change { executable: true, ..derived("target/a", ChangeKind::Changed) };
    assert_eq!((denied(vec![tool]).word(), denied(vec![plain]).word()), ("no", "config"));
}

#[test]
fn the_card_names_the_nearest_miss() {
    let two = || {
        let paths = ["src/a", "src/b"].map(|path| change(path, ChangeKind::Created, vec![]));
        Row::new(AutoApprove::Reads, staged(paths.to_vec(), None))
    };
    let small = |paths: &str| {
        let bounds = WrittenBounds { max_files: Some(1), ..WrittenBounds::from(beneath(paths)) };
        Grant::new("write_file", written(bounds))
    };
    let (far, near) = (small("doc/**"), small("src/**"));
    let id = near.id.to_string();
    let nearly = two().lease(far).lease(near.clone()).nearly().unwrap();
    assert_eq!(nearly, format!("grant {id} does not cover it: 2 paths would change, and it allows 1"));

    let tie = two().rule(Verdict::Allow, beneath("doc/**")).lease(near).nearly().unwrap();
    assert!(tie.contains(&id), "a grant is nearer than a rule: {tie}");
    let rule = two().rule(Verdict::Allow, beneath("doc/**")).nearly().unwrap();
    assert_eq!(rule, "rule 1 of the test does not cover it: `src/a` lies outside its paths");
    let other = two().rule(Verdict::Deny, beneath("doc/**")).grant(exactly(json!({"path": "z"})));
    assert_eq!(other.nearly(), None, "another call and a rule that denies are not near");
}

#[test]
fn whoever_asks_why_hears_each_step_and_last_the_one_that_decided() {
    let names = |row: Row| row.steps().into_iter().map(|step| step.looked_at).collect::<Vec<_>>();
    let safe = AutoApprove::Reads;
    let denied = Row::new(safe, one_change()).rule(Verdict::Deny, beneath("src/**")).rule(Verdict::Ask, beneath("x"));
    assert_eq!(names(denied), ["rule 1 of the test (deny)"]);
    let lease = Grant::new("write_file", beneath("doc/**"));
    let named = format!("grant {}", lease.id);
    let asked = Row::new(safe, one_change()).rule(Verdict::Ask, beneath("doc/**")).lease(lease);
    assert_eq!(
        names(asked),
        [
            "rule 1 of the test (ask)",
            "must it ask in every mode?",
            "mode `safe`",
            "it only reads",
            &named,
            "nothing allows it, so it asks"
        ]
    );
    assert_eq!(names(Row::new(AutoApprove::Everything, one_change())).pop().unwrap(), "mode `all`");
    assert_eq!(names(Row::new(safe, reads())).pop().unwrap(), "it only reads");
    let allowed = Row::new(safe, one_change()).rule(Verdict::Allow, beneath("src/**"));
    assert_eq!(names(allowed).pop().unwrap(), "rule 1 of the test (allow)");
}

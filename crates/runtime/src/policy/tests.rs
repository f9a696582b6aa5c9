//! The decision, case by case: one row for each line of the house's order, and for the ties between them.

use jiff::Timestamp;
use serde_json::json;

use super::{Case, Decision, Policy, Rule, Verdict, decide};
use crate::{
    ApprovedBy, Asks, AutoApprove, Bounds, CallId, Change, ChangeKind, ChangeList, ChangeState, Effect, Evidence, Flag,
    Grant, Isolation, ToolOutput, ToolSpec, Turn,
};

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
        aliases: vec![],
        deprecated_aliases: vec![],
        parameter_aliases: vec![],
        timeout: std::time::Duration::from_secs(30),
        asks,
        idempotent: false,
    }
}

fn change(path: &str, kind: ChangeKind, flags: Vec<Flag>) -> Change {
    Change {
        path: path.into(),
        kind,
        from: None,
        diff: None,
        binary: false,
        directory: false,
        executable: false,
        size: 10,
        added: 1,
        removed: 0,
        flags,
        state: ChangeState::Staged,
    }
}

fn staged(changes: Vec<Change>, isolation: Option<Isolation>) -> Evidence {
    let turn = Turn::commit(CallId::new());
    Evidence::Staged { output: ToolOutput::default(), changes: ChangeList(changes), turn, isolation }
}

fn one_change() -> Evidence {
    staged(vec![change("src/a", ChangeKind::Created, vec![])], None)
}

fn grant(bounds: Bounds) -> Grant {
    Grant {
        id: "gr_1".into(),
        tool: "write_file".into(),
        bounds,
        caller: None,
        until: None,
        uses_left: None,
        used: 0,
        created_at: Timestamp::UNIX_EPOCH,
    }
}

fn beneath(glob: &str) -> Bounds {
    Bounds { paths: Some(vec![glob.into()]), ..Bounds::default() }
}

fn rule(verdict: Verdict, bounds: Bounds) -> Rule {
    Rule { tool: None, bounds, verdict, reason: None }
}

/// What is decided, in a word, for one row of the table.
struct Row {
    asks: Asks,
    mode: AutoApprove,
    evidence: Evidence,
    rules: Vec<Rule>,
    grants: Vec<Grant>,
}

impl Row {
    fn new(mode: AutoApprove, evidence: Evidence) -> Self {
        Self { asks: Asks::ByEffect, mode, evidence, rules: vec![], grants: vec![] }
    }

    fn asks(mut self, asks: Asks) -> Self {
        self.asks = asks;
        self
    }

    fn rule(mut self, verdict: Verdict, bounds: Bounds) -> Self {
        self.rules.push(rule(verdict, bounds));
        self
    }

    fn grant(mut self, bounds: Bounds) -> Self {
        self.grants.push(grant(bounds));
        self
    }

    fn decision(&self) -> Decision {
        let effect = match &self.evidence {
            Evidence::Staged { changes, .. } => changes.effect(),
            Evidence::Plain { preview: Some(_) } => Effect::Write,
            Evidence::Plain { preview: None } => Effect::Read,
        };
        let policy = Policy { rules: self.rules.clone(), minimum_unasked: Isolation::Namespaces };
        let spec = spec(self.asks);
        let input = json!({"path": "src/a"});
        let case = Case {
            spec: &spec,
            input: &input,
            effect,
            evidence: &self.evidence,
            mode: self.mode,
            grants: &self.grants,
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
    Evidence::Plain { preview: None }
}

fn acts_outside() -> Evidence {
    Evidence::Plain { preview: Some("POST".into()) }
}

fn exactly(input: serde_json::Value) -> Bounds {
    Bounds { input: Some(input), ..Bounds::default() }
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
fn some_things_are_asked_in_every_mode() {
    let all = AutoApprove::Everything;
    assert_eq!(Row::new(all, reads()).asks(Asks::Always).word(), "ask");
    assert_eq!(Row::new(all, one_change()).rule(Verdict::Ask, beneath("src/**")).word(), "ask");
    assert_eq!(Row::new(all, staged(vec![], Some(Isolation::Landlock))).word(), "ask");
    assert_eq!(Row::new(all, staged(vec![], Some(Isolation::Namespaces))).word(), "config");
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

#[test]
fn what_could_not_be_staged_is_covered_by_its_exact_input_only() {
    let safe = AutoApprove::Reads;
    assert_eq!(Row::new(safe, acts_outside()).grant(Bounds::default()).word(), "ask");
    assert_eq!(Row::new(safe, acts_outside()).grant(exactly(json!({"path": "src/b"}))).word(), "ask");
    assert_eq!(Row::new(safe, acts_outside()).grant(exactly(json!({"path": "src/a"}))).word(), "config");
    assert_eq!(Row::new(safe, acts_outside()).rule(Verdict::Allow, Bounds::default()).word(), "ask");
}

#[test]
fn the_card_says_which_bound_nearly_matched() {
    let bounds = Bounds { max_files: Some(0), ..beneath("src/**") };
    let Decision::Ask { nearly: Some(nearly), .. } =
        Row::new(AutoApprove::Reads, one_change()).grant(bounds).decision()
    else {
        panic!("must ask and say what nearly matched");
    };
    assert!(nearly.contains("gr_1") && nearly.contains("max_files = 0"), "{nearly}");
}

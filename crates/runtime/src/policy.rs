//! May this call go on without asking: one pure function of what it did, the mode, the rules and the grants.

use serde_json::Value;

use crate::{
    ApprovedBy, Asks, AutoApprove, Bounds, ChangeList, Effect, ErrorCode, Evidence, Grant, Isolation, Miss, ToolError,
    ToolSpec,
};

/// What a house decides by, beside the mode and the grants.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The user's rules, then the shipped ones; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What a call started on a lower rung than this is always asked for.
    pub minimum_unasked: Isolation,
}

/// A rule on what a call does.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// For which tool; `None` means every tool.
    pub tool: Option<String>,
    /// What it matches.
    pub bounds: Bounds,
    /// What it says.
    pub verdict: Verdict,
    /// Why, for the person who reads the card.
    pub reason: Option<String>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Ask, in every mode.
    Ask,
    /// Never.
    Deny,
}

/// Everything that the decision is made on.
pub(crate) struct Case<'a> {
    pub(crate) spec: &'a ToolSpec,
    pub(crate) input: &'a Value,
    pub(crate) effect: Effect,
    pub(crate) evidence: &'a Evidence,
    pub(crate) mode: AutoApprove,
    pub(crate) grants: &'a [Grant],
}

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Yes { approved_by: ApprovedBy, by: Option<String>, grant: Option<String> },
    Ask { reason: String, nearly: Option<String> },
    No(ToolError),
}

impl Decision {
    fn yes(approved_by: ApprovedBy, by: impl Into<String>) -> Self {
        Self::Yes { approved_by, by: Some(by.into()), grant: None }
    }

    fn ask(reason: impl Into<String>) -> Self {
        Self::Ask { reason: reason.into(), nearly: None }
    }
}

/// The first that applies wins; the order is the house's.
pub(crate) fn decide(policy: &Policy, case: &Case<'_>) -> Decision {
    let rule = policy.rules.iter().find(|rule| rule.matches(case));
    if let Some(rule) = rule
        && rule.verdict == Verdict::Deny
    {
        return Decision::No(ToolError::new(ErrorCode::Forbidden, rule.sentence("a rule refuses this")));
    }
    if let Some(reason) = asked_in_every_mode(policy, case, rule) {
        return Decision::ask(reason);
    }
    let only_reads = case.effect == Effect::Read;
    match case.mode {
        AutoApprove::Everything => return Decision::yes(ApprovedBy::Config, "mode all"),
        AutoApprove::Nothing if !(only_reads && case.spec.asks == Asks::NeverForReads) => {
            return Decision::ask("mode `none` asks for everything");
        }
        AutoApprove::Nothing | AutoApprove::Reads => {}
    }
    if only_reads {
        return Decision::Yes { approved_by: ApprovedBy::Auto, by: None, grant: None };
    }
    if let Some(rule) = rule {
        return Decision::yes(ApprovedBy::Config, rule.sentence("a rule allows this"));
    }
    by_grant(case)
}

fn asked_in_every_mode(policy: &Policy, case: &Case<'_>, rule: Option<&Rule>) -> Option<String> {
    if case.spec.asks == Asks::Always {
        return Some(format!("`{}` is always asked for", case.spec.name));
    }
    if let Some(rule) = rule
        && rule.verdict == Verdict::Ask
    {
        return Some(rule.sentence("a rule asks for this"));
    }
    let Evidence::Staged { changes, isolation, .. } = case.evidence else { return None };
    if let Some(rung) = isolation
        && *rung < policy.minimum_unasked
    {
        return Some(format!("it ran on the rung {rung:?}, below {:?}", policy.minimum_unasked).to_lowercase());
    }
    let leaving = changes.0.iter().find(|change| change.flags.iter().any(|flag| flag.leaves_the_fence()))?;
    let flag = leaving.flags.iter().find(|flag| flag.leaves_the_fence())?;
    Some(format!("`{}` {}: asked in every mode", leaving.path, flag.words()))
}

fn by_grant(case: &Case<'_>) -> Decision {
    let mut nearly = None;
    for grant in case.grants {
        match contains(&grant.bounds, case) {
            Ok(()) => {
                let by = Some(format!("grant {}", grant.id));
                return Decision::Yes { approved_by: ApprovedBy::Config, by, grant: Some(grant.id.clone()) };
            }
            Err(Miss(why)) => nearly = nearly.or_else(|| Some(format!("grant {} nearly covered it: {why}", grant.id))),
        }
    }
    Decision::Ask { reason: reason_to_ask(case), nearly }
}

fn contains(bounds: &Bounds, case: &Case<'_>) -> Result<(), Miss> {
    match case.evidence {
        Evidence::Staged { changes, .. } => bounds.contain_changes(case.input, changes),
        Evidence::Plain { .. } => bounds.contain_unstaged(case.input),
    }
}

fn reason_to_ask(case: &Case<'_>) -> String {
    match case.evidence {
        Evidence::Staged { changes, .. } => format!("it would change {}", counted(changes)),
        Evidence::Plain { .. } => "what it does cannot be seen before, and cannot be undone".to_owned(),
    }
}

fn counted(changes: &ChangeList) -> String {
    match changes.0.as_slice() {
        [only] => format!("`{}`", only.path),
        many => format!("{} paths", many.len()),
    }
}

impl Rule {
    /// A call that could not be staged is never contained in a rule that allows.
    fn matches(&self, case: &Case<'_>) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == case.spec.name)
            && match (case.evidence, self.verdict) {
                (Evidence::Plain { .. }, Verdict::Allow) => false,
                (Evidence::Plain { .. }, Verdict::Ask | Verdict::Deny) => self.bounds == Bounds::default(),
                (Evidence::Staged { changes, .. }, Verdict::Allow) => {
                    self.bounds.contain_changes(case.input, changes).is_ok()
                }
                (Evidence::Staged { changes, .. }, Verdict::Ask | Verdict::Deny) => self.touches(changes),
            }
    }

    /// A refusal needs one change within its bounds, a permission needs all of them.
    fn touches(&self, changes: &ChangeList) -> bool {
        let reach = Bounds { executables: true, ..self.bounds.clone() };
        let one = |change: &crate::Change| {
            let unflagged = crate::Change { flags: Vec::new(), ..change.clone() };
            reach.contain_changes(&Value::Null, &ChangeList(vec![unflagged])).is_ok()
        };
        changes.0.iter().any(one) || self.bounds == Bounds::default()
    }

    fn sentence(&self, what: &str) -> String {
        self.reason.as_ref().map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}"))
    }
}

#[cfg(test)]
pub(crate) mod tests;

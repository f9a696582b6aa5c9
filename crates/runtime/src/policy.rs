//! May this call go on without asking: one pure function of what it did, the mode, the rules and the grants.

mod rule;
mod trace;
mod written;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use rule::{Rule, Verdict};
pub use trace::Step;
use trace::{Trace, TraceSubject};
pub use written::RuleError;

use crate::{
    ApprovedBy, Asks, AutoApprove, CallFacts, CallerId, Change, ChangeList, ClosestMiss, Described, Effect, ErrorCode,
    Evidence, Grant, GrantId, GrantStatus, Isolation, Policies, Reach, Scope, ToolError, ToolSpec,
    bounds::ChangeSubset,
};

/// What a house decides by, beside the mode and the grants.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The own rules of whoever works here; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What decides where none of them matches: the rules of those who serve them, then the shipped ones.
    pub defaults: Vec<Rule>,
    /// What a workspace brings: the first that matches counts where it is stricter than the rule that would decide.
    pub tightening: Vec<Rule>,
    /// What a call started on a lower rung than this is always asked for.
    pub minimum_unasked: Isolation,
    /// What may happen without asking, whatever a call wishes for; `None` leaves it to the call.
    pub mode: Option<AutoApprove>,
    /// Which versions of a tenant's rules these are; `None` where nobody counts them.
    pub versions: Option<PolicyVersions>,
}

/// Which versions of a tenant's rules were in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyVersions {
    /// Of the rules that say what is asked.
    pub policy: i64,
    /// Of the rules that say who answers.
    pub approval_rules: i64,
}

impl Policy {
    /// No rules: the mode and the grants decide.
    pub fn without_rules(minimum_unasked: Isolation) -> Self {
        Self {
            rules: Vec::new(),
            defaults: Vec::new(),
            tightening: Vec::new(),
            minimum_unasked,
            mode: None,
            versions: None,
        }
    }

    /// The rules that may allow, in the order in which they are looked at.
    fn rules_in_order(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().chain(&self.defaults)
    }
}

/// The same rules everywhere.
pub struct OnePolicy(Arc<Policy>);

impl OnePolicy {
    /// These.
    pub fn new(policy: Policy) -> Self {
        Self(Arc::new(policy))
    }
}

impl Policies for OnePolicy {
    fn of<'a>(&'a self, _scope: &'a Scope) -> BoxFuture<'a, Result<Arc<Policy>, ToolError>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Everything that the decision is made on.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The tool.
    pub spec: &'a ToolSpec,
    /// The exact input.
    pub input: &'a Value,
    /// How far it reaches.
    pub effect: Effect,
    /// What it did, where that could be seen.
    pub evidence: &'a Evidence,
    /// What may happen without asking.
    pub mode: AutoApprove,
    /// Who asks.
    pub caller: &'a CallerId,
    /// The person who asks by a form of their own, for nobody else; `None` for everybody else.
    pub own_form: Option<&'a str>,
    /// What was remembered, newest first.
    pub grants: &'a [Grant],
    /// When.
    pub now: Timestamp,
}

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Go on.
    Yes {
        /// Who or what says so.
        approved_by: ApprovedBy,
        /// The person, the rule or the grant.
        by: Option<String>,
        /// The grant that a use of is to be spent.
        grant: Option<GrantId>,
    },
    /// A person decides.
    Ask {
        /// Why.
        reason: String,
        /// Which bound of which grant or rule nearly matched.
        nearly: Option<String>,
    },
    /// Never.
    No(ToolError),
}

impl Decision {
    fn yes(approved_by: ApprovedBy, by: impl Into<String>) -> Self {
        Self::Yes { approved_by, by: Some(by.into()), grant: None }
    }

    fn ask(reason: impl Into<String>) -> Self {
        Self::Ask { reason: reason.into(), nearly: None }
    }

    /// The decision in a word: yes, ask or no.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Yes { .. } => "yes",
            Self::Ask { .. } => "ask",
            Self::No(_) => "no",
        }
    }

    /// Why it was decided so, in words.
    pub fn because(&self) -> String {
        match self {
            Self::Yes { by: Some(by), .. } => by.clone(),
            Self::Yes { by: None, .. } => "it only reads".to_owned(),
            Self::Ask { reason, nearly: None } => reason.clone(),
            Self::Ask { reason, nearly: Some(nearly) } => format!("{reason}; {nearly}"),
            Self::No(error) => error.message.clone(),
        }
    }
}

/// The first that applies wins; the order is the house's.
pub fn decide(policy: &Policy, case: &Case<'_>) -> Decision {
    Judge::new(case, Trace::silent()).judge(policy)
}

/// The same decision with everything that was looked at on the way; the last step is the one that decided.
pub fn explain(policy: &Policy, case: &Case<'_>) -> (Decision, Vec<Step>) {
    let mut judge = Judge::new(case, Trace::telling());
    let decision = judge.judge(policy);
    (decision, judge.trace.into_steps())
}

/// What is known half-way through a decision.
struct Judge<'a> {
    case: &'a Case<'a>,
    seen: CallFacts<'a>,
    nearest: Option<Near<'a>>,
    trace: Trace,
}

/// A grant or a rule that would have said yes, had its bounds been a little wider.
struct Near<'a> {
    of: TraceSubject<'a>,
    missed: ClosestMiss<'a>,
}

impl<'a> Judge<'a> {
    fn new(case: &'a Case<'a>, trace: Trace) -> Self {
        Self { case, seen: CallFacts::new(case.input, case.evidence), nearest: None, trace }
    }

    fn judge(&mut self, policy: &'a Policy) -> Decision {
        let case = self.case;
        let rule = stricter(self.first_match(policy.rules_in_order()), self.first_match(&policy.tightening));
        if let Some(rule) = rule
            && rule.verdict == Verdict::Deny
        {
            return Decision::No(ToolError::new(ErrorCode::Forbidden, rule.sentence("refuses this")));
        }
        let forced = asked_in_every_mode(policy, case, rule);
        if let (None, Some(person)) = (&forced, own_yes(case)) {
            self.trace.note(TraceSubject::OwnForm, || "it neither destroys nor touches what is flagged".to_owned());
            return Decision::yes(ApprovedBy::User, person);
        }
        let always = || (case.spec.asks == Asks::Always).then(|| format!("`{}` is always asked for", case.spec.name));
        let forced = forced.or_else(always);
        self.trace.note(TraceSubject::EveryMode, || forced.clone().unwrap_or_else(|| "no".to_owned()));
        if let Some(reason) = forced {
            return Decision::ask(reason);
        }
        if let Some(decision) = self.by_mode(policy.mode.unwrap_or(case.mode)) {
            return decision;
        }
        let only_reads = only_reads(case);
        self.trace.note(TraceSubject::Effect, || match only_reads {
            true => "yes".to_owned(),
            false => format!("no, {}", reason_to_ask(case)),
        });
        if only_reads {
            return Decision::Yes { approved_by: ApprovedBy::Auto, by: None, grant: None };
        }
        if runs_by_its_own_word(case) {
            self.trace.note(TraceSubject::Author, || "it does not destroy, and no file is touched".to_owned());
            return Decision::yes(ApprovedBy::Config, "permissionPolicy auto");
        }
        if let Some(rule) = rule {
            self.trace.note(TraceSubject::Rule(rule), || "covers everything it did".to_owned());
            return Decision::yes(ApprovedBy::Config, rule.name_and_reason());
        }
        self.by_grant(policy)
    }

    /// What the mode decides by itself.
    fn by_mode(&mut self, mode: AutoApprove) -> Option<Decision> {
        let shows_own_records = self.case.spec.asks == Asks::NeverForReads && only_reads(self.case);
        let (found, decision) = match mode {
            AutoApprove::Everything => ("everything runs", Some(Decision::yes(ApprovedBy::Config, "mode all"))),
            AutoApprove::Nothing if shows_own_records => ("haft's own records are shown without asking", None),
            AutoApprove::Nothing => ("everything is asked for", Some(Decision::ask("mode `none` asks for everything"))),
            AutoApprove::Reads => ("what it does decides", None),
        };
        self.trace.note(TraceSubject::Mode(mode), || found.to_owned());
        decision
    }

    fn first_match(&mut self, rules: impl IntoIterator<Item = &'a Rule>) -> Option<&'a Rule> {
        for rule in rules {
            match rule.meets(self.case, &self.seen) {
                Ok(()) => {
                    self.trace.note(TraceSubject::Rule(rule), || "it matches; no later rule counts".to_owned());
                    return Some(rule);
                }
                Err(unmet) => {
                    self.trace.note(TraceSubject::Rule(rule), || unmet.to_string());
                    if let Some(missed) = unmet.missed() {
                        self.came_near(TraceSubject::Rule(rule), missed);
                    }
                }
            }
        }
        None
    }

    fn by_grant(&mut self, policy: &'a Policy) -> Decision {
        let case = self.case;
        let seen = self.seen.only(needs_a_grant(policy, case.spec, &self.seen));
        for grant in case.grants.iter().filter(|grant| grant.tool == case.spec.name) {
            let standing = grant.standing(case.now);
            let of_another = grant.caller.as_ref().filter(|&caller| caller != case.caller);
            if standing != GrantStatus::Usable {
                self.trace.note(TraceSubject::Grant(grant), || format!("it is {}", standing.word()));
            } else if let Some(caller) = of_another {
                self.trace.note(TraceSubject::Grant(grant), || format!("it is for {caller}"));
            } else if let Err(missed) = grant.bounds.contain(&seen) {
                self.trace.note(TraceSubject::Grant(grant), || missed.to_string());
                self.came_near(TraceSubject::Grant(grant), missed);
            } else {
                self.trace.note(TraceSubject::Grant(grant), || "covers everything it did".to_owned());
                let by = Some(format!("grant {}", grant.id));
                return Decision::Yes { approved_by: ApprovedBy::Config, by, grant: Some(grant.id.clone()) };
            }
        }
        self.trace.note(TraceSubject::Otherwise, || reason_to_ask(case));
        let nearly = self.nearest.as_ref().map(|near| format!("{} does not cover it: {}", near.of.name(), near.missed));
        Decision::Ask { reason: reason_to_ask(case), nearly }
    }

    /// The fewest failed bounds are the nearest; a grant, which a person gave on purpose, is nearer than a rule.
    fn came_near(&mut self, of: TraceSubject<'a>, missed: ClosestMiss<'a>) {
        let nearer = match &self.nearest {
            None => true,
            Some(near) if missed.failed == near.missed.failed => {
                matches!((&of, &near.of), (TraceSubject::Grant(_), TraceSubject::Rule(_)))
            }
            Some(near) => missed.failed < near.missed.failed,
        };
        // No rule covers what cannot be seen, so none is near it.
        let never = matches!(of, TraceSubject::Rule(_)) && missed.is_unseen();
        if missed.is_near() && nearer && !never {
            self.nearest = Some(Near { of, missed });
        }
    }
}

/// What of a call a grant must contain: all but what a rule lets in by itself, so that a build beside the work that was
/// granted asks no more than each of them alone.
pub(crate) fn needs_a_grant(policy: &Policy, tool: &ToolSpec, seen: &CallFacts<'_>) -> ChangeSubset {
    let derived = seen.only(ChangeSubset::Derived);
    let lets_in = |rule: &Rule| rule.verdict == Verdict::Allow && rule.bounds.contain(&derived).is_ok();
    let lets_in = policy.rules_in_order().any(|rule| rule.is_for(tool) && lets_in(rule));
    if lets_in { ChangeSubset::Source } else { ChangeSubset::All }
}

fn stricter<'a>(own: Option<&'a Rule>, tightening: Option<&'a Rule>) -> Option<&'a Rule> {
    match (own, tightening) {
        (Some(own), Some(other)) if own.verdict >= other.verdict => Some(own),
        (_, Some(other)) => Some(other),
        (own, None) => own,
    }
}

/// What nobody's own form answers either; that a tool is always asked for comes after it.
fn asked_in_every_mode(policy: &Policy, case: &Case<'_>, rule: Option<&Rule>) -> Option<String> {
    if let Some(rule) = rule
        && rule.verdict == Verdict::Ask
    {
        return Some(rule.sentence("asks for this"));
    }
    let lowest = policy.minimum_unasked;
    let changes = match case.evidence {
        Evidence::Plain(Described { isolation: Some(rung), .. }) if *rung < lowest => {
            let why = reason_to_ask(case);
            return Some(format!("it would run on the rung {}, below {}; {why}", rung.word(), lowest.word()));
        }
        Evidence::Staged { isolation: Some(rung), .. } if *rung < lowest => {
            return Some(format!("it ran on the rung {}, below {}", rung.word(), lowest.word()));
        }
        Evidence::Plain(described) => return described.must_ask.clone(),
        Evidence::Staged { changes, .. } => changes,
    };
    let leaving = changes.0.iter().find(|change| change.flags.iter().any(|flag| flag.leaves_the_fence()))?;
    let flag = leaving.flags.iter().find(|flag| flag.leaves_the_fence())?;
    Some(format!("`{}` {}: asked in every mode", leaving.path, flag.words()))
}

/// Whether the yes to a run also covers a change that it then turned out to make: nobody need look at it twice, and no
/// rule asks for it or denies it.
pub(crate) fn covered_by_the_run(policy: &Policy, tool: &ToolSpec, change: &Change) -> bool {
    let mut rules = policy.rules_in_order().chain(&policy.tightening);
    change.flags.is_empty() && !rules.any(|rule| rule.objects_to(tool, change))
}

/// The person whose own form is the yes to what it asks for.
fn own_yes<'a>(case: &Case<'a>) -> Option<&'a str> {
    let is_flagged = match case.evidence {
        Evidence::Staged { changes, .. } => changes.0.iter().any(|change| !change.flags.is_empty()),
        Evidence::Plain(_) => false,
    };
    case.own_form.filter(|_| case.effect < Effect::Destroy && !is_flagged)
}

fn only_reads(case: &Case<'_>) -> bool {
    case.effect == Effect::Read && unlisted(case).is_none()
}

/// The host that a call would read from and that the user has not listed.
fn unlisted<'a>(case: &Case<'a>) -> Option<&'a str> {
    match case.evidence {
        Evidence::Plain(Described { reach: Some(Reach { host, listed: false, sends: false }), .. }) => Some(host),
        Evidence::Plain(_) | Evidence::Staged { .. } => None,
    }
}

/// Whether its author lets it run unasked, and it does nothing for which that word is not enough.
fn runs_by_its_own_word(case: &Case<'_>) -> bool {
    let touches_no_files =
        matches!(case.evidence, Evidence::Plain(Described { isolation: None, runs_aside: false, .. }));
    case.spec.asks == Asks::OnlyToDestroy && case.effect < Effect::Destroy && touches_no_files
}

fn reason_to_ask(case: &Case<'_>) -> String {
    if let Some(host) = unlisted(case) {
        return format!("`{host}` is not on the list of hosts that are read from unasked (`web.allowlist`)");
    }
    match case.evidence {
        Evidence::Staged { changes, .. } => format!("it would {}", would_do(changes)),
        Evidence::Plain(Described { runs_aside: true, .. }) => {
            "what it does cannot be seen before; only the files that it changes can be brought back".to_owned()
        }
        Evidence::Plain(_) => "what it does cannot be seen before, and cannot be undone".to_owned(),
    }
}

/// What changes amount to, behind "it would".
pub(crate) fn would_do(changes: &ChangeList) -> String {
    let (summed_up, paths): (Vec<&Change>, Vec<&Change>) =
        changes.told().into_iter().partition(|change| change.summary.is_some());
    let act = |change: &Change| match change.summary.as_deref().unwrap_or_default() {
        summary if summary.starts_with("commit ") => "make a git commit".to_owned(),
        summary if summary.starts_with("branch ") => format!("make {summary}"),
        summary => summary.to_owned(),
    };
    let change = match paths.as_slice() {
        [] if !summed_up.is_empty() => None,
        [only] => Some(format!("change `{}`", only.path)),
        many => Some(format!("change {} paths", many.len())),
    };
    summed_up.into_iter().map(act).chain(change).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
pub(crate) mod tests;

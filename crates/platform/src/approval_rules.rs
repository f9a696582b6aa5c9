//! Who decides about what: approvers, how many of them, and never whoever asked. What such a rule is about is always asked.

use std::time::Duration;

use haft_runtime::{
    Agreement, Answer, Caller, CallerId, CallerKind, Effect, ErrorCode, Journal, Question, Questions, Rule, Scope,
    Source, ToolError,
};
use haft_store::AgreementRecord;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Permission, Platform, Role, digest_of, length_of_time, platform::mistake};

/// Under which name they are set.
const SETTING: &str = "approvals";
/// Every answer looks at each of them.
const MOST_RULES: usize = 200;
/// As many as a tenant could find.
const MOST_APPROVERS: u32 = 20;

/// Who may answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approvers {
    /// Whoever has one of these roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// These people, by their ids or mail addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
}

/// A rule as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WrittenApprovalRule {
    /// For which tool; every tool when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For calls that touch these, as in a rule of the policy; for all calls of the tool when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Value>,
    /// Why, for whoever reads the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who may answer; everybody with `approvals.team.decide` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Approvers>,
    /// How many of them have to say yes; 1 when absent. One no is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Whether whoever asked, by whatever key or program, may not answer.
    #[serde(default)]
    pub not_the_author: bool,
    /// After how long others may answer too, such as `30m`, `8h` or `2d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate_after: Option<String>,
    /// Who those are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate_to: Option<Approvers>,
    /// What happens when nobody has answered in time; `reject` when absent. It is never a yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Whether a yes counts only from somebody who is signed in, not by a key, a program or a link in a mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sign_in: bool,
}

/// What happens to a question that nobody has answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnExpiry {
    /// The call is rejected.
    Reject,
    /// Those of `escalateTo` are asked, once, with as much time again.
    Escalate,
}

/// A rule that was read.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRule {
    /// What it is about; it asks.
    pub(crate) about: Rule,
    pub(crate) written: WrittenApprovalRule,
    pub(crate) escalate_after: Option<Duration>,
}

/// The approval rules of a tenant, in the version that holds.
#[derive(Clone, Debug, Default)]
pub struct ApprovalRules {
    /// How often they were saved; 0 where nobody has.
    pub version: i64,
    /// Who saved them last, and when.
    pub saved: Option<(String, Timestamp)>,
    rules: Vec<ApprovalRule>,
}

/// The same as they are kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredApprovalRules {
    version: i64,
    rules: Vec<WrittenApprovalRule>,
    saved_by: String,
    saved_at: Timestamp,
}

impl ApprovalRules {
    /// As they were written.
    pub fn written(&self) -> Vec<&WrittenApprovalRule> {
        self.rules.iter().map(|rule| &rule.written).collect()
    }

    /// What has to be asked because of them.
    pub fn asking(&self) -> Vec<Rule> {
        self.rules.iter().map(|rule| rule.about.clone()).collect()
    }

    /// The first that is about a question.
    pub(crate) fn of(&self, question: &Question) -> Option<&ApprovalRule> {
        self.rules.iter().find(|rule| rule.about.asks_about(question))
    }
}

impl ApprovalRule {
    fn count(&self) -> usize {
        self.written.count.unwrap_or(1).try_into().unwrap_or(usize::MAX)
    }

    /// When others may answer, too, because nobody has for so long.
    pub(crate) fn escalates_at(&self, question: &Question) -> Option<Timestamp> {
        let after = self.escalate_after.and_then(|after| question.asked_at.checked_add(after).ok());
        [question.escalated_at, after].into_iter().flatten().min()
    }

    /// Whether somebody is among those who may answer by now.
    pub(crate) fn admits(&self, who: &Answerer, question: &Question, now: Timestamp) -> bool {
        let Some(approvers) = &self.written.approvers else { return true };
        let escalated = self.escalates_at(question).is_some_and(|at| at <= now);
        let others = self.written.escalate_to.as_ref().filter(|_| escalated);
        [Some(approvers), others].into_iter().flatten().any(|approvers| who.is_among(approvers))
    }
}

/// Somebody who answers.
pub(crate) struct Answerer {
    /// The person behind them, or the key where there is none.
    pub(crate) person: String,
    pub(crate) role: Option<String>,
}

impl Answerer {
    pub(crate) fn is_among(&self, approvers: &Approvers) -> bool {
        let has_role = self.role.as_ref().is_some_and(|role| approvers.roles.contains(role));
        has_role || approvers.people.contains(&self.person)
    }
}

impl Platform {
    /// The approval rules of a tenant as they are now.
    pub async fn approval_rules(&self, scope: &Scope) -> Result<ApprovalRules, ToolError> {
        match self.store.tenant_setting(scope, SETTING).await? {
            Some(text) => read(&text),
            None => Ok(ApprovalRules::default()),
        }
    }

    /// Puts approval rules in the place of those of a version; refused when others hold by now.
    pub async fn set_approval_rules(
        &self,
        caller: &Caller,
        mut rules: Vec<WrittenApprovalRule>,
        over: i64,
    ) -> Result<ApprovalRules, ToolError> {
        for (rule, number) in rules.iter_mut().zip(1..) {
            for approvers in [&mut rule.approvers, &mut rule.escalate_to].into_iter().flatten() {
                self.name_people(&caller.scope, approvers, number).await?;
            }
        }
        checked(&rules)?;
        let version = over + 1;
        let stored =
            StoredApprovalRules { version, rules, saved_by: caller.id.to_string(), saved_at: Timestamp::now() };
        let text = serde_json::to_string(&stored).map_err(|err| unreadable(&err))?;
        self.replace_version(&caller.scope, (SETTING, over), &text).await?;
        read(&text)
    }

    /// People are kept by their ids, so that another mail address changes nothing.
    async fn name_people(&self, scope: &Scope, approvers: &mut Approvers, number: usize) -> Result<(), ToolError> {
        if let Some(wrong) = approvers.roles.iter().find(|role| Role::parse(role).is_none()) {
            return Err(mistake(format!("rule {number}: there is no role `{wrong}`")));
        }
        let members = self.store.members(scope).await?;
        for person in &mut approvers.people {
            let is_meant = |id: &str, email: &str| *person == id || person.eq_ignore_ascii_case(email);
            let found = members.iter().find(|member| is_meant(&member.person.id, &member.person.email));
            let found = found.ok_or_else(|| mistake(format!("rule {number}: `{person}` is nobody here")))?;
            person.clone_from(&found.person.id);
        }
        Ok(())
    }

    /// Passes a question that nobody has answered in time on to others, once, where its rule says so.
    pub(crate) async fn escalate(&self, scope: &Scope, question: &Question) -> Result<bool, ToolError> {
        let rules = self.approval_rules(scope).await?;
        let rule = rules.of(question).filter(|rule| rule.written.on_expiry == Some(OnExpiry::Escalate));
        if rule.is_none() || question.escalated_at.is_some() {
            return Ok(false);
        }
        let (now, time) = (self.store.now(), question.expires_at.duration_since(question.asked_at));
        let expires_at = now.checked_add(time).unwrap_or(Timestamp::MAX);
        let escalated = Question { expires_at, escalated_at: Some(now), ..question.clone() };
        if self.store.escalate_question(scope, question, &escalated).await? {
            return Ok(true);
        }
        // Another process may have done so at the same moment.
        let found = Questions::find(&self.store, scope, &question.call).await?;
        Ok(found.is_some_and(|(found, answer)| found.escalated_at.is_some() && answer.is_none()))
    }

    /// Whether a yes to a question counts only from somebody who is signed in: what destroys something is not decided by
    /// whoever can read a mail.
    pub async fn needs_sign_in(&self, scope: &Scope, question: &Question) -> Result<bool, ToolError> {
        let rules = self.approval_rules(scope).await?;
        Ok(question.effect == Effect::Destroy || rules.of(question).is_some_and(|rule| rule.written.sign_in))
    }

    /// Notes the yes of somebody whom the rules let decide, and says whether it is enough. A no is enough by itself.
    pub(crate) async fn note_agreement(
        &self,
        caller: &Caller,
        question: &Question,
        said: &Answer,
    ) -> Result<Agreement, ToolError> {
        let rules = self.approval_rules(&caller.scope).await?;
        let Some(rule) = rules.of(question) else { return Ok(Agreement::Enough) };
        let (who, id) = (self.answerer(caller).await?, question.id());
        self.refuse_who_may_not_decide(caller, &who, (rule, question)).await?;
        if matches!(said, Answer::Reject { .. }) {
            return Ok(Agreement::Enough);
        }
        if rule.written.sign_in && caller.source != Source::Web {
            let message =
                format!("{} wants a yes of somebody who is signed in; sign in and answer there", rule.about.name);
            return Err(ToolError::new(ErrorCode::Forbidden, message));
        }
        if matches!(said, Answer::Always { .. }) {
            return Err(mistake(format!("{} asks each time: say yes without `always`", rule.about.name)));
        }
        let agreement = AgreementRecord {
            person: who.person,
            given_by: caller.who(),
            source: caller.source,
            answer: said.clone(),
            digest: digest_of(question),
            rules_version: rules.version,
            at: self.store.now(),
        };
        self.store.add_agreement(&caller.scope, &id, &agreement).await?;
        // Looked at after the own yes was written: of two at the same moment at least the last one sees both.
        let mut same = 0;
        for other in self.store.agreements(&caller.scope, &id).await? {
            let is_same = other.answer == *said && other.digest == agreement.digest;
            // Under other rules somebody may have agreed whom these do not let.
            if is_same
                && other.rules_version == rules.version
                && self.still_counts(caller, &other, (rule, question)).await?
            {
                same += 1;
            }
        }
        match rule.count().saturating_sub(same) {
            0 => Ok(Agreement::Enough),
            others => Ok(Agreement::MoreNeeded(u32::try_from(others).unwrap_or(u32::MAX))),
        }
    }

    /// Whether somebody who agreed before may still decide: they have not left, and neither has their key.
    async fn still_counts(
        &self,
        caller: &Caller,
        agreement: &AgreementRecord,
        (rule, question): (&ApprovalRule, &Question),
    ) -> Result<bool, ToolError> {
        let by = &agreement.given_by.id;
        if self.behind(by).await?.as_ref() != Some(&agreement.person) {
            return Ok(false);
        }
        let role = self.store.role_of(&caller.scope, &agreement.person).await?;
        let may = |role: &String| {
            Role::parse(role).is_some_and(|role| role.permissions().contains(&Permission::ApprovalsDecide))
        };
        // A key of the operator has nobody behind it who could leave.
        let stands_for_itself = agreement.person == by.to_string();
        let who = Answerer { person: agreement.person.clone(), role };
        Ok((stands_for_itself || who.role.as_ref().is_some_and(may)) && rule.admits(&who, question, self.store.now()))
    }

    async fn refuse_who_may_not_decide(
        &self,
        caller: &Caller,
        who: &Answerer,
        (rule, question): (&ApprovalRule, &Question),
    ) -> Result<(), ToolError> {
        let name = &rule.about.name;
        let refused = |why: String| Err(ToolError::new(ErrorCode::Forbidden, why));
        if rule.written.not_the_author {
            let Some(authors) = self.authors(&caller.scope, question).await? else {
                return refused(format!("{name} forbids it: nobody knows any more who asked for {}", question.call));
            };
            if authors.contains(&who.person) {
                return refused(format!("{name} forbids it: somebody else has to answer than whoever asked"));
            }
        }
        if !rule.admits(who, question, self.store.now()) {
            return refused(format!("{name} does not name {} among those who answer this", caller.name));
        }
        Ok(())
    }

    /// Who has agreed to a question.
    pub async fn agreements(&self, scope: &Scope, question: &Question) -> Result<Vec<AgreementRecord>, ToolError> {
        Ok(self.store.agreements(scope, &question.id()).await?)
    }

    async fn answerer(&self, caller: &Caller) -> Result<Answerer, ToolError> {
        let unknown = || ToolError::new(ErrorCode::Forbidden, "nobody knows who answers");
        let person = self.behind(&caller.id).await?.ok_or_else(unknown)?;
        let role = self.store.role_of(&caller.scope, &person).await?;
        Ok(Answerer { person, role })
    }

    /// Everybody who asked for a call, by whatever key or program; `None` where that cannot be known any more.
    pub(crate) async fn authors(&self, scope: &Scope, question: &Question) -> Result<Option<Vec<String>>, ToolError> {
        let Some(first) = self.behind(&question.asked_by.id).await? else { return Ok(None) };
        let mut authors = vec![first];
        let record = Journal::find(&self.store, scope, &question.call).await?;
        let Some(record) = record else { return Ok(None) };
        for person in &record.opening.caller.via.on_behalf_of {
            match self.behind(&person.id).await? {
                Some(person) => authors.push(person),
                None => return Ok(None),
            }
        }
        Ok(Some(authors))
    }

    /// The person behind a caller. A key that the operator made stands for itself; one that is gone stands for nobody.
    async fn behind(&self, caller: &CallerId) -> Result<Option<String>, ToolError> {
        if caller.kind != CallerKind::Key {
            return Ok(Some(if caller.kind == CallerKind::Person { caller.id.clone() } else { caller.to_string() }));
        }
        let key = self.store.api_key(&self.house, &caller.id).await?;
        Ok(key.map(|key| key.made_by.map_or_else(|| caller.to_string(), |(person, _)| person)))
    }
}

fn read(text: &str) -> Result<ApprovalRules, ToolError> {
    let stored: StoredApprovalRules = serde_json::from_str(text).map_err(|err| unreadable(&err))?;
    let rules = checked(&stored.rules)?;
    Ok(ApprovalRules { version: stored.version, saved: Some((stored.saved_by, stored.saved_at)), rules })
}

fn checked(written: &[WrittenApprovalRule]) -> Result<Vec<ApprovalRule>, ToolError> {
    if written.len() > MOST_RULES {
        return Err(mistake(format!("there are {} rules; {MOST_RULES} are the most", written.len())));
    }
    written.iter().zip(1..).map(|(rule, number)| check(rule, number)).collect()
}

fn check(written: &WrittenApprovalRule, number: usize) -> Result<ApprovalRule, ToolError> {
    let wrong = |why: String| mistake(format!("rule {number}: {why}"));
    let mut about = json!({"decision": "ask"});
    for (key, value) in
        [("tool", json!(written.tool)), ("bounds", json!(written.bounds)), ("reason", json!(written.reason))]
    {
        if !value.is_null() {
            about[key] = value;
        }
    }
    let about = Rule::read(&about, &format!("approval rule {number}")).map_err(|err| wrong(err.to_string()))?;
    if !(1..=MOST_APPROVERS).contains(&written.count.unwrap_or(1)) {
        return Err(wrong(format!("`count` is a number from 1 to {MOST_APPROVERS}")));
    }
    if [&written.approvers, &written.escalate_to]
        .into_iter()
        .flatten()
        .any(|who| who.roles.is_empty() && who.people.is_empty())
    {
        return Err(wrong("approvers are `roles` or `people`, at least one of them".to_owned()));
    }
    let passes_on = written.on_expiry == Some(OnExpiry::Escalate);
    if passes_on && written.escalate_to.is_none() {
        return Err(wrong("`onExpiry: escalate` needs `escalateTo`: whom it is passed on to".to_owned()));
    }
    let escalate_after = match (&written.escalate_after, &written.escalate_to) {
        (None, Some(_)) if passes_on => None,
        (Some(after), Some(_)) if written.approvers.is_some() => {
            let unreadable = || wrong("`escalateAfter` is a length of time such as `30m`, `8h` or `2d`".to_owned());
            Some(length_of_time(after).ok_or_else(unreadable)?)
        }
        (None, None) => None,
        (_, _) => return Err(wrong("`approvers`, `escalateAfter` and `escalateTo` go together".to_owned())),
    };
    Ok(ApprovalRule { about, written: written.clone(), escalate_after })
}

fn unreadable(err: &serde_json::Error) -> ToolError {
    ToolError::new(ErrorCode::Internal, format!("the approval rules of the tenant cannot be read: {err}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn what_makes_no_sense_is_no_rule() {
        let rule = |written: Value| check(&serde_json::from_value(written).unwrap(), 1);
        rule(json!({"tool": "x", "count": 2, "notTheAuthor": true, "approvers": {"roles": ["admin"]}})).unwrap();
        rule(json!({"approvers": {"roles": ["admin"]}, "escalateAfter": "2h", "escalateTo": {"roles": ["owner"]}}))
            .unwrap();
        rule(json!({"onExpiry": "escalate", "escalateTo": {"roles": ["owner"]}})).unwrap();
        for wrong in [
            json!({"count": 0}),
            json!({"count": 21}),
            json!({"approvers": {}}),
            json!({"approvers": {"roles": ["admin"]}, "escalateAfter": "2h"}),
            json!({"approvers": {"roles": ["admin"]}, "escalateAfter": "soon", "escalateTo": {"roles": ["owner"]}}),
            json!({"escalateAfter": "2h", "escalateTo": {"roles": ["owner"]}}),
            json!({"onExpiry": "escalate"}),
            json!({"onExpiry": "reject", "escalateTo": {"roles": ["owner"]}}),
            json!({"bounds": {"path": ["a"]}}),
        ] {
            rule(wrong.clone()).map(|_| ()).expect_err(&wrong.to_string());
        }
    }
}

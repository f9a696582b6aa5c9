//! A link by which one person answers one question. It is computed when it is sent, and stored nowhere.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use haft_runtime::{CallId, Caller, CallerId, CallerKind, QuestionId, Scope, Source, ToolError, Via};
use haft_store::LinkChoice;
use serde::{Deserialize, Serialize};

use crate::{Permission, Platform, TenantView, identity::permissions_of_role, platform::mistake, random};

const PURPOSE: &str = "answer link";
/// How long a choice can be confirmed.
const CHOICE_LASTS: Duration = Duration::from_secs(15 * 60);

/// Whoever holds a link that counts.
#[derive(Clone, Debug)]
pub struct LinkHolder {
    /// The person whom it was sent to, as they may act by it now.
    pub caller: Caller,
    /// Their tenant.
    pub tenant: TenantView,
    /// The question that it is about.
    pub question: QuestionId,
}

/// What somebody chose on the page of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenAnswer {
    /// Whether it is a yes.
    pub yes: bool,
    /// The digest of what they were shown.
    pub digest: String,
}

impl Platform {
    /// What a person's link to a question ends with.
    pub fn answer_token(&self, scope: &Scope, question: &QuestionId, person: &str) -> String {
        let bound = format!("{}\0{}\0{}\0{person}", scope.tenant(), question.call, question.number);
        let mac = random::hex(&self.key.derived(PURPOSE, bound.as_bytes()));
        format!("{}.{mac}", URL_SAFE_NO_PAD.encode(bound))
    }

    /// Who holds a link; `None` where it is none of ours, or its person has left or may see no questions any more.
    pub async fn link_holder(&self, token: &str) -> Result<Option<LinkHolder>, ToolError> {
        let Some((tenant, question, person)) = self.bound_to(token) else { return Ok(None) };
        let Some(tenant) = self.store.tenant_by_id(&self.house, &tenant).await? else { return Ok(None) };
        let Some(known) = self.store.person(&self.house, &person).await? else { return Ok(None) };
        let Some(role) = self.store.role_of(&tenant.scope, &person).await? else { return Ok(None) };
        let permissions = permissions_of_role(&role);
        if !permissions.allow(Permission::ApprovalsRead.word()) {
            return Ok(None);
        }
        let view = TenantView::from(&tenant);
        let caller = Caller {
            id: CallerId { kind: CallerKind::Person, id: person },
            name: known.name,
            scope: tenant.scope,
            permissions,
            source: Source::Link,
            via: Via::default(),
        };
        Ok(Some(LinkHolder { caller, tenant: view, question }))
    }

    /// What a token is about, if it is one that this server made. Nothing is looked up for one that is not.
    fn bound_to(&self, token: &str) -> Option<(String, QuestionId, String)> {
        let (bound, mac) = token.split_once('.')?;
        let bound = URL_SAFE_NO_PAD.decode(bound).ok()?;
        if !self.key.is_derived(PURPOSE, &bound, mac) {
            return None;
        }
        let bound = String::from_utf8(bound).ok()?;
        let mut parts = bound.split('\0');
        let (tenant, call, number, person) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let question = QuestionId { call: CallId::parse(call)?, number: number.parse().ok()? };
        Some((tenant.to_owned(), question, person.to_owned()))
    }

    /// Keeps what somebody chose until they confirm it, and gives what only the next page holds.
    pub async fn choose_answer(&self, holder: &LinkHolder, chosen: &ChosenAnswer) -> Result<String, ToolError> {
        let nonce = random::text(random::SECRET)?;
        let body = serde_json::to_string(chosen).map_err(|_| mistake("this choice cannot be kept"))?;
        let expires_at = self.store.now().checked_add(CHOICE_LASTS).unwrap_or(jiff::Timestamp::MAX);
        let choice = LinkChoice { nonce: &random::hash(&nonce), body: &body, expires_at };
        let (scope, person) = (&holder.caller.scope, holder.caller.id.id.as_str());
        self.store.keep_choice(scope, (&holder.question, person), choice).await?;
        Ok(nonce)
    }

    /// What somebody chose, which they confirm now; `None` where they did so before, or too late.
    pub async fn confirm_answer(&self, holder: &LinkHolder, nonce: &str) -> Result<Option<ChosenAnswer>, ToolError> {
        let (scope, person) = (&holder.caller.scope, holder.caller.id.id.as_str());
        let taken = self.store.take_choice(scope, (&holder.question, person), &random::hash(nonce)).await?;
        taken.map(|body| serde_json::from_str(&body).map_err(|_| mistake("this choice cannot be read"))).transpose()
    }
}

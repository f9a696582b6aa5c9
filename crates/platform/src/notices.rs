//! People hear of questions where they are: who is told of which one, when, and by what.

mod delivery;
mod mail;
mod message;
mod webhook;
mod wishes;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use haft_runtime::{About, CallerId, CallerKind, Question, QuestionId, Questions, Scope, ToolError};
use haft_store::{ChannelRecord, DueNotice, MemberRecord, NoticeListener};
use jiff::Timestamp;
use tokio::sync::Semaphore;

pub(crate) use delivery::{MailJob, WebhookJob};
pub use mail::{MailServer, MailTls, Mailer};
pub use wishes::{MailWish, NoticeKind, NoticeWebhook, PersonNotices, TenantNotices};

use crate::{
    Permission, Platform, Role, TenantWeb,
    approval_rules::{Answerer, ApprovalRule},
};

/// By mail, person by person.
pub(crate) const MAIL: &str = "mail";
/// By the tenant's own webhook.
pub(crate) const WEBHOOK: &str = "webhook";
/// How many questions are looked at together.
const LOOKED_AT: u32 = 200;
const AT_ONCE: usize = 16;
/// How many webhooks are called at once.
const WEBHOOKS_AT_ONCE: usize = 2;

/// When people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeTimes {
    /// How long a question is open before anybody is told.
    pub grace: Duration,
    /// How long after one mail to somebody the next one goes.
    pub every: Duration,
    /// How long after a failure it is tried again; twice as long after each further one.
    pub retry: Duration,
}

/// What tells people of questions.
pub struct Notices {
    platform: Arc<Platform>,
    mailer: Option<Mailer>,
    web: TenantWeb,
    /// The address of the pages.
    url: String,
    times: NoticeTimes,
    webhooks: Semaphore,
}

/// Why somebody hears of a question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum HearsAs {
    /// They may answer it like others.
    OneOfMany,
    /// A rule names them, or it is about a call of theirs.
    Named,
    /// It was passed on to them.
    Escalation,
}

impl Notices {
    /// By these channels, with links to the pages at this address.
    pub fn new(
        platform: Arc<Platform>,
        (mailer, web): (Option<Mailer>, TenantWeb),
        url: String,
        times: NoticeTimes,
    ) -> Self {
        Self { platform, mailer, web, url, times, webhooks: Semaphore::new(WEBHOOKS_AT_ONCE) }
    }

    /// Whether there is a server that takes mail.
    pub fn has_mail(&self) -> bool {
        self.mailer.is_some()
    }

    /// Notes who is to be told of the questions that have been open for a while.
    pub(crate) async fn look(&self) -> Result<(), ToolError> {
        let (store, house) = (&self.platform.store, &self.platform.house);
        let by = store.now().checked_sub(self.times.grace).unwrap_or(Timestamp::MIN);
        let due = store.due_notices(house, by, LOOKED_AT).await?;
        let tells = due.iter().map(|due| self.tell(due));
        // Each goes on when another one fails.
        let told: Vec<Result<(), ToolError>> = stream::iter(tells).buffer_unordered(AT_ONCE).collect().await;
        told.into_iter().collect()
    }

    /// When somebody is to be told next.
    pub(crate) async fn next(&self) -> Result<Option<Timestamp>, ToolError> {
        let next = self.platform.store.next_notice(&self.platform.house).await?;
        Ok(next.map(|next| next.checked_add(self.times.grace).unwrap_or(Timestamp::MAX)))
    }

    /// How a channel of a tenant went last, and how much waits there.
    pub async fn channel_state(
        &self,
        scope: &Scope,
        channel: NoticeChannel,
    ) -> Result<(ChannelRecord, i64), ToolError> {
        let (store, word) = (&self.platform.store, channel.word());
        Ok((store.notice_channel(scope, word).await?, store.notice_count(scope, word).await?))
    }

    async fn tell(&self, due: &DueNotice) -> Result<(), ToolError> {
        let found = Questions::find(&self.platform.store, &due.scope, &due.question.call).await?;
        let (listeners, next) = match found {
            Some((question, None)) if question.id() == due.question => self.listeners(due, &question).await?,
            Some(_) | None => (Vec::new(), None),
        };
        self.platform.store.tell_listeners(&due.scope, due, (&listeners, next)).await?;
        Ok(())
    }

    /// Who is told of a question now, and when others are to be told.
    async fn listeners(
        &self,
        due: &DueNotice,
        question: &Question,
    ) -> Result<(Vec<NoticeListener>, Option<Timestamp>), ToolError> {
        let (platform, scope) = (&self.platform, &due.scope);
        let wanted = platform.tenant_notices(scope).await?;
        if !wanted.cover(question.kind()) || (self.mailer.is_none() && wanted.webhook.is_none()) {
            return Ok((Vec::new(), None));
        }
        let (rules, now) = (platform.approval_rules(scope).await?, platform.store.now());
        let rule = rules.of(question);
        let escalates = rule.and_then(|rule| rule.escalates_at(question));
        // The first notice is due when a question is put; a later one is of its escalation.
        let is_first = due.at.as_microsecond() == question.asked_at.as_microsecond();
        let mut listeners = Vec::new();
        if wanted.webhook.is_some() {
            listeners.push(NoticeListener { channel: WEBHOOK, person: String::new(), escalated: !is_first });
        }
        if self.mailer.is_some() {
            let authors = platform.authors(scope, question).await?.unwrap_or_default();
            let audience = Audience { question, rule, authors: &authors, now, is_first };
            for member in platform.store.members(scope).await? {
                let wish = PersonNotices::of(&member).mail.unwrap_or(wanted.mail);
                let hears = audience.hears(&member).filter(|hears| match wish {
                    MailWish::Off => false,
                    MailWish::Mine => *hears >= HearsAs::Named,
                    MailWish::All => true,
                });
                listeners.extend(hears.map(|hears| NoticeListener {
                    channel: MAIL,
                    person: member.person.id.clone(),
                    escalated: hears == HearsAs::Escalation,
                }));
            }
        }
        Ok((listeners, escalates.filter(|at| *at > now)))
    }

    /// The address at which one person answers one question.
    pub(crate) fn link(&self, scope: &Scope, question: &QuestionId, person: &str) -> String {
        format!("{}/a/{}", self.url, self.platform.answer_token(scope, question, person))
    }
}

/// A way by which people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeChannel {
    /// By mail.
    Mail,
    /// By the tenant's webhook.
    Webhook,
}

impl NoticeChannel {
    fn word(self) -> &'static str {
        match self {
            Self::Mail => MAIL,
            Self::Webhook => WEBHOOK,
        }
    }
}

/// Who may answer a question.
struct Audience<'a> {
    question: &'a Question,
    rule: Option<&'a ApprovalRule>,
    authors: &'a [String],
    now: Timestamp,
    /// Whether nobody was told of it before.
    is_first: bool,
}

impl Audience<'_> {
    /// Why a member hears of it; `None` for whoever does not.
    fn hears(&self, member: &MemberRecord) -> Option<HearsAs> {
        let who = Answerer { person: member.person.id.clone(), role: Some(member.role.clone()) };
        let is_author = self.authors.contains(&who.person);
        if !self.may(&member.role, &who.person) {
            return None;
        }
        let Some(rule) = self.rule else {
            return self.is_first.then_some(if is_author { HearsAs::Named } else { HearsAs::OneOfMany });
        };
        let forbidden = rule.written.not_the_author && is_author;
        if forbidden || !rule.admits(&who, self.question, self.now) {
            return None;
        }
        let escalated = rule.escalates_at(self.question).is_some_and(|at| at <= self.now);
        let is_passed_on = escalated && rule.written.escalate_to.as_ref().is_some_and(|others| who.is_among(others));
        match (is_passed_on, self.is_first) {
            (true, _) => Some(HearsAs::Escalation),
            (false, false) => None,
            (false, true) if is_author || rule.written.approvers.is_some() => Some(HearsAs::Named),
            (false, true) => Some(HearsAs::OneOfMany),
        }
    }

    /// Whether a role may answer such a question at all.
    fn may(&self, role: &str, person: &str) -> bool {
        let permissions = Role::parse(role).map(Role::permissions).unwrap_or_default();
        match &self.question.about {
            About::Approval(_) | About::Form(_) => permissions.contains(&Permission::ApprovalsDecide),
            About::Result(awaited) => {
                let person = CallerId { kind: CallerKind::Person, id: person.to_owned() };
                permissions.contains(&Permission::ToolsExecute) && awaited.may_be_given_by(&person)
            }
        }
    }
}

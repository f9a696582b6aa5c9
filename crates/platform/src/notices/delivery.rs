//! The jobs that send notices: by mail, each person what concerns them, and by a tenant's webhook.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use haft_runtime::{CallId, ErrorCode, Question, QuestionId, Questions, Scope, ToolError};
use haft_store::{ClaimedJob, JobOwner, MemberRecord, NoticeRow, NoticesOf};
use lettre::{Message, message::Mailbox, transport::smtp::client::AsyncSmtpConnection};

use super::{
    MAIL, Mailer, Notices, WEBHOOK,
    mail::MailFailure,
    message::{LISTED, Notice, NoticeMail},
    webhook::WebhookNotice,
    wishes::NoticeWebhook,
};
use crate::{JobEnd, JobRunner, TenantView, plain_text::plain_line, platform::mistake, random};

/// After how many tries a notice is given up.
const MOST_TRIES: u32 = 6;
/// The most that is looked at together.
const LOOKED_AT: u32 = 2000;
/// The longest time before it is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// How long another delivery is waited for.
const WHILE_BUSY: Duration = Duration::from_secs(1);
/// How long somebody waits who wants to see whether mail works.
const FOR_A_TEST: Duration = Duration::from_secs(30);

/// Sends a tenant's people what they are to be told.
pub(crate) struct MailJob(pub(crate) Arc<Notices>);

/// Tells a tenant's webhook.
pub(crate) struct WebhookJob(pub(crate) Arc<Notices>);

impl JobRunner for MailJob {
    fn kind(&self) -> &'static str {
        MAIL
    }

    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>> {
        Box::pin(async move {
            let JobOwner::Tenant(scope) = &job.of else { return Ok(JobEnd::Done) };
            let Some(mailer) = &self.0.mailer else { return Ok(JobEnd::Done) };
            let Ok(_turn) = mailer.turn.try_acquire() else { return Ok(JobEnd::Again(WHILE_BUSY)) };
            self.0.send_mails(mailer, scope).await
        })
    }
}

impl JobRunner for WebhookJob {
    fn kind(&self) -> &'static str {
        WEBHOOK
    }

    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>> {
        Box::pin(async move {
            let JobOwner::Tenant(scope) = &job.of else { return Ok(JobEnd::Done) };
            let Ok(_turn) = self.0.webhooks.try_acquire() else { return Ok(JobEnd::Again(WHILE_BUSY)) };
            self.0.send_webhook(scope).await
        })
    }
}

/// What is sent at once to one person, or to a webhook.
struct NoticeBatch {
    id: String,
    rows: Vec<NoticeRow>,
    /// The first of the questions, and whether each was passed on.
    questions: Vec<(Question, bool)>,
}

impl NoticeBatch {
    fn more(&self) -> usize {
        self.rows.len().saturating_sub(self.questions.len())
    }

    /// How often it was tried, this time included.
    fn tries(&self) -> u32 {
        self.rows.iter().map(|row| row.tries).max().unwrap_or(0) + 1
    }
}

impl Notices {
    async fn send_mails(&self, mailer: &Mailer, scope: &Scope) -> Result<JobEnd, ToolError> {
        let store = &self.platform.store;
        let tenant = self.platform.tenant_of(scope).await?;
        let members: HashMap<String, MemberRecord> =
            store.members(scope).await?.into_iter().map(|member| (member.person.id.clone(), member)).collect();
        let (mut connection, mut again, mut known) = (None, None, HashMap::new());
        for rows in by_person(store.open_notices(scope, MAIL, LOOKED_AT).await?) {
            let Some(member) = rows.first().and_then(|row| members.get(&row.person)) else {
                self.forget(scope, MAIL, &rows).await?;
                continue;
            };
            let Some(batch) = self.batch(scope, MAIL, rows, &mut known).await? else { continue };
            let sent = self.mail(mailer, scope, (&tenant, member), (&batch, &mut connection)).await;
            again = again.max(Some(self.times.every));
            let Err(failure) = sent else {
                store.notices_sent(scope, (MAIL, &member.person.id), &batch.id).await?;
                continue;
            };
            let (person, most) = match &failure {
                MailFailure::Refused(_) => (Some(member.person.id.as_str()), 1),
                MailFailure::Later(_) => (Some(member.person.id.as_str()), MOST_TRIES),
                MailFailure::Unreachable(_) => (None, MOST_TRIES),
            };
            self.note_failure(scope, NoticesOf { channel: MAIL, person }, (failure.told(), most)).await?;
            again = Some(self.pause(batch.tries()));
            if person.is_none() {
                // Nobody else is reached now either.
                break;
            }
        }
        Ok(again.map_or(JobEnd::Done, JobEnd::Again))
    }

    async fn send_webhook(&self, scope: &Scope) -> Result<JobEnd, ToolError> {
        let store = &self.platform.store;
        let rows = store.open_notices(scope, WEBHOOK, LOOKED_AT).await?;
        let Some(webhook) = self.platform.tenant_notices(scope).await?.webhook else {
            self.forget(scope, WEBHOOK, &rows).await?;
            return Ok(JobEnd::Done);
        };
        let Some(batch) = self.batch(scope, WEBHOOK, rows, &mut HashMap::new()).await? else {
            return Ok(JobEnd::Done);
        };
        let notice = WebhookNotice { id: &batch.id, questions: &batch.questions, more: batch.more() };
        let Err(error) = self.call_webhook(scope, &webhook, &notice).await else {
            store.notices_sent(scope, (WEBHOOK, ""), &batch.id).await?;
            return Ok(JobEnd::Again(self.times.every));
        };
        // An address that is not allowed is not allowed in a minute either.
        let most = if error.code == ErrorCode::UrlNotAllowed { 1 } else { MOST_TRIES };
        self.note_failure(scope, NoticesOf { channel: WEBHOOK, person: None }, (&error.message, most)).await?;
        Ok(JobEnd::Again(self.pause(batch.tries())))
    }

    /// What goes out together: what was tried together before, or all there is. Nothing of what was answered meanwhile.
    async fn batch(
        &self,
        scope: &Scope,
        channel: &str,
        rows: Vec<NoticeRow>,
        known: &mut HashMap<CallId, Option<Question>>,
    ) -> Result<Option<NoticeBatch>, ToolError> {
        let (open, answered): (Vec<NoticeRow>, Vec<NoticeRow>) = rows.into_iter().partition(|row| row.open);
        self.forget(scope, channel, &answered).await?;
        let tried = open.iter().find_map(|row| row.batch.clone());
        let rows: Vec<NoticeRow> = match &tried {
            Some(batch) => open.into_iter().filter(|row| row.batch.as_ref() == Some(batch)).collect(),
            None => open,
        };
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        let id = match tried {
            Some(batch) => batch,
            None => {
                let id = batch_id(first);
                self.platform.store.batch_notices(scope, (channel, &first.person), (&id, &last.question)).await?;
                id
            }
        };
        let mut questions = Vec::new();
        for row in rows.iter().take(LISTED) {
            let question = self.open_question(scope, &row.question, known).await?;
            questions.extend(question.map(|question| (question, row.escalated)));
        }
        Ok((!questions.is_empty()).then_some(NoticeBatch { id, rows, questions }))
    }

    async fn open_question(
        &self,
        scope: &Scope,
        id: &QuestionId,
        known: &mut HashMap<CallId, Option<Question>>,
    ) -> Result<Option<Question>, ToolError> {
        if !known.contains_key(&id.call) {
            let found = Questions::find(&self.platform.store, scope, &id.call).await?;
            known.insert(id.call.clone(), found.filter(|(_, answer)| answer.is_none()).map(|(question, _)| question));
        }
        Ok(known.get(&id.call).cloned().flatten().filter(|question| question.id() == *id))
    }

    async fn mail(
        &self,
        mailer: &Mailer,
        scope: &Scope,
        (tenant, member): (&TenantView, &MemberRecord),
        (batch, connection): (&NoticeBatch, &mut Option<AsyncSmtpConnection>),
    ) -> Result<(), MailFailure> {
        let person = &member.person;
        let link = |question: &Question| self.link(scope, &question.id(), &person.id);
        let notices: Vec<Notice> =
            batch.questions.iter().map(|(question, late)| Notice::of(question, *late, link(question))).collect();
        let to = mailbox(&person.name, &person.email).map_err(|error| MailFailure::Refused(error.message))?;
        let url = format!("{}/?tenant={}", self.url, tenant.slug);
        let of_person = random::hash(&person.id);
        let mail = NoticeMail {
            to,
            name: &person.name,
            tenant: &tenant.name,
            notices: &notices,
            more: batch.more(),
            id: format!("<{}.{}@{}>", batch.id, &of_person[..8], mailer.domain()),
            url: &url,
        };
        let message = mail.message(mailer.from()).map_err(|err| MailFailure::Refused(err.to_string()))?;
        mailer.send(connection, &message).await
    }

    async fn forget(&self, scope: &Scope, channel: &str, rows: &[NoticeRow]) -> Result<(), ToolError> {
        for row in rows {
            self.platform.store.forget_notice(scope, channel, row).await?;
        }
        Ok(())
    }

    /// Keeps why notices did not go out, and tells the operator.
    async fn note_failure(&self, scope: &Scope, of: NoticesOf<'_>, (why, most): (&str, u32)) -> Result<(), ToolError> {
        let given_up = self.platform.store.notices_failed(scope, of, (why, most)).await?;
        tracing::warn!(tenant = %scope.tenant(), channel = of.channel, person = of.person, given_up, why, "a notice did not go out");
        Ok(())
    }

    /// How long after so many tries the next one is.
    fn pause(&self, tries: u32) -> Duration {
        let times = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        self.times.retry.saturating_mul(times).min(LONGEST_PAUSE)
    }

    /// Sends somebody a mail to see whether it arrives.
    pub async fn test_mail(&self, scope: &Scope, person: &str) -> Result<String, ToolError> {
        let unset = || ToolError::new(ErrorCode::Unavailable, "no mail server is set; the operator sets `mail.host`");
        let mailer = self.mailer.as_ref().ok_or_else(unset)?;
        let (member, tenant) = (self.platform.member(scope, person).await?, self.platform.tenant_of(scope).await?);
        let to = mailbox(&member.person.name, &member.person.email)?;
        let unwritable = |err: lettre::error::Error| mistake(format!("the mail cannot be written: {err}"));
        let message = Message::builder()
            .from(mailer.from().clone())
            .to(to)
            .subject(format!("{}: mail from haft arrives", plain_line(&tenant.name, 60)))
            .message_id(Some(format!("<test.{}@{}>", random::text(22)?, mailer.domain())))
            .body("This is a test. haft will tell you of questions at this address.\n".to_owned())
            .map_err(unwritable)?;
        let busy = |_| ToolError::new(ErrorCode::Busy, "other mail is being sent; try again in a moment");
        let turn = tokio::time::timeout(FOR_A_TEST, mailer.turn.acquire()).await.map_err(busy)?;
        let sent = mailer.send(&mut None, &message).await;
        drop(turn);
        sent.map_err(|failure| ToolError::new(ErrorCode::UpstreamError, failure.told()))?;
        Ok(member.person.email)
    }

    /// Calls the tenant's webhook to see whether it answers.
    pub async fn test_webhook(&self, scope: &Scope) -> Result<(), ToolError> {
        let set: Option<NoticeWebhook> = self.platform.tenant_notices(scope).await?.webhook;
        self.try_webhook(scope, &set.ok_or_else(|| mistake("no webhook is set"))?).await
    }
}

/// What tells a batch from every other one: the first question in it.
fn batch_id(first: &NoticeRow) -> String {
    let passed_on = if first.escalated { ".escalated" } else { "" };
    format!("{}.{}{passed_on}", first.question.call, first.question.number)
}

fn by_person(rows: Vec<NoticeRow>) -> Vec<Vec<NoticeRow>> {
    let mut people: Vec<Vec<NoticeRow>> = Vec::new();
    for row in rows {
        match people.last_mut().filter(|rows| rows.first().is_some_and(|first| first.person == row.person)) {
            Some(rows) => rows.push(row),
            None => people.push(vec![row]),
        }
    }
    people
}

fn mailbox(name: &str, email: &str) -> Result<Mailbox, ToolError> {
    let unusable = |_| mistake(format!("`{}` is no address that mail can be sent to", plain_line(email, 80)));
    Ok(Mailbox::new(Some(plain_line(name, 80)), email.parse().map_err(unusable)?))
}

//! Who is to be told of a question: when, by which channel, and how that went.

use haft_runtime::{HouseWide, QuestionId, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    jobs::adding_or_renewing,
    journal::of_call,
    sql::{Row, Statement},
};

/// A question of which people are to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNotice {
    /// Where it belongs.
    pub scope: Scope,
    /// Which one.
    pub question: QuestionId,
    /// Since when.
    pub at: Timestamp,
}

/// Somebody who is to be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoticeListener {
    /// By what: a kind of job, which tells them.
    pub channel: &'static str,
    /// Who; empty where the channel is the tenant's own.
    pub person: String,
    /// Whether the question was passed on to them.
    pub escalated: bool,
}

/// What somebody is still to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRow {
    /// Who; empty where the channel is the tenant's own.
    pub person: String,
    /// Of which question.
    pub question: QuestionId,
    /// Whether the question was passed on to them.
    pub escalated: bool,
    /// How often it was tried in vain.
    pub tries: u32,
    /// What it is sent with; `None` before the first time.
    pub batch: Option<String>,
    /// Whether the question is still open.
    pub open: bool,
}

/// Which notices of a tenant: those of one channel, or of one person there.
#[derive(Clone, Copy, Debug)]
pub struct NoticesOf<'a> {
    /// The channel.
    pub channel: &'a str,
    /// Only this person's.
    pub person: Option<&'a str>,
}

/// How a channel went last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelRecord {
    /// When something last went out.
    pub sent_at: Option<Timestamp>,
    /// When something last did not, and why.
    pub failed: Option<(Timestamp, String)>,
    /// How many notices were given up.
    pub given_up: i64,
}

const DUE: &str = "select tenant, workspace, call, number, notice_at from questions /*index questions_to_tell*/ \
                   where open = 1 and notice_at is not null and notice_at <= $1 order by notice_at limit $2";
const NEXT: &str = "select notice_at from questions /*index questions_to_tell*/ where open = 1 \
                    and notice_at is not null order by notice_at limit 1";
const TELL: &str = "update questions set notice_at = $5 where tenant = $1 and call = $2 and number = $3 and open = 1 \
                    and notice_at = $4 returning 1 as told";
const ADD: &str = "insert into notices (tenant, call, number, channel, person, escalated, tries) \
                   values ($1, $2, $3, $4, $5, $6, 0) on conflict do nothing";
const OPEN: &str = "select n.person, n.call, n.number, n.escalated, n.tries, n.batch, q.open from notices n \
                    left join questions q on q.tenant = n.tenant and q.call = n.call and q.number = n.number \
                    where n.tenant = $1 and n.channel = $2 order by n.person, n.call limit $3";
const COUNT: &str = "select count(*) as n from notices where tenant = $1 and channel = $2";
const BATCH: &str = "update notices set batch = $4 where tenant = $1 and channel = $2 and person = $3 and batch is null \
                     and call <= $5 returning 1 as batched";
const FORGET: &str = "delete from notices where tenant = $1 and channel = $2 and person = $3 and call = $4 \
                      and number = $5 returning 1 as gone";
const SENT: &str = "delete from notices where tenant = $1 and channel = $2 and person = $3 and batch = $4 \
                    returning 1 as gone";
const FAILED: &str = "update notices set tries = tries + 1 where tenant = $1 and channel = $2 \
                      and ($3 is null or person = $3) returning 1 as tried";
const GIVE_UP: &str = "delete from notices where tenant = $1 and channel = $2 and ($3 is null or person = $3) \
                       and tries >= $4 returning 1 as gone";
const NOTE_SENT: &str = "insert into notice_channels (tenant, channel, sent_at, given_up) values ($1, $2, $3, 0) \
                         on conflict (tenant, channel) do update set sent_at = excluded.sent_at returning 1 as noted";
const NOTE_FAILED: &str = "insert into notice_channels (tenant, channel, failed_at, failure, given_up) \
                           values ($1, $2, $3, $4, $5) on conflict (tenant, channel) do update set \
                           failed_at = excluded.failed_at, failure = excluded.failure, \
                           given_up = notice_channels.given_up + excluded.given_up returning 1 as noted";
const CHANNEL: &str =
    "select sent_at, failed_at, failure, given_up from notice_channels where tenant = $1 and channel = $2";

impl Store {
    /// Open questions of which people were to be told by then, at most so many.
    pub async fn due_notices(
        &self,
        _house: &HouseWide,
        by: Timestamp,
        limit: u32,
    ) -> Result<Vec<DueNotice>, StoreError> {
        let due = |row: &Row| {
            let columns = Columns { of: "questions", row };
            let question = QuestionId { call: columns.call_id("call")?, number: columns.count("number")? };
            Ok(DueNotice { scope: columns.scope()?, question, at: columns.time("notice_at")? })
        };
        let find = Statement::new(DUE).bind(by.as_microsecond()).bind(limit);
        self.read(find).await?.iter().map(due).collect()
    }

    /// Since when the first people are to be told of something, if there is anything.
    pub async fn next_notice(&self, _house: &HouseWide) -> Result<Option<Timestamp>, StoreError> {
        let row = self.read_one(Statement::new(NEXT)).await?;
        row.map(|row| Columns { of: "questions", row: &row }.time("notice_at")).transpose()
    }

    /// Notes who is told of a question, with the jobs that tell them, and when others are to be told next. `false` when the
    /// question was answered, or another node did so.
    pub async fn tell_listeners(
        &self,
        scope: &Scope,
        due: &DueNotice,
        (listeners, next): (&[NoticeListener], Option<Timestamp>),
    ) -> Result<bool, StoreError> {
        let question = &due.question;
        let about = |sql| of_call(sql, scope, &question.call).bind(question.number);
        let tell = about(TELL).bind(due.at.as_microsecond()).bind(next.map(Timestamp::as_microsecond));
        let mut write = ConditionalWrite::of_database(tell);
        let mut channels: Vec<&str> = Vec::new();
        for listener in listeners {
            let add = about(ADD).bind(listener.channel).bind(listener.person.as_str()).bind(listener.escalated);
            write = write.and_then(add);
            if !channels.contains(&listener.channel) {
                channels.push(listener.channel);
                write = write.and_then(adding_or_renewing(tenant(scope), listener.channel, self.now()));
            }
        }
        let told = self.change(write).await?;
        self.work().notify_one();
        Ok(told)
    }

    /// What is still to be told by a channel of a tenant, person by person, at most so much.
    pub async fn open_notices(&self, scope: &Scope, channel: &str, limit: u32) -> Result<Vec<NoticeRow>, StoreError> {
        let find = Statement::new(OPEN).bind(tenant(scope)).bind(channel).bind(limit);
        self.read(find).await?.iter().map(notice).collect()
    }

    /// How much is still to be told by a channel of a tenant.
    pub async fn notice_count(&self, scope: &Scope, channel: &str) -> Result<i64, StoreError> {
        let row = self.read_one(Statement::new(COUNT).bind(tenant(scope)).bind(channel)).await?;
        row.map_or(Ok(0), |row| Columns { of: "notices", row: &row }.number("n"))
    }

    /// Notes that what a person has not been sent yet, up to this question, is sent together.
    pub async fn batch_notices(
        &self,
        scope: &Scope,
        (channel, person): (&str, &str),
        (batch, last): (&str, &QuestionId),
    ) -> Result<(), StoreError> {
        let note = Statement::new(BATCH).bind(tenant(scope)).bind(channel).bind(person).bind(batch);
        self.change(ConditionalWrite::of_database(note.bind(last.call.as_str()))).await.map(drop)
    }

    /// A notice that nobody needs any more.
    pub async fn forget_notice(&self, scope: &Scope, channel: &str, notice: &NoticeRow) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET).bind(tenant(scope)).bind(channel).bind(notice.person.as_str());
        let forget = forget.bind(notice.question.call.as_str()).bind(notice.question.number);
        self.change(ConditionalWrite::of_database(forget)).await.map(drop)
    }

    /// A batch went out.
    pub async fn notices_sent(
        &self,
        scope: &Scope,
        (channel, person): (&str, &str),
        batch: &str,
    ) -> Result<(), StoreError> {
        let sent = Statement::new(SENT).bind(tenant(scope)).bind(channel).bind(person).bind(batch);
        let note = Statement::new(NOTE_SENT).bind(tenant(scope)).bind(channel).bind(self.now().as_microsecond());
        self.change(ConditionalWrite::of_database(sent)).await?;
        self.change(ConditionalWrite::of_database(note)).await.map(drop)
    }

    /// Notices did not go out, for this reason. Those that were tried so often are given up; says whether there were any.
    pub async fn notices_failed(
        &self,
        scope: &Scope,
        of: NoticesOf<'_>,
        (why, most_tries): (&str, u32),
    ) -> Result<bool, StoreError> {
        let which = |sql| Statement::new(sql).bind(tenant(scope)).bind(of.channel).bind(of.person);
        self.change(ConditionalWrite::of_database(which(FAILED))).await?;
        let gone = self.change(ConditionalWrite::of_database(which(GIVE_UP).bind(most_tries))).await?;
        let note = Statement::new(NOTE_FAILED).bind(tenant(scope)).bind(of.channel);
        let note = note.bind(self.now().as_microsecond()).bind(why).bind(i64::from(gone));
        self.change(ConditionalWrite::of_database(note)).await?;
        Ok(gone)
    }

    /// How a channel of a tenant went last.
    pub async fn notice_channel(&self, scope: &Scope, channel: &str) -> Result<ChannelRecord, StoreError> {
        let row = self.read_one(Statement::new(CHANNEL).bind(tenant(scope)).bind(channel)).await?;
        let Some(row) = row else { return Ok(ChannelRecord::default()) };
        let columns = Columns { of: channel, row: &row };
        let failed_at = columns.time_or_none("failed_at")?;
        Ok(ChannelRecord {
            sent_at: columns.time_or_none("sent_at")?,
            failed: failed_at.zip(columns.text_or_none("failure")?),
            given_up: columns.number("given_up")?,
        })
    }
}

fn notice(row: &Row) -> Result<NoticeRow, StoreError> {
    let columns = Columns { of: "notices", row };
    Ok(NoticeRow {
        person: columns.text("person")?,
        question: QuestionId { call: columns.call_id("call")?, number: columns.count("number")? },
        escalated: columns.flag("escalated")?,
        tries: columns.count("tries")?,
        batch: columns.text_or_none("batch")?,
        open: columns.number_or_none("open")? == Some(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reads_all_questions_or_notices() {
        crate::schema::tests::assert_quick(&[TELL, OPEN, COUNT, BATCH, FORGET, SENT, FAILED, GIVE_UP, CHANNEL]);
        for statement in [DUE, NEXT] {
            crate::schema::tests::assert_reads_only(&crate::sqlite::with_hints(statement), "questions_to_tell");
        }
    }
}

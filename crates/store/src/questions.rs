//! Questions put to people, and their answers. The first answer counts.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{
    Answer, AnswerReceipt, Answered, CallId, Entry, Grant, GrantId, HouseWide, PermittedAnswer, Question, QuestionId,
    Questions, Scope, ToolError, Within,
};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::{Columns, only, tenant, workspace},
    grants,
    journal::of_call,
    journal_write::JournalWrite,
    live::{Topic, Waiter},
    nodes::Life,
    sql::{Row, Statement},
};

/// A question as columns.
pub(crate) struct QuestionRow {
    call: String,
    number: u32,
    workspace: Option<String>,
    asked_at: i64,
    expires_at: i64,
    body: String,
}

const INSERT: &str = "insert into questions (tenant, call, number, workspace, asked_at, expires_at, open, body) \
                      values ($1, $2, $3, $4, $5, $6, 1, $7)";
const ANSWER: &str = "update questions set open = 0, answer = $4 \
                      where tenant = $1 and call = $2 and number = $3 and open = 1 returning 1 as counted";
/// Whoever starts next finds the call, should whoever answered die before it is carried on.
const NOTE_ANSWER: &str = "update open_calls set answered = 1 where tenant = $1 and id = $2";
const FIND: &str = "select body, answer from questions where tenant = $1 and call = $2 order by number desc limit 1";
const ANSWER_OF: &str =
    "select answer from questions where tenant = $1 and call = $2 and number = $3 and answer is not null";
const OPEN: &str = "select call, body from questions where tenant = $1 and open = 1 order by call";
const OPEN_OF_WORKSPACE: &str =
    "select call, body from questions where tenant = $1 and open = 1 and workspace = $2 order by call";
const OVERDUE: &str = "select tenant, workspace, call, number from questions where open = 1 and expires_at < $1 \
                       and ($2 is null or workspace = $2) order by expires_at";
const ANSWERED: &str = "select tenant, workspace, id from open_calls where answered = 1 and state = 'waiting' \
                        and ($1 is null or workspace = $1) order by tenant, id";
const WAITING_OWNER: &str = "select owner from open_calls where tenant = $1 and id = $2 and state = 'waiting'";
const CLAIM: &str = "update open_calls set owner = $4 where tenant = $1 and id = $2 and owner = $3 and state = 'waiting' \
                     returning 1 as claimed";

impl QuestionRow {
    pub(crate) fn new(scope: &Scope, question: &Question) -> Result<Self, StoreError> {
        Ok(Self {
            call: question.call.to_string(),
            number: question.number,
            workspace: workspace(scope).map(str::to_owned),
            asked_at: question.asked_at.as_microsecond(),
            expires_at: question.expires_at.as_microsecond(),
            body: serde_json::to_string(question)?,
        })
    }

    pub(crate) fn insert(&self, tenant: &str) -> Statement {
        Statement::new(INSERT)
            .bind(tenant)
            .bind(self.call.as_str())
            .bind(self.number)
            .bind(self.workspace.as_deref())
            .bind(self.asked_at)
            .bind(self.expires_at)
            .bind(self.body.as_str())
    }
}

impl Questions for Store {
    fn ask<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a Question,
        entry: Entry,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let write = JournalWrite::new(scope, self.owner(), &entry)?.asking(scope, question)?;
            self.node().hold().await?;
            Ok(self.write(StoreWrite::Entry(Box::new(write))).await?)
        })
    }

    fn wait<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a QuestionId,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Answered>, ToolError>> {
        Box::pin(async move {
            let look = || self.answer_of(scope, question);
            Ok(self.live().until(scope, Topic::Answered(question.call.to_string()), limit, look).await?)
        })
    }

    fn answer<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a QuestionId,
        answer: &'a PermittedAnswer,
    ) -> BoxFuture<'a, Result<AnswerReceipt, ToolError>> {
        Box::pin(async move { Ok(self.give_answer(scope, question, answer.answered()).await?) })
    }

    fn find<'a>(
        &'a self,
        scope: &'a Scope,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<(Question, Option<Answered>)>, ToolError>> {
        Box::pin(async move { Ok(self.question(scope, call).await?) })
    }

    fn open<'a>(&'a self, scope: &'a Scope, within: &'a Within) -> BoxFuture<'a, Result<Vec<Question>, ToolError>> {
        Box::pin(async move { Ok(self.open_questions(scope, within).await?) })
    }

    fn overdue<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<(Scope, QuestionId)>, ToolError>> {
        Box::pin(async move { Ok(self.overdue_questions(house).await?) })
    }

    fn answered<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<(Scope, CallId)>, ToolError>> {
        Box::pin(async move { Ok(self.answered_calls(house).await?) })
    }

    fn claim<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move { Ok(self.claim_waiting(scope, call).await?) })
    }

    fn grants<'a>(&'a self, scope: &'a Scope, tool: &'a str) -> BoxFuture<'a, Result<Vec<Grant>, ToolError>> {
        Box::pin(async move { Ok(self.usable_grants(scope, tool).await?) })
    }

    fn spend<'a>(&'a self, scope: &'a Scope, grant: &'a GrantId) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move { Ok(self.spend_grant(scope, grant).await?) })
    }

    fn remember<'a>(&'a self, scope: &'a Scope, grant: &'a Grant) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move { Ok(self.remember_grant(scope, grant).await?) })
    }
}

impl Store {
    async fn give_answer(
        &self,
        scope: &Scope,
        question: &QuestionId,
        answered: &Answered,
    ) -> Result<AnswerReceipt, StoreError> {
        let call = &question.call;
        let give = of_call(ANSWER, scope, call).bind(question.number).bind(serde_json::to_string(answered)?);
        let mut change = ConditionalWrite::new(tenant(scope), give)
            .and_then(of_call(NOTE_ANSWER, scope, call))
            .telling(Topic::Answered(call.to_string()))
            .telling(Topic::Questions);
        if let Answer::Always { grant } = &answered.answer {
            change = change.and_then(grants::remembering(scope, grant)?);
        }
        if self.change(change).await? {
            return Ok(AnswerReceipt::Taken);
        }
        let earlier = self.answer_of(scope, question).await?;
        Ok(earlier.map_or(AnswerReceipt::NoQuestion, AnswerReceipt::TooLate))
    }

    /// Rings when some question may have been put or answered, in this process or another. Register, look, then wait.
    pub fn watch_questions(&self, scope: &Scope) -> Waiter {
        self.live().register(scope, Topic::Questions)
    }

    async fn answer_of(&self, scope: &Scope, question: &QuestionId) -> Result<Option<Answered>, StoreError> {
        let find = of_call(ANSWER_OF, scope, &question.call).bind(question.number);
        let Some(row) = self.read_one(find).await? else { return Ok(None) };
        Columns { of: question.call.as_str(), row: &row }.json("answer").map(Some)
    }

    async fn question(&self, scope: &Scope, call: &CallId) -> Result<Option<(Question, Option<Answered>)>, StoreError> {
        let Some(row) = self.read_one(of_call(FIND, scope, call)).await? else { return Ok(None) };
        let columns = Columns { of: call.as_str(), row: &row };
        Ok(Some((columns.json("body")?, columns.json_or_none("answer")?)))
    }

    async fn open_questions(&self, scope: &Scope, within: &Within) -> Result<Vec<Question>, StoreError> {
        let find = match only(within) {
            Some(workspace) => Statement::new(OPEN_OF_WORKSPACE).bind(tenant(scope)).bind(workspace),
            None => Statement::new(OPEN).bind(tenant(scope)),
        };
        let body = |row: &Row| {
            let call = Columns { of: "questions", row }.text("call")?;
            Columns { of: &call, row }.json("body")
        };
        self.read(find).await?.iter().map(body).collect()
    }

    async fn overdue_questions(&self, house: &HouseWide) -> Result<Vec<(Scope, QuestionId)>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let overdue = |row: &Row| {
            let columns = Columns { of: "questions", row };
            let question = QuestionId { call: columns.call_id("call")?, number: columns.count("number")? };
            Ok((columns.scope()?, question))
        };
        let find = Statement::new(OVERDUE).bind(now).bind(only(house.carries()));
        self.read(find).await?.iter().map(overdue).collect()
    }

    async fn answered_calls(&self, house: &HouseWide) -> Result<Vec<(Scope, CallId)>, StoreError> {
        let answered = |row: &Row| {
            let columns = Columns { of: "open_calls", row };
            Ok((columns.scope()?, columns.call_id("id")?))
        };
        let find = Statement::new(ANSWERED).bind(only(house.carries()));
        self.read(find).await?.iter().map(answered).collect()
    }

    // The conditional update decides who wins; the dead owner's lock only keeps others from trying meanwhile.
    async fn claim_waiting(&self, scope: &Scope, call: &CallId) -> Result<bool, StoreError> {
        let Some(row) = self.read_one(of_call(WAITING_OWNER, scope, call)).await? else { return Ok(false) };
        let owner = Columns { of: call.as_str(), row: &row }.text("owner")?;
        let _held = match self.node().look_at(&owner).await {
            // A living owner, this very store included, carries its call on itself.
            Life::Alive => return Ok(false),
            Life::Dead(lock) => lock,
        };
        self.node().hold().await?;
        let claim = of_call(CLAIM, scope, call).bind(owner).bind(self.owner());
        self.change(ConditionalWrite::new(tenant(scope), claim)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_questions() {
        let statements = [ANSWER, FIND, ANSWER_OF, OPEN, OPEN_OF_WORKSPACE, WAITING_OWNER, CLAIM];
        crate::schema::tests::assert_quick(&statements);
        crate::schema::tests::assert_reads_only(OVERDUE, "questions_expiring");
        crate::schema::tests::assert_reads_only(ANSWERED, "open_calls_answered");
    }
}

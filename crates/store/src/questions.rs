//! Questions put to people, and their answers. The first answer counts.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{
    Answer, AnswerReceipt, Answered, CallId, Entry, Grant, GrantId, HouseWide, PermittedAnswer, Question, QuestionId,
    Questions, Scope, ToolError, Within, WorkspaceId,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use sqlx::sqlite::SqliteRow;

use crate::{
    Store, StoreError,
    addition::Addition,
    batch::{Statement, Write},
    columns::Columns,
    grants,
    owner::Life,
    watch::{News, Waiter},
};

/// A question as columns.
pub(crate) struct Asked {
    call: String,
    number: u32,
    workspace: Option<String>,
    asked_at: i64,
    expires_at: i64,
    body: String,
}

const INSERT: &str = "insert into questions (tenant, call, number, workspace, asked_at, expires_at, open, body) \
                      values (?, ?, ?, ?, ?, ?, true, ?)";
const ANSWER: &str = "update questions set open = false, answer = $4 \
                      where tenant = $1 and call = $2 and number = $3 and open = true";
const FIND: &str = "select body, answer from questions where tenant = $1 and call = $2 order by number desc limit 1";
const ANSWER_OF: &str =
    "select answer from questions where tenant = $1 and call = $2 and number = $3 and answer is not null";
const OPEN: &str = "select call, body from questions where tenant = $1 and open = true order by call";
const OPEN_OF_WORKSPACE: &str =
    "select call, body from questions where tenant = $1 and open = true and workspace = $2 order by call";
const OVERDUE: &str = "select tenant, workspace, call, number from questions indexed by questions_open where open = true and expires_at < $1 \
                       and ($2 is null or workspace = $2)";
const ANSWERED: &str = "select tenant, workspace, id as call from calls indexed by calls_open where state <> 'ended' and state = 'waiting' \
                        and not exists (select 1 from questions where questions.tenant = calls.tenant \
                        and questions.call = calls.id and questions.open = true) \
                        and ($1 is null or workspace = $1)";
const WAITING_OWNER: &str = "select owner from calls where tenant = $1 and id = $2 and state = 'waiting'";
const CLAIM: &str = "update calls set owner = $4 where tenant = $1 and id = $2 and owner = $3 and state = 'waiting'";

impl Asked {
    pub(crate) fn new(scope: &Scope, question: &Question) -> Result<Self, StoreError> {
        Ok(Self {
            call: question.call.to_string(),
            number: question.number,
            workspace: scope.workspace().map(ToString::to_string),
            asked_at: question.asked_at.as_microsecond(),
            expires_at: question.expires_at.as_microsecond(),
            body: serde_json::to_string(question)?,
        })
    }

    pub(crate) fn insert(&self, conn: &Connection, tenant: &str) -> Result<(), StoreError> {
        let Self { call, number, workspace, asked_at, expires_at, body } = self;
        let row = params![tenant, call, number, workspace, asked_at, expires_at, body];
        conn.prepare_cached(INSERT)?.execute(row)?;
        Ok(())
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
            let addition = Addition::new(scope, self.owner(), &entry)?.asking(scope, question)?;
            self.owner_lock().hold()?;
            Ok(self.writer().write(Write::Addition(Box::new(addition))).await.map(drop)?)
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
            Ok(self.watch().until(News::Answered(question.call.to_string()), limit, look).await?)
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
        let statement = Statement::new(ANSWER).bind_text(scope.tenant().as_str()).bind_text(question.call.as_str());
        let mut statement = statement
            .bind(question.number)
            .bind(serde_json::to_string(answered)?)
            .waking(News::Answered(question.call.to_string()))
            .waking(News::Questions);
        if let Answer::Always { grant } = &answered.answer {
            statement = statement.and_then(grants::remembering(scope, grant)?);
        }
        if self.writer().run(statement).await? {
            return Ok(AnswerReceipt::Taken);
        }
        let earlier = self.answer_of(scope, question).await?;
        Ok(earlier.map_or(AnswerReceipt::NoQuestion, AnswerReceipt::TooLate))
    }

    /// Rings when some question may have been put or answered, in this process or another. Register, look, then wait.
    pub fn watch_questions(&self) -> Waiter {
        self.watch().register(News::Questions)
    }

    async fn answer_of(&self, scope: &Scope, question: &QuestionId) -> Result<Option<Answered>, StoreError> {
        let call = question.call.as_str();
        let query = sqlx::query(ANSWER_OF).bind(scope.tenant().as_str()).bind(call).bind(question.number);
        let Some(row) = query.fetch_optional(self.reads().await?).await? else { return Ok(None) };
        Columns { of: call, row: &row }.json("answer").map(Some)
    }

    async fn question(&self, scope: &Scope, call: &CallId) -> Result<Option<(Question, Option<Answered>)>, StoreError> {
        let query = sqlx::query(FIND).bind(scope.tenant().as_str()).bind(call.as_str());
        let Some(row) = query.fetch_optional(self.reads().await?).await? else { return Ok(None) };
        let columns = Columns { of: call.as_str(), row: &row };
        Ok(Some((columns.json("body")?, columns.json_or_none("answer")?)))
    }

    async fn open_questions(&self, scope: &Scope, within: &Within) -> Result<Vec<Question>, StoreError> {
        let query = match within {
            Within::Only(workspace) => {
                sqlx::query(OPEN_OF_WORKSPACE).bind(scope.tenant().as_str()).bind(workspace.as_str())
            }
            Within::Everything => sqlx::query(OPEN).bind(scope.tenant().as_str()),
        };
        let rows = query.fetch_all(self.reads().await?).await?;
        rows.iter().map(|row| Columns { of: &call_of(row)?, row }.json("body")).collect()
    }

    async fn overdue_questions(&self, house: &HouseWide) -> Result<Vec<(Scope, QuestionId)>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let query = sqlx::query(OVERDUE).bind(now).bind(house.carries().only().map(WorkspaceId::as_str));
        let rows = query.fetch_all(self.reads().await?).await?;
        let read = |row| {
            let columns = Columns { of: "questions", row };
            let question = QuestionId { call: columns.call_id("call")?, number: columns.plain("number")? };
            Ok((columns.scope()?, question))
        };
        rows.iter().map(read).collect()
    }

    async fn answered_calls(&self, house: &HouseWide) -> Result<Vec<(Scope, CallId)>, StoreError> {
        let query = sqlx::query(ANSWERED).bind(house.carries().only().map(WorkspaceId::as_str));
        let rows = query.fetch_all(self.reads().await?).await?;
        let read = |row| {
            let columns = Columns { of: "questions", row };
            Ok((columns.scope()?, columns.call_id("call")?))
        };
        rows.iter().map(read).collect()
    }

    // The conditional update decides who wins; the dead owner's lock only keeps others from trying meanwhile.
    async fn claim_waiting(&self, scope: &Scope, call: &CallId) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(WAITING_OWNER).bind(scope.tenant().as_str()).bind(call.as_str());
        let owner: Option<String> = query.fetch_optional(self.reads().await?).await?;
        let Some(owner) = owner else { return Ok(false) };
        let _held = match self.owner_lock().look_at(&owner) {
            // A living owner, this very store included, carries its call on itself.
            Life::Alive => return Ok(false),
            Life::Dead(lock) => lock,
        };
        self.owner_lock().hold()?;
        let statement = Statement::new(CLAIM).bind_text(scope.tenant().as_str()).bind_text(call.as_str());
        self.writer().run(statement.bind(owner).bind_text(self.owner())).await
    }
}

fn call_of(row: &SqliteRow) -> Result<String, StoreError> {
    Columns { of: "questions", row }.plain("call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_questions() {
        let statements = [ANSWER, FIND, ANSWER_OF, OPEN, OPEN_OF_WORKSPACE, WAITING_OWNER, CLAIM];
        crate::schema::tests::assert_quick(&statements);
        // Across all tenants only what waits is looked at.
        for (statement, index) in [(OVERDUE, "questions_open"), (ANSWERED, "calls_open")] {
            let steps = crate::schema::tests::plan(statement).join("\n");
            assert!(steps.contains(index), "{steps}");
        }
    }
}

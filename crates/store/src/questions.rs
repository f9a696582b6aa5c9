//! Questions put to people, and their answers. The first answer counts.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{
    About, Answer, AnswerReceipt, Answered, CallId, CallRecord, ClaimResult, Delivered, Entry, Grant, GrantId,
    HouseWide, LateResult, PermittedAnswer, Question, QuestionId, Questions, Scope, ToolError, Within,
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
    kind: &'static str,
    asked_at: i64,
    expires_at: i64,
    waited: bool,
    body: String,
}

const INSERT: &str = "insert into questions (tenant, call, number, workspace, kind, asked_at, expires_at, open, \
                      waited, body) values ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9)";
const ANSWER: &str = "update questions set open = 0, answer = $4 \
                      where tenant = $1 and call = $2 and number = $3 and open = 1 returning 1 as counted";
/// Whoever starts next finds the call, should whoever answered die before it is carried on.
const NOTE_ANSWER: &str = "update open_calls set answered = 1 where tenant = $1 and id = $2";
/// Of this and an answer only one comes first: whichever does closes the way to the other.
const STOP_WAITING: &str = "update questions set waited = 0 where tenant = $1 and call = $2 and number = $3 and open = 1 \
                            and waited = 1 returning 1 as stopped";
const WAITED_BY_THE_DEAD: &str = "update questions set waited = 0 where tenant = $1 and call = $2 and waited = 1";
const FIND: &str =
    "select body, waited, answer from questions where tenant = $1 and call = $2 order by number desc limit 1";
const ANSWER_OF: &str =
    "select answer from questions where tenant = $1 and call = $2 and number = $3 and answer is not null";
const OPEN: &str = "select call, waited, body from questions where tenant = $1 and open = 1 order by call";
const OPEN_OF_WORKSPACE: &str =
    "select call, waited, body from questions where tenant = $1 and open = 1 and workspace = $2 order by call";
const OVERDUE: &str = "select tenant, workspace, call, number from questions where open = 1 and expires_at < $1 \
                       and ($2 is null or workspace = $2) order by expires_at limit $3";
const NEXT_EXPIRY: &str = "select expires_at from questions /*index questions_expiring*/ where open = 1 \
                           order by expires_at limit 1";
/// Counting is bounded, however many there are.
const OPEN_COUNT: &str = "select count(*) as n from (select 1 as one from questions where open = 1 limit $1) as found";
const WAITING_COUNT: &str =
    "select count(*) as n from (select 1 as one from open_calls where state = 'waiting' limit $1) as found";
/// How many overdue questions are looked at together; the rest is still overdue afterwards.
const OVERDUE_AT_ONCE: u32 = 500;
const ANSWERED: &str = "select tenant, workspace, id from open_calls where answered = 1 and state = 'waiting' \
                        and ($1 is null or workspace = $1) order by tenant, id";
/// Who has a call, what was asked last, and the node of its workspace.
const WAITING_OWNER: &str = "select c.owner, w.node, (select q.kind from questions q where q.tenant = c.tenant \
                             and q.call = c.id order by q.number desc limit 1) as kind from open_calls c \
                             left join workspaces w on w.tenant = c.tenant and w.id = c.workspace \
                             where c.tenant = $1 and c.id = $2 and c.state = 'waiting'";
const WAITING_FOR: &str = "select w.node from open_calls c join workspaces w on w.tenant = c.tenant \
                           and w.id = c.workspace where c.tenant = $1 and c.id = $2 and c.answered = 1 and w.node <> $3";
/// What is asked after the yes: its answer is the end of the call, and needs no workspace.
const RESULT: &str = "result";
const CLAIM: &str = "update open_calls set owner = $4 where tenant = $1 and id = $2 and owner = $3 and state = 'waiting' \
                     returning 1 as claimed";

const OPEN_PAGE: &str = "select call, number, waited, body, answer from questions /*index questions_open*/ where tenant = $1 \
                         and open = 1 and call < $2 and ($4 is null or kind = $4) order by call desc limit $3";
const ANSWERED_PAGE: &str = "select call, number, waited, body, answer from questions where tenant = $1 and open = 0 \
                             and (call, number) < ($2, $5) and ($4 is null or kind = $4) \
                             order by call desc, number desc limit $3";
/// Comes after every call.
const AFTER_ALL: &str = "tc_~";

/// How much waits, of all tenants; counted up to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCounts {
    /// Open questions.
    pub questions: i64,
    /// Calls that wait for an answer.
    pub waiting: i64,
}

/// Which questions of a tenant, newest calls first.
#[derive(Clone, Debug, Default)]
pub struct QuestionFilter {
    /// Whether the answered ones are wanted, not the open ones.
    pub answered: bool,
    /// Only questions of this kind.
    pub kind: Option<String>,
    /// Only questions older than this one.
    pub before: Option<QuestionId>,
    /// How many at most.
    pub limit: u32,
}

impl QuestionRow {
    pub(crate) fn new(scope: &Scope, question: &Question) -> Result<Self, StoreError> {
        Ok(Self {
            call: question.call.to_string(),
            number: question.number,
            workspace: workspace(scope).map(str::to_owned),
            kind: question.kind(),
            asked_at: question.asked_at.as_microsecond(),
            expires_at: question.expires_at.as_microsecond(),
            waited: is_waited_for(question),
            body: serde_json::to_string(question)?,
        })
    }

    pub(crate) fn insert(&self, tenant: &str) -> Statement {
        Statement::new(INSERT)
            .bind(tenant)
            .bind(self.call.as_str())
            .bind(self.number)
            .bind(self.workspace.as_deref())
            .bind(self.kind)
            .bind(self.asked_at)
            .bind(self.expires_at)
            .bind(self.waited)
            .bind(self.body.as_str())
    }
}

impl Questions for Store {
    fn now(&self) -> Timestamp {
        Store::now(self)
    }

    fn ask<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a Question,
        entry: Entry,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let write = JournalWrite::new(scope, self.owner(), &entry)?.asking(scope, question)?;
            self.node().hold().await?;
            self.write(StoreWrite::Entry(Box::new(write))).await?;
            self.work().notify_one();
            Ok(())
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

    fn stop_waiting<'a>(
        &'a self,
        scope: &'a Scope,
        question: &'a QuestionId,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move {
            let stop = of_call(STOP_WAITING, scope, &question.call).bind(question.number);
            Ok(self.change(ConditionalWrite::new(tenant(scope), stop)).await?)
        })
    }

    fn keep_late<'a>(&'a self, call: &'a CallRecord, late: &'a LateResult) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move { Ok(self.keep_late_result(call, late).await?) })
    }

    fn late<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<Option<LateResult>, ToolError>> {
        Box::pin(async move { Ok(self.late_result(scope, call).await?) })
    }

    fn claim<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
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
            let by = (answered.by.clone(), answered.source);
            change = change.and_then(grants::remembering(scope, grant)?).audited(grants::given(scope, grant, Some(by)));
        }
        if self.change(change).await? {
            return Ok(AnswerReceipt::Taken);
        }
        let earlier = self.answer_of(scope, question).await?;
        Ok(earlier.map_or(AnswerReceipt::NoQuestion, AnswerReceipt::TooLate))
    }

    /// When the next open question expires, if there is any.
    pub async fn next_expiry(&self, _house: &HouseWide) -> Result<Option<Timestamp>, StoreError> {
        let row = self.read_one(Statement::new(NEXT_EXPIRY)).await?;
        row.map(|row| Columns { of: "questions", row: &row }.time("expires_at")).transpose()
    }

    /// How much waits, counted up to this many.
    pub async fn open_counts(&self, _house: &HouseWide, most: u32) -> Result<OpenCounts, StoreError> {
        let both = [OPEN_COUNT, WAITING_COUNT].map(|sql| Statement::new(sql).bind(most));
        let found = self.read_together(&both).await?;
        let count = |rows: Option<&Vec<Row>>| {
            let row = rows.and_then(|rows| rows.first());
            row.map_or(Ok(0), |row| Columns { of: "questions", row }.number("n"))
        };
        Ok(OpenCounts { questions: count(found.first())?, waiting: count(found.get(1))? })
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
        Ok(Some((question_of(&columns)?, columns.json_or_none("answer")?)))
    }

    async fn open_questions(&self, scope: &Scope, within: &Within) -> Result<Vec<Question>, StoreError> {
        let find = match only(within) {
            Some(workspace) => Statement::new(OPEN_OF_WORKSPACE).bind(tenant(scope)).bind(workspace),
            None => Statement::new(OPEN).bind(tenant(scope)),
        };
        let body = |row: &Row| {
            let call = Columns { of: "questions", row }.text("call")?;
            question_of(&Columns { of: &call, row })
        };
        self.read(find).await?.iter().map(body).collect()
    }

    async fn overdue_questions(&self, house: &HouseWide) -> Result<Vec<(Scope, QuestionId)>, StoreError> {
        let now = self.look_at_clock().await?.as_microsecond();
        let overdue = |row: &Row| {
            let columns = Columns { of: "questions", row };
            let question = QuestionId { call: columns.call_id("call")?, number: columns.count("number")? };
            Ok((columns.scope()?, question))
        };
        let find = Statement::new(OVERDUE).bind(now).bind(only(house.carries())).bind(OVERDUE_AT_ONCE);
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
    async fn claim_waiting(&self, scope: &Scope, call: &CallId) -> Result<ClaimResult, StoreError> {
        let found = self.read_one(of_call(WAITING_OWNER, scope, call)).await?;
        let Some(row) = found else { return Ok(ClaimResult::NotClaimed) };
        let columns = Columns { of: call.as_str(), row: &row };
        let owner = columns.text("owner")?;
        let _held = match self.node().look_at(&owner).await {
            // Nobody else in this process has it in hand.
            Life::Alive if owner == self.owner() => None,
            // A living owner carries its call on itself.
            Life::Alive => return Ok(ClaimResult::NotClaimed),
            Life::Dead(lock) => lock,
        };
        let needs_folder = columns.text_or_none("kind")?.is_none_or(|kind| kind != RESULT);
        let elsewhere = columns.text_or_none("node")?.filter(|node| needs_folder && self.is_another_node(node));
        if let Some(node) = elsewhere {
            return Ok(ClaimResult::OfNode(node));
        }
        self.node().hold().await?;
        let claim = of_call(CLAIM, scope, call).bind(owner).bind(self.owner());
        let nobody_waits = of_call(WAITED_BY_THE_DEAD, scope, call);
        match self.change(ConditionalWrite::new(tenant(scope), claim).and_then(nobody_waits)).await? {
            true => Ok(ClaimResult::Claimed),
            false => Ok(ClaimResult::NotClaimed),
        }
    }

    /// The node that has to carry an answered call on, where that is another one.
    pub async fn waiting_for_node(&self, scope: &Scope, call: &CallId) -> Result<Option<String>, StoreError> {
        let Some(this) = self.node_name() else { return Ok(None) };
        let found = self.read_one(of_call(WAITING_FOR, scope, call).bind(this)).await?;
        found.map(|row| Columns { of: call.as_str(), row: &row }.text("node")).transpose()
    }
}

/// Whether the caller's request is held for its answer.
fn is_waited_for(question: &Question) -> bool {
    match &question.about {
        About::Result(awaited) => awaited.delivered == Delivered::Inline,
        About::Form(_) | About::Approval(_) => false,
    }
}

/// The question as it was put, but for whether its caller still waits.
fn question_of(columns: &Columns<'_>) -> Result<Question, StoreError> {
    let mut question: Question = columns.json("body")?;
    if let About::Result(awaited) = &mut question.about {
        awaited.delivered = if columns.flag("waited")? { Delivered::Inline } else { Delivered::Inbox };
    }
    Ok(question)
}

impl Store {
    /// One page of a tenant's questions with their answers, newest calls first.
    pub async fn question_page(
        &self,
        scope: &Scope,
        filter: &QuestionFilter,
    ) -> Result<Vec<(Question, Option<Answered>)>, StoreError> {
        let (before, number) = match &filter.before {
            Some(last) => (last.call.as_str(), last.number),
            None => (AFTER_ALL, 0),
        };
        let sql = if filter.answered { ANSWERED_PAGE } else { OPEN_PAGE };
        let mut find =
            Statement::new(sql).bind(tenant(scope)).bind(before).bind(filter.limit).bind(filter.kind.as_deref());
        if filter.answered {
            find = find.bind(number);
        }
        let read = |row: &Row| {
            let call = Columns { of: "questions", row }.text("call")?;
            let columns = Columns { of: &call, row };
            Ok((question_of(&columns)?, columns.json_or_none("answer")?))
        };
        self.read(find).await?.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_questions() {
        let statements =
            [ANSWER, STOP_WAITING, WAITED_BY_THE_DEAD, FIND, ANSWER_OF, OPEN, OPEN_OF_WORKSPACE, WAITING_OWNER, CLAIM];
        crate::schema::tests::assert_quick(&statements);
        crate::schema::tests::assert_quick(&[WAITING_FOR]);
        for (statement, index) in [(OPEN_COUNT, "questions_"), (WAITING_COUNT, "open_calls_waiting")] {
            let steps = crate::schema::tests::plan(statement);
            assert!(steps.iter().any(|step| step.contains("COVERING INDEX") && step.contains(index)), "{steps:?}");
        }
        crate::schema::tests::assert_reads_only(OVERDUE, "questions_expiring");
        crate::schema::tests::assert_reads_only(&crate::sqlite::with_hints(NEXT_EXPIRY), "questions_expiring");
        crate::schema::tests::assert_reads_only(ANSWERED, "open_calls_answered");
        let open_page = crate::sqlite::with_hints(OPEN_PAGE);
        crate::schema::tests::assert_quick(&[&open_page, ANSWERED_PAGE]);
        crate::schema::tests::assert_reads_only(&open_page, "questions_open");
    }
}

//! What reaches a caller after nobody waited for it any more.

use std::fmt;

use haft_runtime::{CallId, CallRecord, Caller, CallerRecord, End, Entry, LateResult, ToolError, Via};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// The id of an item: `in_` and a UUIDv7, so that they are in the order of their time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct InboxItemId(String);

impl InboxItemId {
    fn new() -> Self {
        Self(format!("in_{}", uuid::Uuid::now_v7().simple()))
    }

    /// What was typed, when it can be an id at all.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.strip_prefix("in_")?;
        let fits = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InboxItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One item of a caller's inbox.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxItem {
    /// Which one.
    pub id: InboxItemId,
    /// What it is: `tool_result`.
    pub kind: String,
    /// The call that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What it says. A `tool_result` has `callId`, `tool`, `status`, `result` or `error`, and where they apply `runId` and
    /// `late`.
    pub body: Value,
    /// When it came.
    pub created_at: Timestamp,
    /// When its caller was done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumed_at: Option<Timestamp>,
}

/// Which items of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InboxState {
    /// Those that nobody is done with.
    Open,
    /// The others.
    Consumed,
}

/// In which order a list of items goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxOrder {
    /// For people.
    NewestFirst,
    /// For whoever works through them.
    OldestFirst,
}

/// One page of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxPage {
    /// Which items.
    pub state: InboxState,
    /// In which order.
    pub order: InboxOrder,
    /// The last item of the page before.
    pub after: Option<InboxItemId>,
    /// At most so many.
    pub limit: u32,
}

/// An item that is ready to be written.
pub(crate) struct InboxRow {
    id: InboxItemId,
    call: String,
    body: String,
    created_at: i64,
}

/// What a `tool_result` says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResultBody<'a> {
    call_id: &'a CallId,
    tool: &'a str,
    status: &'a str,
    #[serde(flatten)]
    end: ResultOrError<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ResultOrError<'a> {
    Result(&'a Value),
    Error(&'a ToolError),
}

const TOOL_RESULT: &str = "tool_result";

/// Whether the caller still waits is looked at where it counts, in the transaction that ends the call.
const DELIVER_UNLESS_WAITED_FOR: &str = "insert into inbox_items (tenant, id, caller, kind, call, body, created_at) \
                                         select $1, $2, $3, $4, $5, $6, $7 from questions \
                                         where tenant = $1 and call = $5 and number = $8 and waited = 0";
const DELIVER: &str = "insert into inbox_items (tenant, id, caller, kind, call, body, created_at) \
                       values ($1, $2, $3, $4, $5, $6, $7)";
const FIND: &str = "select id, kind, call, body, created_at, consumed_at from inbox_items \
                    where tenant = $1 and id = $2 and caller = $3";
const CONSUME: &str = "update inbox_items set consumed_at = $4 \
                       where tenant = $1 and id = $2 and caller = $3 and consumed_at is null returning 1 as consumed";

/// One page of one caller's items, by the index that has them in order.
macro_rules! page {
    ($index:literal, $rest:literal) => {
        concat!(
            "select id, kind, call, body, created_at, consumed_at from inbox_items /*index ",
            $index,
            "*/ where tenant = $1 and caller = $2 and id ",
            $rest,
            " limit $4"
        )
    };
}
const OPEN_NEWEST: &str = page!("inbox_items_open", "< $3 and consumed_at is null order by id desc");
const OPEN_OLDEST: &str = page!("inbox_items_open", "> $3 and consumed_at is null order by id");
const CONSUMED_NEWEST: &str = page!("inbox_items_of_caller", "< $3 and consumed_at is not null order by id desc");
const CONSUMED_OLDEST: &str = page!("inbox_items_of_caller", "> $3 and consumed_at is not null order by id");

/// Before and after every id.
const FIRST: &str = "";
const LAST: &str = "~";

impl InboxRow {
    /// The outcome of a call that has waited for a result from outside.
    pub(crate) fn of_end(entry: &Entry, created_at: i64) -> Result<Option<Self>, StoreError> {
        let (Some(_), Some(outcome)) = (entry.result_of, &entry.outcome) else { return Ok(None) };
        let end = match &outcome.end {
            End::Success { result } => ResultOrError::Result(&result.structured),
            End::Error { error } | End::Rejected { error, .. } | End::Cancelled { error } => {
                ResultOrError::Error(error)
            }
            End::Pending { .. } => return Ok(None),
        };
        let (call_id, tool, status) = (&entry.call, outcome.tool.as_str(), outcome.end.status());
        let body = ToolResultBody { call_id, tool, status, end, run_id: run(&entry.via), late: false };
        Self::new(&body, created_at).map(Some)
    }

    /// A result that came after its call had timed out.
    pub(crate) fn of_late(call: &CallRecord, late: &LateResult) -> Result<Self, StoreError> {
        let given = late.submission.outcome();
        let (status, end) = match &given {
            Ok(value) => ("success", ResultOrError::Result(value)),
            Err(error) => ("error", ResultOrError::Error(error)),
        };
        let (call_id, tool, run_id) = (&call.call, call.opening.tool.as_str(), run(&call.opening.caller.via));
        let body = ToolResultBody { call_id, tool, status, end, run_id, late: true };
        Self::new(&body, late.at.as_microsecond())
    }

    fn new(body: &ToolResultBody<'_>, created_at: i64) -> Result<Self, StoreError> {
        let (id, call) = (InboxItemId::new(), body.call_id.to_string());
        Ok(Self { id, call, body: serde_json::to_string(body)?, created_at })
    }

    /// What writes it, unless the call's caller waits for the answer to this question. The caller is read from the call's row.
    pub(crate) fn unless_waited_for(
        &self,
        tenant: &str,
        caller: &str,
        question: u32,
    ) -> Result<Statement, serde_json::Error> {
        let caller: CallerRecord = serde_json::from_str(caller)?;
        Ok(self.columns(DELIVER_UNLESS_WAITED_FOR, tenant, &caller).bind(question))
    }

    /// What writes it.
    pub(crate) fn insert(&self, tenant: &str, caller: &CallerRecord) -> Statement {
        self.columns(DELIVER, tenant, caller)
    }

    fn columns(&self, sql: &'static str, tenant: &str, caller: &CallerRecord) -> Statement {
        Statement::new(sql)
            .bind(tenant)
            .bind(self.id.as_str())
            .bind(caller.who.id.to_string())
            .bind(TOOL_RESULT)
            .bind(self.call.as_str())
            .bind(self.body.as_str())
            .bind(self.created_at)
    }
}

fn run(via: &Via) -> Option<&str> {
    via.run.as_deref()
}

impl Store {
    /// A page of the caller's own inbox.
    pub async fn inbox(&self, caller: &Caller, page: &InboxPage) -> Result<Vec<InboxItem>, StoreError> {
        let (sql, begin) = match (page.state, page.order) {
            (InboxState::Open, InboxOrder::NewestFirst) => (OPEN_NEWEST, LAST),
            (InboxState::Open, InboxOrder::OldestFirst) => (OPEN_OLDEST, FIRST),
            (InboxState::Consumed, InboxOrder::NewestFirst) => (CONSUMED_NEWEST, LAST),
            (InboxState::Consumed, InboxOrder::OldestFirst) => (CONSUMED_OLDEST, FIRST),
        };
        let find = Statement::new(sql).bind(tenant(&caller.scope)).bind(caller.id.to_string());
        let find = find.bind(page.after.as_ref().map_or(begin, InboxItemId::as_str)).bind(page.limit);
        self.read(find).await?.iter().map(item).collect()
    }

    /// Notes that the caller is done with an item of its own, which may be said again. `None` means that it has no such item.
    pub async fn consume(&self, caller: &Caller, item: &InboxItemId) -> Result<Option<InboxItem>, StoreError> {
        let consume = own(CONSUME, caller, item).bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::new(tenant(&caller.scope), consume)).await?;
        self.read_one(own(FIND, caller, item)).await?.as_ref().map(self::item).transpose()
    }
}

/// A statement about one item of a caller.
fn own(sql: &'static str, caller: &Caller, item: &InboxItemId) -> Statement {
    Statement::new(sql).bind(tenant(&caller.scope)).bind(item.as_str()).bind(caller.id.to_string())
}

fn item(row: &Row) -> Result<InboxItem, StoreError> {
    let id = Columns { of: "inbox_items", row }.text("id")?;
    let columns = Columns { of: &id, row };
    Ok(InboxItem {
        kind: columns.text("kind")?,
        call_id: columns.call_id_or_none("call")?,
        body: columns.json("body")?,
        created_at: columns.time("created_at")?,
        consumed_at: columns.time_or_none("consumed_at")?,
        id: InboxItemId(id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{assert_quick, assert_reads_only};

    #[test]
    fn no_statement_reads_all_inboxes() {
        assert_quick(&[DELIVER_UNLESS_WAITED_FOR, DELIVER, FIND, CONSUME]);
        let pages = [
            (OPEN_NEWEST, "inbox_items_open"),
            (OPEN_OLDEST, "inbox_items_open"),
            (CONSUMED_NEWEST, "inbox_items_of_caller"),
            (CONSUMED_OLDEST, "inbox_items_of_caller"),
        ];
        for (sql, index) in pages {
            let sql = crate::sqlite::with_hints(sql);
            assert_quick(&[&sql]);
            assert_reads_only(&sql, index);
        }
    }
}

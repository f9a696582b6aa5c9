//! Views of the journal: lists of calls, their events and their numbers.

use std::collections::BTreeMap;

use haft_runtime::{CallEvent, CallId, CallState, Scope, Source};
use jiff::Timestamp;
use serde::Serialize;
use sqlx::{QueryBuilder, Row, Sqlite, sqlite::SqliteRow};

use crate::{
    Store, StoreError,
    columns::{Columns, word},
};

/// Which calls to list. What is absent limits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFilter {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls with this status: `success`, `error`, `rejected`, `pending` or `cancelled`.
    pub status: Option<String>,
    /// Only calls that stand here.
    pub state: Option<CallState>,
    /// Only calls that came in at or after this time.
    pub since: Option<Timestamp>,
    /// Only calls older than this one, to page on.
    pub before: Option<CallId>,
    /// At most so many.
    pub limit: u32,
}

impl Default for CallFilter {
    fn default() -> Self {
        Self { tool: None, status: None, state: None, since: None, before: None, limit: 50 }
    }
}

/// One call in a list, without its input and outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRow {
    /// Which call.
    pub id: CallId,
    /// The workspace that it belongs to.
    pub workspace: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// Who asked.
    pub caller: String,
    /// Through which door.
    pub source: Source,
    /// Where it stands.
    pub state: CallState,
    /// How it ended, or `pending`; absent while it runs.
    pub status: Option<String>,
    /// The error's code, where there is one.
    pub code: Option<String>,
    /// When it came in.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How long the work took.
    pub duration_ms: Option<i64>,
    /// Whether somebody was asked about it.
    pub asked: bool,
}

/// How many calls there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them, running ones included.
    pub calls: i64,
    /// Those that have a status, by status.
    pub by_status: BTreeMap<String, i64>,
}

/// Ids are a little older than the calls they name; so much older at most.
const ID_AGE_MS: i64 = 60_000;

const LIST: &str = "select id, workspace, tool, caller, source, state, status, code, started_at, finished_at, \
                    duration_ms, asked from calls where tenant = ";
const COUNT: &str = "select status, count(*) as calls from calls where tenant = ";
const EVENTS: &str = "select seq, at, data from events where tenant = $1 and call = $2 order by seq";
const CHILDREN: &str = "select id from calls where tenant = $1 and parent = $2 order by id";

impl Store {
    /// The calls that the filter lets through, newest first.
    pub async fn calls(&self, scope: &Scope, filter: &CallFilter) -> Result<Vec<CallRow>, StoreError> {
        let rows = list_query(scope, filter)?.build().fetch_all(self.reads()).await?;
        rows.iter().map(call_row).collect()
    }

    /// What happened to a call, in order, each with its cursor.
    pub async fn events(&self, scope: &Scope, call: &CallId) -> Result<Vec<(i64, Timestamp, CallEvent)>, StoreError> {
        let query = sqlx::query(EVENTS).bind(&scope.tenant.0).bind(call.as_str());
        let read = |row| {
            let columns = Columns { of: call.as_str(), row };
            Ok((columns.plain("seq")?, columns.time("at")?, columns.json("data")?))
        };
        query.fetch_all(self.reads()).await?.iter().map(read).collect()
    }

    /// The calls that come from a call, oldest first.
    pub async fn children(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallId>, StoreError> {
        let query = sqlx::query(CHILDREN).bind(&scope.tenant.0).bind(call.as_str());
        let rows = query.fetch_all(self.reads()).await?;
        rows.iter().map(|row| Columns { of: call.as_str(), row }.call_id("id")).collect()
    }

    /// How many calls came in since a time, and how they ended.
    pub async fn counts(&self, scope: &Scope, since: Timestamp) -> Result<Counts, StoreError> {
        let mut query = QueryBuilder::new(COUNT);
        narrow(&mut query, scope, Some(since));
        query.push(" group by status");
        let mut counts = Counts::default();
        for row in query.build().fetch_all(self.reads()).await? {
            let columns = Columns { of: "calls", row: &row };
            let calls: i64 = columns.plain("calls")?;
            counts.calls += calls;
            if let Some(status) = columns.plain("status")? {
                counts.by_status.insert(status, calls);
            }
        }
        Ok(counts)
    }
}

fn list_query(scope: &Scope, filter: &CallFilter) -> Result<QueryBuilder<Sqlite>, StoreError> {
    let mut query = QueryBuilder::new(LIST);
    narrow(&mut query, scope, filter.since);
    if let Some(tool) = &filter.tool {
        query.push(" and tool = ").push_bind(tool.clone());
    }
    if let Some(status) = &filter.status {
        query.push(" and status = ").push_bind(status.clone());
    }
    if let Some(state) = &filter.state {
        query.push(" and state = ").push_bind(word(state)?);
        if *state != CallState::Ended {
            // In these words, so that the index of the unfinished calls is used.
            query.push(" and state <> 'ended'");
        }
    }
    if let Some(before) = &filter.before {
        query.push(" and id < ").push_bind(before.as_str().to_owned());
    }
    query.push(" order by id desc limit ").push_bind(i64::from(filter.limit));
    Ok(query)
}

/// Only the calls of the scope and since a time. Ids begin with their time, so the index on them finds the first.
fn narrow(query: &mut QueryBuilder<Sqlite>, scope: &Scope, since: Option<Timestamp>) {
    query.push_bind(scope.tenant.0.clone());
    if let Some(workspace) = &scope.workspace {
        query.push(" and workspace = ").push_bind(workspace.clone());
    }
    if let Some(since) = since {
        let oldest = since.as_millisecond().saturating_sub(ID_AGE_MS).max(0);
        query.push(" and id >= ").push_bind(format!("tc_{oldest:012x}"));
        query.push(" and started_at >= ").push_bind(since.as_microsecond());
    }
}

fn call_row(row: &SqliteRow) -> Result<CallRow, StoreError> {
    let id: String = row.try_get("id")?;
    let columns = Columns { of: &id, row };
    Ok(CallRow {
        id: columns.call_id("id")?,
        workspace: columns.plain("workspace")?,
        tool: columns.plain("tool")?,
        caller: columns.plain("caller")?,
        source: columns.word("source")?,
        state: columns.word("state")?,
        status: columns.plain("status")?,
        code: columns.plain("code")?,
        started_at: columns.time("started_at")?,
        finished_at: columns.time_or_none("finished_at")?,
        duration_ms: columns.plain("duration_ms")?,
        asked: columns.plain("asked")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_list_reads_all_calls_or_sorts_them() {
        let (tool, status) = (Some("read_file".to_owned()), Some("error".to_owned()));
        let all = CallFilter::default();
        let filters = [
            CallFilter { before: Some(CallId::new()), ..all.clone() },
            CallFilter { since: Some(Timestamp::UNIX_EPOCH), ..all.clone() },
            CallFilter { tool, before: Some(CallId::new()), ..all.clone() },
            CallFilter { state: Some(CallState::Waiting), ..all.clone() },
            CallFilter { state: Some(CallState::Ended), ..all.clone() },
            CallFilter { status, ..all.clone() },
            all,
        ];
        let local = Scope::local("w");
        let mut texts = Vec::new();
        for filter in &filters {
            for scope in [&local, &local.all_workspaces()] {
                texts.push(list_query(scope, filter).unwrap().sql().as_str().to_owned());
            }
        }
        let mut statements: Vec<&str> = texts.iter().map(String::as_str).collect();
        statements.extend([EVENTS, CHILDREN]);
        crate::schema::tests::assert_quick(&statements).await;
    }
}

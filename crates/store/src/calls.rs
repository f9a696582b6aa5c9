//! Views of the journal: lists of calls, their events and their numbers.

use haft_runtime::{CallEvent, CallId, CallState, CallerRecord, Isolation, Scope, Source, Within, WorkspaceId};
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
    pub workspace: Option<WorkspaceId>,
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
    /// The rung of the processes that it really started; absent while it has no envelope.
    pub isolation: Option<Isolation>,
}

/// Ids are a little older than the calls they name; so much older at most.
const ID_AGE_MS: i64 = 60_000;

macro_rules! rows {
    ($rest:literal) => {
        concat!(
            "select id, workspace, tool, caller, source, state, status, code, started_at, finished_at, duration_ms, ",
            "asked, outcome ->> '$.isolation' as isolation from calls ",
            $rest
        )
    };
}
const LIST: &str = rows!("");
const OFFSPRING: &str = rows!("where tenant = $1 and parent = $2 order by id");
const TURNS: &str = rows!("where tenant = $1 and turn_of = $2 and id <> $2 order by id");
const EVENTS: &str = "select seq, at, data from events where tenant = $1 and call = $2 order by seq";
const CHILDREN: &str = "select id from calls where tenant = $1 and parent = $2 order by id";

impl Store {
    /// The calls that the filter lets through, newest first.
    pub async fn calls(&self, scope: &Scope, within: &Within, filter: &CallFilter) -> Result<Vec<CallRow>, StoreError> {
        let rows = list_query(scope, within, filter)?.build().fetch_all(self.reads().await?).await?;
        rows.iter().map(call_row).collect()
    }

    /// What happened to a call, in order, each with its cursor.
    pub async fn events(&self, scope: &Scope, call: &CallId) -> Result<Vec<(i64, Timestamp, CallEvent)>, StoreError> {
        let query = sqlx::query(EVENTS).bind(scope.tenant().as_str()).bind(call.as_str());
        let read = |row| {
            let columns = Columns { of: call.as_str(), row };
            Ok((columns.plain("seq")?, columns.time("at")?, columns.json("data")?))
        };
        query.fetch_all(self.reads().await?).await?.iter().map(read).collect()
    }

    /// The calls that come from a call, oldest first.
    pub async fn children(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallId>, StoreError> {
        let query = sqlx::query(CHILDREN).bind(scope.tenant().as_str()).bind(call.as_str());
        let rows = query.fetch_all(self.reads().await?).await?;
        rows.iter().map(|row| Columns { of: call.as_str(), row }.call_id("id")).collect()
    }

    /// The calls that come from a call or took a turn with what it staged, oldest first.
    pub async fn relatives(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallRow>, StoreError> {
        let mut found = Vec::new();
        for text in [OFFSPRING, TURNS] {
            let rows = sqlx::query(text)
                .bind(scope.tenant().as_str())
                .bind(call.as_str())
                .fetch_all(self.reads().await?)
                .await?;
            for row in &rows {
                found.push(call_row(row)?);
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found)
    }
}

/// The list as a statement. No list walks over calls that it leaves out, but for those of other workspaces.
pub(crate) fn list_query(
    scope: &Scope,
    within: &Within,
    filter: &CallFilter,
) -> Result<QueryBuilder<Sqlite>, StoreError> {
    let mut query = QueryBuilder::new(LIST);
    // SQLite knows nothing of how rare each value is, so it is told.
    query.push(index(within, filter)).push("where tenant = ").push_bind(scope.tenant().to_string());
    if let Within::Only(workspace) = within {
        query.push(" and workspace = ").push_bind(workspace.to_string());
    }
    if let Some(tool) = &filter.tool {
        query.push(" and tool = ").push_bind(tool.clone());
    }
    narrow_by_status(&mut query, filter)?;
    if let Some(since) = filter.since {
        // Ids begin with their time, so the index on them finds the first.
        let oldest = since.as_millisecond().saturating_sub(ID_AGE_MS).max(0);
        query.push(" and id >= ").push_bind(format!("tc_{oldest:012x}"));
        query.push(" and started_at >= ").push_bind(since.as_microsecond());
    }
    if let Some(before) = &filter.before {
        query.push(" and id < ").push_bind(before.as_str().to_owned());
    }
    query.push(" order by id desc limit ").push_bind(i64::from(filter.limit));
    Ok(query)
}

/// The index that leads to the fewest calls.
fn index(within: &Within, filter: &CallFilter) -> &'static str {
    let status = filter.status.as_deref();
    let is_unfinished = status == Some("pending") || filter.state.is_some_and(|state| state != CallState::Ended);
    let is_unsuccessful = status.is_some_and(|status| status != "success");
    match (is_unfinished, is_unsuccessful, filter.tool.is_some(), within.only().is_some()) {
        (true, _, _, _) => "indexed by calls_open ",
        (false, true, true, _) => "indexed by calls_unsuccessful_of_tool ",
        (false, true, false, _) => "indexed by calls_unsuccessful ",
        (false, false, true, _) => "indexed by calls_of_tool ",
        (false, false, false, true) => "indexed by calls_of_workspace ",
        (false, false, false, false) => "",
    }
}

/// In such words that the indexes of the few calls are used: the unfinished and the unsuccessful ones.
fn narrow_by_status(query: &mut QueryBuilder<Sqlite>, filter: &CallFilter) -> Result<(), StoreError> {
    // A call waits whether its caller was handed back `pending` or still waits with it.
    let waits = filter.status.as_deref() == Some("pending");
    if let Some(status) = filter.status.as_ref().filter(|_| !waits) {
        query.push(" and status = ").push_bind(status.clone());
        if status != "success" {
            query.push(" and status <> 'success'");
        }
    }
    if let Some(state) = filter.state.or(waits.then_some(CallState::Waiting)) {
        query.push(" and state = ").push_bind(word(&state)?);
        if state != CallState::Ended {
            query.push(" and state <> 'ended'");
        }
    }
    Ok(())
}

pub(crate) fn call_row(row: &SqliteRow) -> Result<CallRow, StoreError> {
    let id: String = row.try_get("id")?;
    let columns = Columns { of: &id, row };
    let state = columns.word("state")?;
    let status: Option<String> = columns.plain("status")?;
    // A call whose caller still waits with it has no envelope yet.
    let status = if state == CallState::Waiting { status.or(Some("pending".to_owned())) } else { status };
    Ok(CallRow {
        id: columns.call_id("id")?,
        workspace: columns.workspace()?,
        tool: columns.plain("tool")?,
        caller: columns.json::<CallerRecord>("caller")?.who.name,
        source: columns.word("source")?,
        state,
        status,
        code: columns.plain("code")?,
        started_at: columns.time("started_at")?,
        finished_at: columns.time_or_none("finished_at")?,
        duration_ms: columns.plain("duration_ms")?,
        asked: columns.plain("asked")?,
        isolation: columns.word_or_none("isolation")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{assert_quick, plan};

    fn statement(within: &Within, filter: &CallFilter) -> String {
        list_query(&Scope::local("w"), within, filter).unwrap().sql().as_str().to_owned()
    }

    #[test]
    fn every_list_uses_the_index_that_leads_to_its_calls() {
        let (tool, error) = (Some("read_file".to_owned()), Some("error".to_owned()));
        let (success, pending) = (Some("success".to_owned()), Some("pending".to_owned()));
        let all = CallFilter::default();
        let filters = [
            (all.clone(), "calls_of_workspace"),
            (CallFilter { tool: tool.clone(), ..all.clone() }, "calls_of_tool"),
            (CallFilter { tool: tool.clone(), status: success.clone(), ..all.clone() }, "calls_of_tool"),
            (CallFilter { tool: tool.clone(), status: error.clone(), ..all.clone() }, "calls_unsuccessful_of_tool"),
            (CallFilter { status: error, ..all.clone() }, "calls_unsuccessful "),
            (CallFilter { status: pending.clone(), ..all.clone() }, "calls_open"),
            (CallFilter { tool, status: pending, ..all.clone() }, "calls_open"),
            (CallFilter { state: Some(CallState::Waiting), ..all.clone() }, "calls_open"),
            (CallFilter { state: Some(CallState::Ended), ..all.clone() }, "calls_of_workspace"),
            (CallFilter { status: success, ..all }, "calls_of_workspace"),
        ];
        let here = Within::Only(WorkspaceId::new("w"));
        for (filter, index) in filters {
            let since = Some(Timestamp::UNIX_EPOCH);
            let narrower = CallFilter { since, before: Some(CallId::new()), ..filter.clone() };
            for filter in [filter, narrower] {
                let text = statement(&here, &filter);
                let steps = plan(&text).join("\n");
                assert!(steps.contains(index), "{text}\n{steps}");
                assert_quick(&[&text, &statement(&Within::Everything, &filter)]);
            }
        }
    }

    #[test]
    fn no_statement_about_one_call_reads_all_of_them() {
        assert_quick(&[EVENTS, CHILDREN, OFFSPRING, TURNS]);
    }
}

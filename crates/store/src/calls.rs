//! Views of the journal: lists of calls, their events and their numbers.

use haft_runtime::{
    CallEvent, CallId, CallState, CallerRecord, CallerRef, Isolation, Scope, Source, ToolError, Via, Within,
    WorkspaceId,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Store, StoreError,
    columns::{Columns, only, tenant, word},
    journal::of_call,
    journal_events::numbered,
    sql::{Row, Statement},
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
    /// Only calls of this session.
    pub session: Option<String>,
    /// Only calls that came in at or after this time.
    pub since: Option<Timestamp>,
    /// Only calls older than this one, to page on.
    pub before: Option<CallId>,
    /// At most so many.
    pub limit: u32,
}

impl Default for CallFilter {
    fn default() -> Self {
        Self { tool: None, status: None, state: None, session: None, since: None, before: None, limit: 50 }
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
    /// What whoever asked is called.
    pub caller: String,
    /// Who asked.
    #[serde(skip)]
    pub asked_by: CallerRef,
    /// What it is part of.
    #[serde(skip)]
    pub via: Via,
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

/// An error that a call of a tool ended with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LastError {
    /// The call.
    #[serde(rename = "callId")]
    pub call: CallId,
    /// When it came in.
    pub at: Timestamp,
    /// What went wrong.
    #[serde(flatten)]
    pub error: ToolError,
}

/// How many trials are passed over in search of an error of a call that was meant.
const TRIALS_PASSED_OVER: u32 = 20;

/// Ids are a little older than the calls they name; so much older at most.
const ID_AGE_MS: i64 = 60_000;

/// The columns of a list, of calls that are open or have ended.
macro_rules! open_rows {
    ($rest:literal) => {
        concat!(
            "select id, workspace, tool, caller, source, state, status, code, started_at, finished_at, duration_ms, ",
            "asked, isolation from open_calls ",
            $rest
        )
    };
}
macro_rules! ended_rows {
    ($rest:literal) => {
        concat!(
            "select id, workspace, tool, caller, source, 'ended' as state, status, code, started_at, finished_at, ",
            "duration_ms, asked, isolation from calls ",
            $rest
        )
    };
}
const LIST_OPEN: &str = open_rows!("");
const LIST_ENDED: &str = ended_rows!("");
const ONE_OPEN: &str = open_rows!("where tenant = $1 and id = $2");
const ONE_ENDED: &str = ended_rows!("where tenant = $1 and id = $2");
const OPEN_OFFSPRING: &str = open_rows!("where tenant = $1 and parent = $2 order by id");
const ENDED_OFFSPRING: &str = ended_rows!("where tenant = $1 and parent = $2 order by id");
const OPEN_TURNS: &str = open_rows!("where tenant = $1 and turn_of = $2 and turn_of <> id order by id");
const ENDED_TURNS: &str = ended_rows!("where tenant = $1 and turn_of = $2 and turn_of <> id order by ended_seq");
const CALLER_OF_ENDED: &str = "select caller from calls where tenant = $1 and id = $2";
const CALLER_OF_OPEN: &str = "select caller from open_calls where tenant = $1 and id = $2";
const EVENTS: &str = "select seq, events from entries where tenant = $1 and call = $2 order by seq";

impl Store {
    /// The calls that the filter lets through, newest first.
    pub async fn calls(&self, scope: &Scope, within: &Within, filter: &CallFilter) -> Result<Vec<CallRow>, StoreError> {
        let found = self.read_together(&list_statements(scope, within, filter)?).await?;
        newest_first(&found, filter)
    }

    /// The last error of a tool that was meant to work.
    pub async fn last_error(
        &self,
        scope: &Scope,
        within: &Within,
        (tool, since): (&str, Option<Timestamp>),
    ) -> Result<Option<LastError>, StoreError> {
        let (tool, status) = (Some(tool.to_owned()), Some("error".to_owned()));
        let filter = CallFilter { tool, status, since, limit: TRIALS_PASSED_OVER, ..CallFilter::default() };
        let calls = self.calls(scope, within, &filter).await?;
        let Some(call) = calls.into_iter().find(|call| call.via.trial.is_none()) else { return Ok(None) };
        let record = self.record_of(scope, &call.id).await?;
        let error = record.and_then(|record| record.outcome).and_then(|outcome| outcome.end.error().cloned());
        Ok(error.map(|error| LastError { call: call.id, at: call.started_at, error }))
    }

    /// One call, as a list has it.
    pub(crate) async fn call_row(&self, scope: &Scope, call: &CallId) -> Result<Option<CallRow>, StoreError> {
        let both = [of_call(ONE_ENDED, scope, call), of_call(ONE_OPEN, scope, call)];
        self.read_together(&both).await?.iter().flatten().next().map(call_row).transpose()
    }

    /// Who asked for a call.
    pub async fn caller_of(&self, scope: &Scope, call: &CallId) -> Result<Option<CallerRef>, StoreError> {
        let both = [CALLER_OF_ENDED, CALLER_OF_OPEN].map(|sql| of_call(sql, scope, call));
        let found = self.read_together(&both).await?;
        let caller = |row: &Row| Columns { of: call.as_str(), row }.json::<CallerRecord>("caller");
        Ok(found.iter().flatten().next().map(caller).transpose()?.map(|caller| caller.who))
    }

    /// What happened to a call, in order, each with its cursor.
    pub async fn events(&self, scope: &Scope, call: &CallId) -> Result<Vec<(i64, Timestamp, CallEvent)>, StoreError> {
        let mut events = Vec::new();
        for row in self.read(of_call(EVENTS, scope, call)).await? {
            events.extend(numbered(&Columns { of: call.as_str(), row: &row })?);
        }
        Ok(events)
    }

    /// The calls that come from a call, oldest first.
    pub async fn children(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallId>, StoreError> {
        let found = self.about_call(&[OPEN_OFFSPRING, ENDED_OFFSPRING], scope, call).await?;
        Ok(found.into_iter().map(|child| child.id).collect())
    }

    /// The calls that come from a call or took a turn with what it staged, oldest first.
    pub async fn relatives(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallRow>, StoreError> {
        self.about_call(&[OPEN_OFFSPRING, ENDED_OFFSPRING, OPEN_TURNS, ENDED_TURNS], scope, call).await
    }

    /// The calls that several statements find, each once, oldest first.
    async fn about_call(
        &self,
        statements: &[&'static str],
        scope: &Scope,
        call: &CallId,
    ) -> Result<Vec<CallRow>, StoreError> {
        let statements: Vec<_> = statements.iter().map(|sql| of_call(sql, scope, call)).collect();
        let rows = self.read_together(&statements).await?;
        let mut found = rows.iter().flatten().map(call_row).collect::<Result<Vec<_>, _>>()?;
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found)
    }
}

/// The list as statements: one for calls that are open, one for those that have ended, each as far as it is wanted. No list
/// walks over calls that it leaves out, but for those of other workspaces.
pub(crate) fn list_statements(
    scope: &Scope,
    within: &Within,
    filter: &CallFilter,
) -> Result<Vec<Statement>, StoreError> {
    // A call waits whether its caller was handed back `pending` or still waits with it.
    let waits = filter.status.as_deref() == Some("pending");
    let state = filter.state.or(waits.then_some(CallState::Waiting));
    let mut statements = Vec::new();
    if state.is_none_or(|state| state != CallState::Ended) && (waits || filter.status.is_none()) {
        for (index, which) in open_lists(within, filter, state) {
            let list = narrowed(Statement::new(LIST_OPEN).push(index), (scope, within), filter).push(which);
            let list = match state {
                Some(state) => list.push_bind(" and state = ", word(&state)?),
                None => list,
            };
            statements.push(limited(list, filter));
        }
    }
    if state.is_none_or(|state| state == CallState::Ended) && !waits {
        let mut list = narrowed(Statement::new(LIST_ENDED).push(ended_index(within, filter)), (scope, within), filter);
        if let Some(status) = &filter.status {
            list = list.push_bind(" and status = ", status.as_str());
            // In such words that the index of the few unsuccessful ones is used.
            list = if status == "success" { list } else { list.push(" and status <> 'success'") };
        }
        statements.push(limited(list, filter));
    }
    Ok(statements)
}

/// The rows of such statements as one list.
pub(crate) fn newest_first(found: &[Vec<Row>], filter: &CallFilter) -> Result<Vec<CallRow>, StoreError> {
    let mut rows = found.iter().flatten().map(call_row).collect::<Result<Vec<_>, _>>()?;
    rows.sort_by(|one, other| other.id.cmp(&one.id));
    rows.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
    Ok(rows)
}

fn narrowed(list: Statement, (scope, within): (&Scope, &Within), filter: &CallFilter) -> Statement {
    let mut list = list.push_bind("where tenant = ", tenant(scope));
    if let Some(workspace) = only(within) {
        list = list.push_bind(" and workspace = ", workspace);
    }
    if let Some(tool) = &filter.tool {
        list = list.push_bind(" and tool = ", tool.as_str());
    }
    if let Some(session) = &filter.session {
        list = list.push_bind(" and session = ", session.as_str());
    }
    if let Some(since) = filter.since {
        // Ids begin with their time, so the index on them finds the first.
        let oldest = since.as_millisecond().saturating_sub(ID_AGE_MS).max(0);
        list = list.push_bind(" and id >= ", format!("tc_{oldest:012x}"));
        list = list.push_bind(" and started_at >= ", since.as_microsecond());
    }
    if let Some(before) = &filter.before {
        list = list.push_bind(" and id < ", before.as_str());
    }
    list
}

fn limited(list: Statement, filter: &CallFilter) -> Statement {
    list.push_bind(" order by id desc limit ", filter.limit)
}

/// The index that leads to the fewest calls. SQLite knows nothing of how rare each value is, so it is told; to PostgreSQL
/// this is a comment.
fn ended_index(within: &Within, filter: &CallFilter) -> &'static str {
    if filter.session.is_some() {
        return "/*index calls_of_session*/ ";
    }
    let is_unsuccessful = filter.status.as_deref().is_some_and(|status| status != "success");
    match (is_unsuccessful, filter.tool.is_some(), only(within).is_some()) {
        (true, true, _) => "/*index calls_unsuccessful_of_tool*/ ",
        (true, false, _) => "/*index calls_unsuccessful*/ ",
        (false, true, _) => "/*index calls_of_tool*/ ",
        (false, false, true) => "/*index calls_of_workspace*/ ",
        (false, false, false) => "",
    }
}

/// The open calls of one workspace lie in two indexes: those that wait, and the few that are under way.
fn open_lists(
    within: &Within,
    filter: &CallFilter,
    state: Option<CallState>,
) -> &'static [(&'static str, &'static str)] {
    const BOTH: &[(&str, &str)] = &[
        ("/*index open_calls_waiting*/ ", " and state = 'waiting'"),
        ("/*index open_calls_under_way*/ ", " and state <> 'waiting'"),
    ];
    if filter.session.is_some() {
        return &[("/*index open_calls_of_session*/ ", "")];
    }
    if only(within).is_none() {
        return &[("", "")];
    }
    match state {
        Some(CallState::Waiting) => &BOTH[..1],
        Some(CallState::Preparing | CallState::Executing) => &BOTH[1..],
        Some(CallState::Ended) | None => BOTH,
    }
}

pub(crate) fn call_row(row: &Row) -> Result<CallRow, StoreError> {
    let id = Columns { of: "calls", row }.text("id")?;
    let columns = Columns { of: &id, row };
    let state = columns.word("state")?;
    let status = columns.text_or_none("status")?;
    let caller: CallerRecord = columns.json("caller")?;
    // A call whose caller still waits with it has no envelope yet.
    let status = if state == CallState::Waiting { status.or(Some("pending".to_owned())) } else { status };
    Ok(CallRow {
        id: columns.call_id("id")?,
        workspace: columns.workspace()?,
        tool: columns.text("tool")?,
        caller: caller.who.name.clone(),
        asked_by: caller.who,
        via: caller.via,
        source: columns.word("source")?,
        state,
        status,
        code: columns.text_or_none("code")?,
        started_at: columns.time("started_at")?,
        finished_at: columns.time_or_none("finished_at")?,
        duration_ms: columns.number_or_none("duration_ms")?,
        asked: columns.flag("asked")?,
        isolation: columns.word_or_none("isolation")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{assert_quick, plan};

    fn statements(within: &Within, filter: &CallFilter) -> Vec<String> {
        let statements = list_statements(&Scope::local("w"), within, filter).unwrap();
        statements.iter().map(|statement| crate::sqlite::with_hints(&statement.sql).into_owned()).collect()
    }

    #[test]
    fn every_list_uses_the_index_that_leads_to_its_calls() {
        let (tool, error) = (Some("read_file".to_owned()), Some("error".to_owned()));
        let (success, pending) = (Some("success".to_owned()), Some("pending".to_owned()));
        let all = CallFilter::default();
        let (waiting, under_way) = ("open_calls_waiting", "open_calls_under_way");
        let filters = [
            (all.clone(), vec![waiting, under_way, "calls_of_workspace"]),
            (CallFilter { tool: tool.clone(), ..all.clone() }, vec![waiting, under_way, "calls_of_tool"]),
            (CallFilter { tool: tool.clone(), status: success.clone(), ..all.clone() }, vec!["calls_of_tool"]),
            (
                CallFilter { tool: tool.clone(), status: error.clone(), ..all.clone() },
                vec!["calls_unsuccessful_of_tool"],
            ),
            (CallFilter { status: error, ..all.clone() }, vec!["calls_unsuccessful "]),
            (CallFilter { status: pending.clone(), ..all.clone() }, vec![waiting]),
            (CallFilter { tool, status: pending, ..all.clone() }, vec![waiting]),
            (CallFilter { state: Some(CallState::Waiting), ..all.clone() }, vec![waiting]),
            (CallFilter { state: Some(CallState::Ended), ..all.clone() }, vec!["calls_of_workspace"]),
            (CallFilter { status: success, ..all.clone() }, vec!["calls_of_workspace"]),
            (CallFilter { session: Some("s".to_owned()), ..all }, vec!["open_calls_of_session", "calls_of_session"]),
        ];
        let here = Within::Only(WorkspaceId::new("w"));
        for (filter, indexes) in filters {
            let since = Some(Timestamp::UNIX_EPOCH);
            let narrower = CallFilter { since, before: Some(CallId::new()), ..filter.clone() };
            for filter in [filter, narrower] {
                let texts = statements(&here, &filter);
                assert_eq!(texts.len(), indexes.len(), "{texts:?}");
                for (text, index) in texts.iter().zip(&indexes) {
                    let steps = plan(text).join("\n");
                    assert!(steps.contains(index), "{text}\n{steps}");
                    assert_quick(&[text]);
                }
                statements(&Within::Everything, &filter).iter().for_each(|text| assert_quick(&[text]));
            }
        }
    }

    #[test]
    fn no_statement_about_one_call_reads_all_of_them() {
        assert_quick(&[CALLER_OF_ENDED, CALLER_OF_OPEN]);
        assert_quick(&[EVENTS, OPEN_OFFSPRING, ENDED_OFFSPRING, OPEN_TURNS, ENDED_TURNS, ONE_OPEN, ONE_ENDED]);
    }
}

//! The history of a tool, as its page shows it: a view of the journal, kept nowhere.

use haft_runtime::{CallId, CallRecord, Caller, CallerKind, CallerRecord, End, Source, ToolError};
use serde::Serialize;
use serde_json::Value;

use crate::{Permission, Platform};

/// How many calls of others are passed over for one page of the own ones.
const MOST_PASSED_OVER: usize = 2000;

/// One use of a tool that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRun {
    /// The call.
    pub id: CallId,
    /// The tool's own name.
    pub tool_slug: String,
    /// Who asked for it.
    pub caller_id: String,
    /// What it was given.
    pub input: Value,
    /// What came out; `None` where it failed.
    pub output: Option<Value>,
    /// `success` or `error`.
    pub status: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// How long the work took.
    pub duration_ms: u64,
    /// Through which kind of door.
    pub source: RunSource,
    /// The session that it belongs to.
    pub session_id: Option<String>,
}

/// Through which kind of door a tool was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunSource {
    /// A page, by a person.
    Web,
    /// An agent.
    Agent,
    /// A program.
    Api,
}

impl RunSource {
    fn of(caller: &CallerRecord) -> Self {
        match (caller.who.id.kind, caller.source) {
            (CallerKind::Agent, _) => Self::Agent,
            (_, Source::Web) => Self::Web,
            (_, Source::Cli | Source::Mcp | Source::Api | Source::Link | Source::Edit | Source::House) => Self::Api,
        }
    }
}

impl ToolRun {
    /// A call that has ended; `None` for one that goes on as another, or of which nothing is left.
    fn of(record: CallRecord) -> Option<Self> {
        let outcome = record.outcome?;
        let (output, error) = match outcome.end {
            End::Success { result } => (Some(result.structured.into_value()), None),
            End::Error { error } | End::Cancelled { error } => (None, Some(error.message)),
            End::Rejected { reason, user_message, .. } => (None, Some(user_message.unwrap_or(reason))),
            End::Pending { .. } => return None,
        };
        let opening = record.opening;
        Some(Self {
            id: record.call,
            tool_slug: opening.tool,
            caller_id: opening.caller.who.id.to_string(),
            input: opening.input,
            status: if error.is_none() { "success" } else { "error" },
            output,
            error,
            duration_ms: outcome.execution_time_ms,
            source: RunSource::of(&opening.caller),
            session_id: opening.caller.via.session,
        })
    }
}

impl Platform {
    /// How a tool was used, newest first, and where the next page begins: by everybody for those who may see that, else by
    /// oneself. Trials are left out.
    pub async fn runs(
        &self,
        caller: &Caller,
        tool: &str,
        mut before: Option<CallId>,
        limit: u32,
    ) -> Result<(Vec<ToolRun>, Option<CallId>), ToolError> {
        let sees_all = caller.permissions.allow(Permission::CallsTeamRead.word());
        let shows = |record: &CallRecord| {
            let asked = &record.opening.caller;
            asked.via.trial.is_none() && (sees_all || asked.who.id == caller.id)
        };
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut found, mut looked) = (Vec::new(), 0);
        loop {
            let page = self.store.ended_calls_of(&caller.scope, (tool, before.as_ref()), limit).await?;
            let is_last = page.len() < wanted;
            looked += page.len();
            for record in page {
                before = Some(record.call.clone());
                if shows(&record) {
                    found.extend(ToolRun::of(record));
                }
                if found.len() == wanted {
                    return Ok((found, before));
                }
            }
            if is_last {
                return Ok((found, None));
            }
            if looked >= MOST_PASSED_OVER {
                return Ok((found, before));
            }
        }
    }
}

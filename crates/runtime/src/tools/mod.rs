//! Tools about calls and tools themselves, on the doors.

mod call_tool;
mod commit_call;
mod discard_call;
mod find_tools;
mod result_query;
mod undo_call;
mod wait_call;

pub use result_query::{ResultPart, ResultWindow, read_result};

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    AnyTool, CallId, CallRecord, CallState, Caller, Catalog, ErrorCode, Journal, Questions, Scope, ToolError,
    Workbench, typed,
};

/// A commit is told before its end is written, so that another process may see that end a little later.
const A_MOMENT: Duration = Duration::from_millis(200);
/// How many paths a text names; the structured result has all.
const NAMED: usize = 50;

/// The tools about calls.
pub fn all(
    journal: &Arc<dyn Journal>,
    questions: &Arc<dyn Questions>,
    workbench: &Arc<dyn Workbench>,
) -> Vec<Arc<dyn AnyTool>> {
    let calls = || Calls { journal: journal.clone(), questions: questions.clone(), workbench: workbench.clone() };
    vec![
        typed(commit_call::CommitCall(calls())),
        typed(discard_call::DiscardCall(calls())),
        typed(result_query::ResultQuery(calls())),
        typed(undo_call::UndoCall(calls())),
        typed(wait_call::WaitCall(calls())),
    ]
}

/// The tools about the tools of a catalogue, which may be the one that they are put into.
pub fn about(catalog: &Arc<dyn Catalog>) -> Vec<Arc<dyn AnyTool>> {
    vec![typed(call_tool::CallTool), typed(find_tools::FindTools(Arc::downgrade(catalog)))]
}

/// The doors that these tools look through.
struct Calls {
    journal: Arc<dyn Journal>,
    questions: Arc<dyn Questions>,
    workbench: Arc<dyn Workbench>,
}

impl Calls {
    /// A call that the caller may see. One of somebody else looks like one that never was.
    async fn find(&self, caller: &Caller, call: &CallId) -> Result<CallRecord, ToolError> {
        let mut found = self.journal.find(&caller.scope, call).await?;
        if found.as_ref().is_some_and(|record| record.state == CallState::Executing) {
            self.journal.ended(&caller.scope, call, A_MOMENT).await?;
            found = self.journal.find(&caller.scope, call).await?;
        }
        found.filter(|record| caller.may_see(record)).ok_or_else(|| {
            ToolError::new(ErrorCode::InvalidArgs, format!("there is no call {call}; `haft log` lists the latest"))
        })
    }

    /// The same for what is done to the files of its workspace.
    async fn find_here(&self, caller: &Caller, call: &CallId) -> Result<CallRecord, ToolError> {
        let record = self.find(caller, call).await?;
        if record.scope != caller.scope {
            let message = format!("{call} worked in another workspace; call this tool there");
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        Ok(record)
    }

    /// A call whose question is open is answered, not worked around.
    async fn refuse_while_it_waits(&self, scope: &Scope, call: &CallId) -> Result<(), ToolError> {
        match self.questions.find(scope, call).await? {
            Some((_, None)) => Err(ToolError::new(
                ErrorCode::InvalidArgs,
                format!(
                    "{call} still waits for an answer; a person answers it with `haft approve {call}` or `haft reject {call}`"
                ),
            )),
            Some((_, Some(_))) | None => Ok(()),
        }
    }
}

/// The first of many paths, and how many more there are.
fn named(paths: &[String], between: &str) -> String {
    let mut named = paths[..paths.len().min(NAMED)].join(between);
    if paths.len() > NAMED {
        named.push_str(&format!("{between}and {} more", paths.len() - NAMED));
    }
    named
}

fn call_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CallId, D::Error> {
    let text = String::deserialize(deserializer)?;
    CallId::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a call id: `tc_` and 32 hex digits")))
}

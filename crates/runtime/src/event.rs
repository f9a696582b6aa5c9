//! What happens to a call, in the order it happens. The journal keeps these; streams and pages are views of them.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, ApprovedBy, CallId, CallerRef, ChangeList, Effect, Form, OutsideResult, PolicyVersions, Source, ToolError,
    Turn,
};

/// One thing that happened to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum CallEvent {
    /// Somebody asked for it.
    #[serde(rename = "tool.call")]
    Called {
        /// The tool's own name.
        tool: String,
        /// The alias that was used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        called_as: Option<String>,
        /// The last day on which that alias is understood; absent when it always will be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remove_by: Option<Date>,
        /// The exact arguments.
        args: Value,
        /// Whether it only tries the tool.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        test: bool,
    },
    /// What it would change is held aside.
    #[serde(rename = "tool.staged")]
    Staged {
        /// The changes, without their diffs.
        changes: ChangeList,
        /// What a yes would do with them.
        turn: Turn,
    },
    /// It waits for a person.
    #[serde(rename = "tool.needs_approval")]
    NeedsApproval {
        /// How far it reaches.
        effect: Effect,
        /// Why it is asked.
        reason: String,
    },
    /// Somebody or something said yes.
    #[serde(rename = "tool.approved")]
    Approved {
        /// Who.
        approved_by: ApprovedBy,
        /// The person's name, the rule or the grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The call that carries an edited input on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continued_as: Option<CallId>,
        /// Which versions of the tenant's rules held.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<PolicyVersions>,
    },
    /// A person said no, or nobody answered in time.
    #[serde(rename = "tool.rejected")]
    Rejected {
        /// A sentence.
        reason: String,
        /// The person's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_message: Option<String>,
    },
    /// The work begins.
    #[serde(rename = "tool.started")]
    Started {
        /// Which try.
        attempt: u32,
    },
    /// Output came.
    #[serde(rename = "tool.output_appended")]
    OutputAppended {
        /// Which stream.
        stream: Stream,
        /// The text.
        chunk: String,
        /// Bytes of that stream before it.
        offset: u64,
    },
    /// The tool says how far it is.
    #[serde(rename = "tool.progress")]
    Progress {
        /// 0 to 100, where it can be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<u8>,
        /// The same in units of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<ProgressPart>,
        /// What it is doing.
        message: String,
    },
    /// The tool asks something in the middle of its work.
    #[serde(rename = "tool.asks")]
    Asks {
        /// Which of the call's questions.
        question: u32,
        /// What it wants to know.
        form: Form,
    },
    /// What the tool asked was answered, or put away.
    #[serde(rename = "tool.answered")]
    Answered {
        /// Which of the call's questions.
        question: u32,
        /// The answer.
        answer: Answer,
        /// Who gave it.
        by: CallerRef,
        /// Through which door.
        source: Source,
    },
    /// The caller was told to come back later, or a result is waited for from outside.
    #[serde(rename = "tool.pending")]
    Pending {
        /// What is waited for.
        #[serde(rename = "pendingToolCallId")]
        pending_tool_call_id: CallId,
        /// What whoever gives the result needs to know, where one is waited for from outside.
        #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
        result: Option<OutsideResult>,
    },
    /// Changes came into the workspace. `file.changed` on a stream is a view of this, one for each path.
    #[serde(rename = "changes.committed")]
    Committed {
        /// Whose changes.
        of: CallId,
        /// Which, without their diffs.
        changes: ChangeList,
    },
    /// Changes were taken back.
    #[serde(rename = "changes.undone")]
    Undone {
        /// Whose changes.
        of: CallId,
        /// Which, without their diffs.
        changes: ChangeList,
    },
    /// It ended well.
    #[serde(rename = "tool.completed")]
    Completed {
        /// How long the work took.
        execution_time_ms: u64,
        /// Whether its result came after it had timed out; the call stays as it ended then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    },
    /// It ended with an error.
    #[serde(rename = "tool.failed")]
    Failed {
        /// Why.
        error: ToolError,
        /// Whether that came after it had timed out; the call stays as it ended then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    },
    /// It was stopped.
    #[serde(rename = "tool.cancelled")]
    Cancelled {
        /// By what.
        reason: String,
    },
    /// haft ended while it was under way.
    #[serde(rename = "tool.interrupted")]
    Interrupted {
        /// What recovery found and did.
        recovered: String,
    },
}

/// Where output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output of a process.
    Stdout,
    /// Standard error of a process.
    Stderr,
    /// Text of a tool.
    Text,
}

/// How much of a whole is done, in units that only the tool knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressPart {
    /// What is done.
    pub done: f64,
    /// All there is to do.
    pub total: f64,
}

impl ProgressPart {
    /// The same as a part of a hundred.
    pub fn percent(self) -> u8 {
        // A cast keeps within the bounds of the type.
        (self.done / self.total * 100.0).clamp(0.0, 100.0) as u8
    }
}

//! The one envelope in which every call ends, whatever door it came in by.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    CallId, Change, ChangeKind, ChangeList, ChangeState, GrantId, Isolation, Structured, ToolError,
    changes::left_staged,
};

/// How many changed paths a value lists, and how many the text names.
const LISTED: usize = 50;
const NAMED: usize = 5;
/// Bytes of an input that an approver changed, where a model is told of it.
const INPUT_TOLD: usize = 4000;
/// That an approver changed the input, in the metadata.
const ARGS_MODIFIED: &str = "args_modified";
/// What the approver changed it to, in the metadata.
pub const FINAL_INPUT: &str = "final_input";
/// In the metadata of a whole output: that even this is only the beginning.
pub(crate) const CAPPED: &str = "capped";

/// How a call ended, or where it stands while it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Success, error, rejected, pending or cancelled, with what belongs to it.
    #[serde(flatten)]
    pub end: End,
    /// Which call.
    pub tool_call_id: CallId,
    /// The tool's own name, also when an alias was used.
    pub tool: String,
    /// What was committed and what is left staged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeList>,
    /// Whether `undo_call` can take back what the call did.
    pub undoable: bool,
    /// Who said yes; absent when nobody was asked because the call never got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<ApprovedBy>,
    /// The grant that said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The rung of the processes that the call really started.
    pub isolation: Isolation,
    /// How often the work was tried.
    pub attempts: u32,
    /// Whether the answer came from the cache.
    pub cached: bool,
    /// When the call came in.
    pub started_at: Timestamp,
    /// When it ended; absent while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long the work took, waiting for an answer not counted.
    pub execution_time_ms: u64,
}

impl Outcome {
    /// The envelope of a wish that a door could not even read; it never became a call.
    pub fn refused(tool: impl Into<String>, error: ToolError) -> Self {
        let now = Timestamp::now();
        Self::ended(CallId::new(), tool.into(), now, End::Error { error })
    }

    /// An envelope with nothing in it but how it ended.
    pub(crate) fn ended(call: CallId, tool: String, started_at: Timestamp, end: End) -> Self {
        Self {
            end,
            tool_call_id: call,
            tool,
            changes: None,
            undoable: false,
            approved_by: None,
            grant: None,
            isolation: Isolation::None,
            attempts: 0,
            cached: false,
            started_at,
            finished_at: Some(Timestamp::now()),
            execution_time_ms: 0,
        }
    }
}

impl Outcome {
    /// Tells a model, in the text and in the value, what it needs beside the result: which files changed, the id that
    /// undoes that, and the input that an approver put in the place of its own.
    pub(crate) fn tell_the_model(&mut self, edited: Option<&Value>) {
        let edited = edited.map(|input| {
            let input = Structured::from(input.clone());
            input.brief(INPUT_TOLD).map_or(input, |(brief, _)| brief).into_value()
        });
        match (&mut self.end, edited) {
            (End::Success { result }, Some(input)) => {
                result.metadata.insert(ARGS_MODIFIED.to_owned(), true.into());
                result.metadata.insert(FINAL_INPUT.to_owned(), input);
            }
            (End::Error { error } | End::Cancelled { error }, Some(input)) => {
                error.message = format!("{}; a person had changed the input to {input}", error.message);
                error.details.insert("argsModified".to_owned(), input);
            }
            (End::Rejected { .. } | End::Pending { .. }, Some(_)) | (_, None) => {}
        }
        self.add_notes();
    }

    /// The same outcome with the whole of its result, for somebody who has room for it.
    #[must_use]
    pub fn with_whole(mut self, whole: ToolOutput) -> Self {
        let End::Success { result } = &mut self.end else { return self };
        if !whole.metadata.contains_key(CAPPED) {
            for name in ["truncated", "total_chars", "cut"] {
                result.metadata.remove(name);
            }
        }
        result.content = whole.content;
        result.display_content = whole.display_content;
        result.structured = whole.structured;
        self.add_notes();
        self
    }

    fn add_notes(&mut self) {
        let notes = self.edit_note() + &self.change_note();
        let (changed, call) = (self.changed(), self.tool_call_id.clone());
        let End::Success { result } = &mut self.end else { return };
        for text in [Some(&mut result.content), result.display_content.as_mut()].into_iter().flatten() {
            text.push_str(&notes);
        }
        result.tell_in_the_value(&call, &changed);
    }

    /// What the command that the call ran ended with, where it ran one to its end.
    pub fn exit_code(&self) -> Option<i64> {
        match &self.end {
            End::Success { result } => result.metadata.get("exit_code")?.as_i64(),
            End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => None,
        }
    }

    /// The last line of the text for a model: what changed and how that is undone. People are shown a list instead.
    pub fn change_note(&self) -> String {
        let changed = self.changed();
        if changed.is_empty() || !matches!(self.end, End::Success { .. }) {
            return String::new();
        }
        let named = changed.iter().take(NAMED).map(named).collect::<Vec<_>>().join(", ");
        let more = changed.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("\n[changed {named}{more}; `undo_call` with `callId` {} undoes it]", self.tool_call_id)
    }

    /// That somebody changed the input, for whoever had asked for another one.
    fn edit_note(&self) -> String {
        let End::Success { result } = &self.end else { return String::new() };
        let Some(input) = result.metadata.get(FINAL_INPUT) else { return String::new() };
        format!("\n[a person changed your input before approving it; it ran with {input}]")
    }

    /// What came into the workspace or went out of it again, build output last. What a summary stands for is one of them.
    fn changed(&self) -> Vec<Change> {
        let told = self.changes.iter().flat_map(ChangeList::told);
        let taken = told.filter(|change| matches!(change.state, ChangeState::Committed | ChangeState::Undone));
        let mut taken: Vec<&Change> = taken.collect();
        taken.sort_by_key(|change| change.derived);
        taken.into_iter().cloned().collect()
    }
}

/// A change in a few words.
fn named(change: &Change) -> String {
    let what = change.summary.as_ref().unwrap_or(&change.path);
    let kind = match (change.state, change.kind) {
        (ChangeState::Undone, _) if change.summary.is_some() => " (undone)",
        _ if change.summary.is_some() => "",
        (ChangeState::Committed, ChangeKind::Created) => " (created)",
        (ChangeState::Committed, ChangeKind::Deleted) => " (deleted)",
        (ChangeState::Committed, ChangeKind::Renamed) => " (moved)",
        (ChangeState::Committed, ChangeKind::Mode) => " (mode)",
        (ChangeState::Committed, ChangeKind::Changed | ChangeKind::Link)
        | (ChangeState::Staged | ChangeState::Discarded | ChangeState::Undone, _) => "",
    };
    format!("{what}{kind}")
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum End {
    /// It did what was asked.
    Success {
        /// What it gives back.
        result: ToolOutput,
    },
    /// It did not.
    Error {
        /// Why.
        error: ToolError,
    },
    /// A person said no, or nobody answered in time.
    Rejected {
        /// A sentence for the model.
        reason: String,
        /// The person's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_message: Option<String>,
        /// `REJECTED` or `APPROVAL_EXPIRED`.
        error: ToolError,
    },
    /// It waits for an answer.
    Pending {
        /// What it waits for.
        pending: Pending,
    },
    /// It was stopped.
    Cancelled {
        /// Says by what.
        error: ToolError,
    },
}

impl End {
    /// The word on the wire.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::Error { .. } => "error",
            Self::Rejected { .. } => "rejected",
            Self::Pending { .. } => "pending",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// What a model is told of a failure: the code, the message, and what the work had said until then; `None` for every
    /// other end. The rest of the details repeats the message for programs.
    pub fn failure(&self) -> Option<String> {
        let (Self::Error { error } | Self::Cancelled { error }) = self else { return None };
        let mut text = format!("{}: ", error.code);
        text.push_str(&error.message);
        if error.recoverable && !error.message.contains("again") {
            text.push_str("; the same call may succeed later");
        }
        for (name, said) in error.said() {
            text.push_str(&format!("\n[{name}]\n{}", said.trim_end_matches('\n')));
        }
        text.extend(error.cut_note().map(|note| format!("\n{note}")));
        Some(text)
    }

    /// What a model is told of a no, with the person's own words; `None` for every other end.
    pub fn rejection(&self) -> Option<String> {
        let Self::Rejected { reason, user_message, error } = self else { return None };
        let words = user_message.as_ref().map(|words| format!("\nTheir words: {words}")).unwrap_or_default();
        Some(format!("{}: {reason}{words}", error.code))
    }

    /// The error inside, where there is one.
    pub fn error(&self) -> Option<&ToolError> {
        match self {
            Self::Error { error } | Self::Rejected { error, .. } | Self::Cancelled { error } => Some(error),
            Self::Success { .. } | Self::Pending { .. } => None,
        }
    }
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The call to answer; a child call when an edited input waits in its place.
    pub pending_tool_call_id: CallId,
    /// When an answer comes too late.
    pub expires_at: Timestamp,
}

/// Who said yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovedBy {
    /// It only read.
    Auto,
    /// A person.
    User,
    /// The mode, a rule or a grant.
    Config,
}

/// What a tool gives back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// Text for the model, cut to the limit.
    pub content: String,
    /// Text for people who are asked for a yes, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_content: Option<String>,
    /// The value, conforming to the output schema.
    #[schemars(with = "Value")]
    pub structured: Structured,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Something to listen to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audio: Vec<Audio>,
    /// Files and the like that come with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Embedded>,
    /// Facts beside the value.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The result of another call that this one only hands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_on: Option<Box<HandedOn>>,
}

/// A result that another call gave: it was shortened there, and the whole of it is read there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandedOn {
    /// The call that gave it.
    pub call: CallId,
    /// The tool of that call.
    pub tool: String,
    /// Where it stands in the value, as a JSON Pointer.
    pub at: String,
}

impl ToolOutput {
    /// The exit code of the process that the tool ran, and what it said; `None` when it ran none.
    pub fn process(&self) -> Option<(i64, &str)> {
        let exit_code = self.metadata.get("exit_code")?.as_i64()?;
        let content = self.display_content.as_ref().unwrap_or(&self.content);
        let end = content.rfind(&format!("[exit {exit_code}]"));
        Some((exit_code, &content[..end.unwrap_or(content.len())]))
    }

    fn tell_in_the_value(&mut self, call: &CallId, changed: &[Change]) {
        let edited = self.metadata.get(FINAL_INPUT).cloned();
        if changed.is_empty() && edited.is_none() {
            return;
        }
        let mut value = std::mem::take(&mut self.structured).into_value();
        if let Value::Object(fields) = &mut value {
            if !changed.is_empty() {
                fields.insert("callId".to_owned(), call.as_str().into());
                let listed = changed.iter().take(LISTED);
                let listed = listed.map(|change| change.summary.clone().unwrap_or_else(|| change.path.clone()));
                fields.insert("changed".to_owned(), listed.collect::<Vec<_>>().into());
                let more = changed.len().saturating_sub(LISTED);
                if more > 0 {
                    fields.insert("moreChanged".to_owned(), more.into());
                }
            }
            fields.extend(edited.map(|input| ("argsModified".to_owned(), input)));
        }
        self.structured = value.into();
    }

    /// Says first thing in the text for the model, and in the value that some of them read in its place, what of its
    /// changes did not come into the workspace.
    pub(crate) fn tell_of_what_is_left(&mut self, call: &CallId, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let left = left_staged(call, paths);
        for text in [Some(&mut self.content), self.display_content.as_mut()].into_iter().flatten() {
            text.insert_str(0, &format!("[{left}]\n\n"));
        }
        let mut value = std::mem::take(&mut self.structured).into_value();
        if let Value::Object(fields) = &mut value {
            fields.insert("leftStaged".to_owned(), left.into());
        }
        self.structured = value.into();
    }
}

/// Something that a model can listen to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audio {
    /// `audio/wav` and the like.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// A file or the like that comes with a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Embedded {
    /// Where it is from.
    pub uri: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// What is in it.
    #[serde(flatten)]
    pub body: Body,
}

impl Embedded {
    /// What it is, in a few words.
    pub fn words(&self) -> String {
        let size = match &self.body {
            Body::Text(text) => format!("{} characters", text.chars().count()),
            Body::Blob(blob) => format!("about {} bytes", blob.len() / 4 * 3),
        };
        format!("{}, {}, {size}", self.uri, self.mime_type.as_deref().unwrap_or("of no stated kind"))
    }
}

/// What is in a file or the like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

/// A picture that a model can look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// `image/png` and the like.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

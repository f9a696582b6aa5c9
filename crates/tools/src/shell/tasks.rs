//! The commands that run in the background: as long as the haft that started them lives, and no longer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_runtime::{CallId, ErrorCode, Isolation, ToolError};
use haft_sandbox::{
    changes::Steering,
    fence::{CommandExit, FenceError, FenceStopper, Process, ProcessEnd, Signal},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::watch, time::timeout};

use super::ring::{MoreOutput, OutputPiece, Ring};
use crate::fenced::{CommandContext, CommandSpec};

/// The most that are known at once; those that have ended give way to new ones.
const MOST: usize = 32;
/// How long everything has to end after it was killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The background commands of one haft.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<TaskTable>);

#[derive(Debug, Default)]
struct TaskTable {
    /// How many have been started so far.
    started: u64,
    tasks: BTreeMap<u64, Arc<BackgroundTask>>,
}

/// One background command.
#[derive(Debug)]
pub(super) struct BackgroundTask {
    pub(super) id: String,
    pub(super) command: String,
    /// The call that started it.
    call: CallId,
    /// The process outside that keeps its fence.
    pub(super) pid: u32,
    pub(super) started_at: Timestamp,
    pub(super) isolation: Isolation,
    stopper: FenceStopper,
    heard: watch::Sender<TaskOutput>,
}

/// What was heard of a command so far.
#[derive(Debug, Default)]
struct TaskOutput {
    ring: Ring,
    end: Option<TaskEnd>,
}

/// How a command ended.
#[derive(Clone, Debug)]
enum TaskEnd {
    Exited(i32),
    Killed(i32),
    /// The fence could not be built, or was lost.
    Failed(String),
}

/// Whether a background command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum TaskStatus {
    Running,
    Exited,
    Killed,
}

/// Where a background command stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskState {
    pub(super) status: TaskStatus,
    /// Exit code of the command; 128 + n if signal n ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Tasks {
    /// Starts a command.
    pub(super) fn start(
        &self,
        call: &CallId,
        context: &CommandContext,
        spec: &CommandSpec,
        command: String,
    ) -> Result<Arc<BackgroundTask>, ToolError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.make_room()?;
        let (process, isolation, before) = context.start(spec)?;
        known.started += 1;
        let number = known.started;
        let task = Arc::new(BackgroundTask {
            id: format!("bg_{number}"),
            command,
            call: call.clone(),
            pid: process.id(),
            started_at: Timestamp::now(),
            isolation,
            stopper: process.stopper(),
            heard: watch::Sender::new(TaskOutput::default()),
        });
        known.tasks.insert(number, Arc::clone(&task));
        let (listening, context) = (Arc::clone(&task), context.clone());
        // It ends with its process, which ends with us; `end_all` waits for that.
        drop(tokio::task::spawn_blocking(move || listening.listen(process, &context, &before)));
        Ok(task)
    }

    /// The command of an id.
    pub(super) fn find(&self, id: &str) -> Result<Arc<BackgroundTask>, ToolError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.tasks.values().find(|task| task.id == id).cloned();
        found.ok_or_else(|| {
            let message = format!("there is no background command `{id}`; `shell_list` shows those that there are");
            ToolError::new(ErrorCode::InvalidArgs, message)
        })
    }

    /// All of them, in the order in which they were started.
    pub(super) fn all(&self) -> Vec<Arc<BackgroundTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tasks.values().cloned().collect()
    }

    /// Ends all of them, and waits for that.
    pub(crate) async fn end_all(&self) {
        let all = self.all();
        all.iter().for_each(|task| task.stopper.stop());
        for task in all {
            task.ends_within(PATIENCE).await;
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.all().iter().for_each(|task| task.stopper.stop());
    }
}

impl TaskTable {
    /// The oldest that has ended gives way.
    fn make_room(&mut self) -> Result<(), ToolError> {
        if self.tasks.len() < MOST {
            return Ok(());
        }
        let ended = self.tasks.iter().find(|(_, task)| task.standing().status != TaskStatus::Running);
        let Some(number) = ended.map(|(number, _)| *number) else {
            let message = format!("{MOST} background commands are running, and no more may; end one with `shell_kill`");
            return Err(ToolError::new(ErrorCode::ResourceLimit, message));
        };
        self.tasks.remove(&number);
        Ok(())
    }
}

impl BackgroundTask {
    /// Keeps what it says until everything has ended.
    fn listen(&self, process: Process, context: &CommandContext, before: &Steering) {
        let ended = process.wait(&mut |_, bytes| self.heard.send_modify(|heard| heard.ring.push(bytes)));
        let held =
            context.end_directly(before).map_or_else(|err| Some(err.message), |held| held.map(|_| self.held_back()));
        if let Some(told) = held {
            self.heard.send_modify(|heard| heard.ring.push(format!("\n[{told}]\n").as_bytes()));
        }
        self.heard.send_modify(|heard| heard.end = Some(TaskEnd::of(ended)));
    }

    /// What is said of what it may not make without a question.
    fn held_back(&self) -> String {
        let call = &self.call;
        format!("what it made that steers haft or git was held back; `haft changes {call}` shows it")
    }

    /// Where it stands.
    pub(super) fn standing(&self) -> TaskState {
        TaskState::of(self.heard.borrow().end.as_ref())
    }

    /// A part of what it has said, and where it stood then.
    pub(super) fn said(&self, offset: u64, limit: usize) -> (OutputPiece, TaskState) {
        let heard = self.heard.borrow();
        let more = if heard.end.is_some() { MoreOutput::Never } else { MoreOutput::MayCome };
        (heard.ring.piece(offset, limit, more), TaskState::of(heard.end.as_ref()))
    }

    /// Waits until it has said something behind an offset, or has ended; at most so long.
    pub(super) async fn says_more(&self, offset: u64, limit: Duration) {
        let mut heard = self.heard.subscribe();
        let _in_time = timeout(limit, heard.wait_for(|heard| heard.ring.end() > offset || heard.end.is_some())).await;
    }

    /// Asks it to end.
    pub(super) fn signal(&self, signal: Signal) {
        self.stopper.signal(signal);
    }

    /// Ends it with everything that it has started.
    pub(super) fn kill(&self) {
        self.stopper.stop();
    }

    /// Waits for its end, at most so long, and says whether it came.
    pub(super) async fn ends_within(&self, limit: Duration) -> bool {
        let mut heard = self.heard.subscribe();
        timeout(limit, heard.wait_for(|heard| heard.end.is_some())).await.is_ok()
    }
}

impl TaskEnd {
    fn of(ended: Result<ProcessEnd, FenceError>) -> Self {
        match ended.map(|ended| ended.exit) {
            Ok(CommandExit::Code(code)) => Self::Exited(code),
            Ok(CommandExit::Signal(signal)) => Self::Killed(signal),
            Ok(CommandExit::Stopped) => Self::Killed(9),
            Err(err) => Self::Failed(err.to_string()),
        }
    }
}

impl TaskState {
    fn of(end: Option<&TaskEnd>) -> Self {
        let (status, exit_code, error) = match end {
            None => (TaskStatus::Running, None, None),
            Some(TaskEnd::Exited(code)) => (TaskStatus::Exited, Some(*code), None),
            Some(TaskEnd::Killed(signal)) => (TaskStatus::Killed, Some(128 + signal), None),
            Some(TaskEnd::Failed(why)) => (TaskStatus::Exited, None, Some(why.clone())),
        };
        Self { status, exit_code, error }
    }

    /// The same in a few words.
    pub(super) fn words(&self) -> String {
        let code = self.exit_code.map_or_else(String::new, |code| format!(" {code}"));
        let error = self.error.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        match self.status {
            TaskStatus::Running => "running".to_owned(),
            TaskStatus::Exited => format!("exit{code}{error}"),
            TaskStatus::Killed => format!("killed, exit{code}"),
        }
    }
}

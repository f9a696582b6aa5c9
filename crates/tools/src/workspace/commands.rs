//! The commands of a workspace: the fence around them, and those that run in the background.

use std::sync::Arc;

use haft_runtime::{ErrorCode, ToolError};

use crate::{fenced::WorkspaceFence, shell::Tasks};

/// What commands are run with in a workspace.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceCommands {
    /// Absent where no command may be run.
    pub(super) fenced: Option<Arc<WorkspaceFence>>,
    /// Absent where nothing outlives its call.
    pub(super) tasks: Option<Arc<Tasks>>,
}

impl WorkspaceCommands {
    /// The fence around the commands that are run here.
    pub(crate) fn fenced(&self) -> Result<&Arc<WorkspaceFence>, ToolError> {
        let none = || ToolError::new(ErrorCode::SandboxUnavailable, "no command can be run in this workspace");
        self.fenced.as_ref().ok_or_else(none)
    }

    /// The commands that run in the background.
    pub(crate) fn tasks(&self) -> Result<&Tasks, ToolError> {
        let message = "a background command ends with the haft that started it, and this one ends with its call; \
                       use `shell_exec`, or call from a haft that stays, such as `haft mcp`";
        self.tasks.as_deref().ok_or_else(|| ToolError::new(ErrorCode::Unavailable, message))
    }

    /// Whether this haft lives on between calls.
    pub(crate) fn outlive_calls(&self) -> bool {
        self.tasks.is_some()
    }

    /// Ends every command that runs in the background, and waits for that.
    pub(super) async fn end_background(&self) {
        if let Some(tasks) = &self.tasks {
            tasks.end_all().await;
        }
    }
}

//! Which workspace a call works in: that of its scope.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use haft_runtime::{ErrorCode, Scope, Shown, ToolError};

use crate::workspace::Workspace;

/// The workspaces that one set of tools serves. A tool holds this and asks it anew in every call.
pub trait Workspaces: Send + Sync {
    /// The workspace of a scope; refused when the scope names none, or one that is not served here.
    fn of(&self, scope: &Scope) -> Result<Arc<Workspace>, ToolError>;

    /// The data folder where the changes of a scope's calls are kept, also of those in workspaces that are not served.
    fn data(&self, scope: &Scope) -> Result<PathBuf, ToolError>;

    /// Whether models are shown the tools for git: they are of no use where no workspace is in a repository.
    fn git_shown(&self) -> Shown {
        Shown::Always
    }

    /// The same for the tools that ask language servers: where no file has one.
    fn language_servers_shown(&self) -> Shown {
        Shown::Always
    }
}

/// Workspaces that are all open, with one data folder. Finding one takes as long however many there are.
#[derive(Debug, Default)]
pub struct OpenWorkspaces {
    data: PathBuf,
    open: HashMap<Scope, Arc<Workspace>>,
    /// Whether any of them has files for a language server. That takes a look at the `PATH` and at the files, so only one.
    asks_language_servers: OnceLock<bool>,
}

impl OpenWorkspaces {
    /// None yet; what they keep lies in this data folder.
    pub fn new(data: &Path) -> Self {
        Self { data: data.to_owned(), ..Self::default() }
    }

    /// The same and one more, for the calls of this scope.
    #[must_use]
    pub fn with(mut self, scope: Scope, workspace: Arc<Workspace>) -> Self {
        self.open.insert(scope, workspace);
        self
    }
}

impl Workspaces for OpenWorkspaces {
    fn of(&self, scope: &Scope) -> Result<Arc<Workspace>, ToolError> {
        let Some(name) = scope.workspace() else { return Err(unavailable("this call belongs to no workspace")) };
        let unknown = || unavailable(&format!("the workspace `{name}` is not open here"));
        self.open.get(scope).cloned().ok_or_else(unknown)
    }

    fn data(&self, _scope: &Scope) -> Result<PathBuf, ToolError> {
        Ok(self.data.clone())
    }

    fn git_shown(&self) -> Shown {
        shown_if(self.open.values().any(|workspace| workspace.is_in_a_repository()))
    }

    fn language_servers_shown(&self) -> Shown {
        let finds = || self.open.values().any(|workspace| workspace.has_files_for_language_servers());
        shown_if(*self.asks_language_servers.get_or_init(finds))
    }
}

fn shown_if(is_of_use: bool) -> Shown {
    if is_of_use { Shown::Always } else { Shown::Never }
}

/// No second try helps.
fn unavailable(what: &str) -> ToolError {
    let message = format!("{what}; call this tool from a workspace that this haft serves");
    ToolError { recoverable: false, ..ToolError::new(ErrorCode::Unavailable, message) }
}

//! The built-in workspace tools.

mod aside;
mod command;
mod fenced;
mod files;
mod kept;
mod project;
mod refusal;
mod search;
mod shape;
mod shell;
mod shown;
mod web;
mod workbench;
mod workspace;

use std::sync::Arc;

use haft_runtime::{AnyTool, typed};

pub use command::worries;
pub use fenced::Around;
pub use kept::{GivenUp, Kept, KeptChanges};
pub use project::{Manifest, Script, Trusted, project_tool, scripts};
pub use web::{Listed, ListedError, Provider, SearchAccess, Secret, WebAccess};
pub use workbench::SandboxWorkbench;
pub use workspace::Workspace;

/// Every built-in tool, at work in one workspace.
pub fn all(workspace: &Arc<Workspace>) -> Vec<Arc<dyn AnyTool>> {
    let here = || Arc::clone(workspace);
    vec![
        shape::changes_files(files::CopyFile(here())),
        shape::changes_files(files::CreateDirectory(here())),
        shape::changes_files(files::DeleteFile(here())),
        shape::changes_files(files::EditFile(here())),
        shape::reads(search::Glob(here())),
        shape::reads(search::Grep(here())),
        shape::reads(files::ListDirectory(here())),
        shape::changes_files(files::MoveFile(here())),
        shape::reads(files::ReadFile(here())),
        typed(shell::RunCode(here())),
        typed(shell::ShellBackground(here())),
        typed(shell::ShellExec(here())),
        typed(shell::ShellKill(here())),
        shape::reads(shell::ShellList(here())),
        shape::reads(shell::ShellOutput(here())),
        typed(web::WebFetch(Arc::clone(workspace.web()))),
        typed(web::WebSearch(Arc::clone(workspace.web()))),
        shape::changes_files(files::WriteFile(here())),
    ]
}

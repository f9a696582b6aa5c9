//! The built-in workspace tools.

mod aside;
mod files;
mod kept;
mod refusal;
mod search;
mod shape;
mod shown;
mod workbench;
mod workspace;

use std::sync::Arc;

use haft_runtime::AnyTool;

pub use kept::{GivenUp, Kept, KeptChanges};
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
        shape::changes_files(files::WriteFile(here())),
    ]
}

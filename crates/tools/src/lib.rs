//! The built-in workspace tools.

mod blocking;
mod command;
mod fenced;
mod files;
mod git;
mod kept_changes;
mod lsp;
mod project;
mod quota;
mod recent_changes;
mod refusal;
mod search;
mod shape;
mod shell;
mod shown;
mod web;
mod workbench;
mod workspace;
mod workspaces;

use std::sync::Arc;

use haft_runtime::{AnyTool, Shown, typed};

pub use command::worries;
pub use fenced::{FenceConfig, LongLivedProcess};
pub use kept_changes::{CallChangesSummary, GiveUpResult, KeptChanges};
pub use lsp::{LanguageServer, LanguageServers};
pub use project::{FindSecret, Manifest, Script, Trusted, project_tool, scripts};
pub use web::{ListedSite, ListedSiteError, Provider, SearchAccess, Secret, WebAccess};
pub use workbench::SandboxWorkbench;
pub use workspace::Workspace;
pub use workspaces::{OpenWorkspaces, Workspaces};

/// Every built-in tool, each at work in the workspace of its caller. `web_search` says whether models are shown the tool of
/// that name.
pub fn all(workspaces: &Arc<dyn Workspaces>, web_search: Shown) -> Vec<Arc<dyn AnyTool>> {
    let here = || Arc::clone(workspaces);
    vec![
        shape::changes_files(files::CopyFile(here())),
        shape::changes_files(files::CreateDirectory(here())),
        typed(lsp::LanguageServerTool::<lsp::GotoDefinition>::new(here())),
        shape::changes_files(files::DeleteFile(here())),
        typed(lsp::LanguageServerTool::<lsp::Diagnostics>::new(here())),
        shape::changes_files(files::EditFile(here())),
        typed(git::GitBranch(here())),
        typed(git::GitCommit(here())),
        typed(git::GitDiff(here())),
        typed(git::GitLog(here())),
        typed(git::GitPush(here())),
        typed(git::GitStatus(here())),
        shape::reads(search::Glob(here())),
        shape::reads(search::Grep(here())),
        typed(lsp::LanguageServerTool::<lsp::Hover>::new(here())),
        shape::reads(files::ListDirectory(here())),
        shape::changes_files(files::MoveFile(here())),
        shape::reads(files::ReadFile(here())),
        typed(lsp::LanguageServerTool::<lsp::References>::new(here())),
        typed(shell::RunCode(here())),
        typed(shell::ShellBackground(here())),
        typed(shell::ShellExec(here())),
        typed(shell::ShellKill(here())),
        shape::reads(shell::ShellList(here())),
        shape::reads(shell::ShellOutput(here())),
        typed(lsp::LanguageServerTool::<lsp::Symbols>::new(here())),
        typed(web::WebFetch(here())),
        typed(web::WebSearch { workspaces: here(), shown: web_search }),
        shape::changes_files(files::WriteFile(here())),
    ]
}

//! Git: looked at behind walls, changed aside, pushed after a yes.

mod aside;
mod branches;
mod changed;
mod commit_diff;
mod git_branch;
mod git_commit;
mod git_diff;
mod git_log;
mod git_push;
mod git_status;
mod names;
mod patch;
mod program;
mod push;
mod readable;
mod refused;
mod remote;
mod repository;
mod run;

pub(crate) use commit_diff::{look_at_commit, tell_commit};
pub(crate) use git_branch::GitBranch;
pub(crate) use git_commit::GitCommit;
pub(crate) use git_diff::GitDiff;
pub(crate) use git_log::GitLog;
pub(crate) use git_push::GitPush;
pub(crate) use git_status::GitStatus;
pub(crate) use repository::{OutsideRepository, has_repository, with_outside_repository};

//! Git through the program: hostile repositories, odd ones, commits, branches and pushes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "git/commits.rs"]
mod commits;
mod fenced;
#[path = "git/hostile.rs"]
mod hostile;
#[path = "git/looks.rs"]
mod looks;
#[path = "git/names.rs"]
mod names;
#[path = "git/pushes.rs"]
mod pushes;
#[path = "git/repo.rs"]
mod repo;
#[path = "git/submodules.rs"]
mod submodules;
mod support;
#[path = "git/worktrees.rs"]
mod worktrees;

//! `git_push`

use std::{sync::Arc, time::Duration};

use haft_runtime::{
    ChangeList, Described, Effect, ErrorCode, Isolation, PartialWork, Prepared, Ran, Shown, Tool, ToolCtx, ToolError,
    ToolFacts, Turn,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    program::Git,
    push::{PushPlan, PushResult},
};
use crate::workspaces::Workspaces;

pub(crate) struct GitPush(pub(crate) Arc<dyn Workspaces>);

/// Push a branch to a remote with the user's credentials. Always asks first and cannot be undone; hooks do not run. If
/// the remote has newer commits, `git fetch` with `shell_exec` and merge first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// Name of the remote.
    #[serde(default = "origin")]
    pub(super) remote: String,
    /// Branch to push; the current one when left out.
    pub(super) branch: Option<String>,
    /// Remember it as upstream.
    #[serde(default)]
    pub(super) set_upstream: bool,
    /// Overwrite; `with_lease` only if the remote is as last seen.
    #[serde(default)]
    pub(super) force: Force,
}

fn origin() -> String {
    "origin".to_owned()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Force {
    #[default]
    None,
    WithLease,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    remote: String,
    branch: String,
    /// What the remote branch was before; absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_hash: Option<String>,
    /// What the remote branch is now.
    new_hash: String,
    /// How many commits the remote did not have, as far as was known here.
    commits: u64,
    #[serde(skip)]
    to: String,
}

impl Tool for GitPush {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        open_world: true,
        timeout: Duration::from_secs(300),
        ..ToolFacts::new("git_push", "git", Effect::Destroy)
    };

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (git, _) = Git::at(&workspace, ".")?;
        let plan = PushPlan::make(&workspace, &git, ctx, input).await?;
        plan.remember(&workspace, ctx)?;
        Ok(Prepared::Plain(Described::showing(plan.preview(input))))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (git, _) = Git::at(&workspace, ".")?;
        let plan = PushPlan::make(&workspace, &git, ctx, &input).await?;
        plan.compare(&workspace, ctx)?;
        let pushed = match plan.push(&workspace, &git, ctx, &input).await {
            // Whoever was stopped half-way may have been heard.
            Err(error) if error.code == ErrorCode::Cancelled => return Ok(cut_short(ctx, unknown())),
            // Nobody was reached, so nothing was sent; whether to try again is for whoever asked.
            Err(error) if error.code == ErrorCode::NetworkError => return Ok(cut_short(ctx, error)),
            pushed => pushed?,
        };
        Ok(Ran::Done {
            output: Output::of(plan, pushed, input.remote),
            isolation: Some(Isolation::Limits),
            staged: None,
        })
    }
}

fn unknown() -> ToolError {
    let message = "the push was stopped; what it sent until then may have arrived: compare with `git ls-remote`";
    ToolError::new(ErrorCode::OutcomeUnknown, message)
}

fn cut_short<O>(ctx: &ToolCtx, error: ToolError) -> Ran<O> {
    let (changes, turn) = (ChangeList::default(), Turn::commit(ctx.call_id.clone()));
    Ran::CutShort(PartialWork { error, changes, turn, isolation: Some(Isolation::Limits) })
}

impl Output {
    fn of(plan: PushPlan, pushed: PushResult, remote: String) -> Self {
        let commits = if pushed.old.as_deref() == Some(plan.commit.as_str()) { 0 } else { plan.commits.len() as u64 };
        Self {
            remote,
            branch: plan.branch,
            old_hash: pushed.old,
            new_hash: plan.commit,
            commits,
            to: plan.shown.join(", "),
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let short = |hash: &str| hash.get(..7).unwrap_or(hash).to_owned();
        let (branch, new) = (&self.branch, short(&self.new_hash));
        let line = match &self.old_hash {
            Some(old) if *old == self.new_hash => return format!("To {}\n = {branch} is up to date at {new}", self.to),
            Some(old) => format!("   {}..{new}", short(old)),
            None => " * [new branch]".to_owned(),
        };
        format!("To {}\n{line}  {branch} -> {branch}", self.to)
    }
}

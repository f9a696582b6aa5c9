//! `git_branch`

use std::sync::Arc;

use haft_runtime::{
    Described, Effect, ErrorCode, Isolation, Prepared, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts,
};
use haft_sandbox::RepositoryKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    aside::Steps,
    branches::{Branch, LIST},
    names,
    program::{Arguments, Git},
};
use crate::workspaces::Workspaces;

/// Makes a branch, checks one out, or both; then lists all.
const STEPS: &str = r#"
case "$1" in
create) git branch -- "$2" ${3:+"$3"} >&2 ;;
checkout) git switch --no-guess -- "$2" >&2 ;;
both) git switch -c "$2" ${3:+"$3"} -- >&2 ;;
esac
exec git for-each-ref --format='%(refname)%00%(objectname)%00%(upstream:short)%00%(HEAD)' refs/heads
"#;

pub(crate) struct GitBranch(pub(crate) Arc<dyn Workspaces>);

/// List, create or check out branches. Without `create` and `checkout` it only lists. Changes are applied once approved
/// and can be undone. To compare branches use `git_diff` or `git_log`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "name": "fix-typo", "create": true, "checkout": true }))]
pub(crate) struct Input {
    /// The branch; without one all are listed.
    name: Option<String>,
    /// Create the branch.
    #[serde(default)]
    create: bool,
    /// Where a new branch begins: a branch, tag or commit.
    from: Option<String>,
    /// Check it out.
    #[serde(default)]
    checkout: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The branch that is checked out; empty when none is.
    current: String,
    branches: Vec<Branch>,
    /// The branch that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
}

impl Tool for GitBranch {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        timeout: std::time::Duration::from_secs(300),
        ..ToolFacts::new("git_branch", "git", Effect::Write)
    };

    fn shown(&self) -> Shown {
        self.0.git_shown()
    }

    fn effect(&self, input: &Input) -> Effect {
        if input.create || input.checkout { Effect::Write } else { Effect::Read }
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        if self.effect(input) == Effect::Read {
            return Ok(Prepared::Plain(Described::default()));
        }
        let workspace = self.0.of(ctx.scope())?;
        let (git, _) = Git::at(&workspace, ".")?;
        let steps = steps(&git, input)?;
        let preview = || format!("{}\nin a repository outside the workspace, where it cannot be undone", steps.typed);
        let read = |said: &str| Ok(Output::of(&git, said.as_bytes(), input));
        workspace.prepare_git(ctx, (&git, &steps), preview, read).await
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let (git, _) = Git::at(&workspace, ".")?;
        if self.effect(&input) != Effect::Read {
            let steps = steps(&git, &input)?;
            let read = |said: &str| Ok(Output::of(&git, said.as_bytes(), &input));
            return workspace.run_git(ctx, (&git, &steps), read).await;
        }
        if input.from.is_some() {
            return Err(refused("`from` says where a new branch begins; set `create` too"));
        }
        let mut output = Output::of(&git, &git.read(ctx, Arguments::of(LIST)).await?.bytes, &input);
        if let Some(name) = &input.name {
            names::branch("name", name)?;
            output.branches.retain(|branch| branch.name == *name);
            if output.branches.is_empty() {
                let message =
                    format!("there is no branch `{name}`; set `create` to make it, or list all without a name");
                return Err(ToolError::new(ErrorCode::NoMatch, message));
            }
        }
        Ok(Ran::Done { output, isolation: Some(Isolation::Limits), staged: None })
    }
}

/// What makes the branch, or checks it out.
fn steps(git: &Git, input: &Input) -> Result<Steps, ToolError> {
    let name = input.name.as_deref().ok_or_else(|| refused("name the branch to make or to check out"))?;
    names::branch("name", name)?;
    let from = input.from.as_deref().map(|from| names::commit("from", from)).transpose()?;
    if from.is_some() && !input.create {
        return Err(refused("`from` says where a new branch begins; set `create` too"));
    }
    if input.checkout && matches!(git.repository.kind, RepositoryKind::Around | RepositoryKind::Bare) {
        let message = "cannot check a branch out here: the files of this repository lie outside the workspace, or it has \
                       none; ask a person to do it";
        return Err(ToolError::new(ErrorCode::InvalidPath, message));
    }
    // A plain name lets git set the upstream of a branch that begins at a remote one.
    let from = input.from.clone().unwrap_or_default();
    let (way, typed) = match (input.create, input.checkout) {
        (true, false) => ("create", format!("git branch {name} {from}")),
        (true, true) => ("both", format!("git switch -c {name} {from}")),
        (false, _) => ("checkout", format!("git switch {name}")),
    };
    let arguments = vec![way.to_owned(), name.to_owned(), from];
    Ok(Steps { words: STEPS, arguments, input: String::new(), typed: typed.trim_end().to_owned() })
}

fn refused(why: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, why)
}

impl Output {
    fn of(git: &Git, said: &[u8], input: &Input) -> Self {
        let branches = Branch::read_all(said);
        let current = branches.iter().find(|branch| branch.current).map(|branch| branch.name.clone());
        Self {
            // A branch without commits is in no list.
            current: current.or_else(|| git.repository.branch()).unwrap_or_default(),
            branches,
            created: input.name.clone().filter(|_| input.create),
        }
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.branches.iter().map(Branch::line).collect();
        if self.current.is_empty() {
            lines.insert(0, "* (no branch)".to_owned());
        } else if self.branches.is_empty() {
            lines.push(format!("* {} (no commits yet)", self.current));
        }
        lines.join("\n")
    }
}

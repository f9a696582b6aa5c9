//! The door to staged changes: whatever any call has staged, in whichever workspace.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use haft_runtime::{CallId, Change, ChangeList, ChangeState, Direction, Recovered, Scope, ToolError, Turn, Workbench};
use haft_sandbox::changes::{self, Changes, ChangesError};

use crate::{
    blocking::{StopWith, blocking, inline},
    fenced::{keep, throw_away},
    refusal::Trying,
    shown::{change_list, direction, selection},
    workspace::changes_of,
    workspaces::Workspaces,
};

/// The workbench on the sandbox's changes. Each set remembers the workspace it was made for.
pub struct SandboxWorkbench {
    workspaces: Arc<dyn Workspaces>,
}

impl SandboxWorkbench {
    /// On the changes of the calls in these workspaces, and of all others with the same data.
    pub fn new(workspaces: Arc<dyn Workspaces>) -> Self {
        Self { workspaces }
    }

    /// Where the changes of a call lie.
    fn dir(&self, scope: &Scope, call: &CallId) -> Result<PathBuf, ToolError> {
        Ok(changes_of(&self.workspaces.data(scope)?, call))
    }

    /// The changes of a call that were worked out here a moment ago.
    fn recent(&self, scope: &Scope, call: &CallId) -> Option<Changes> {
        self.workspaces.of(scope).ok()?.files.recent().take(call)
    }

    /// Opens the changes of a call and works on them; what has begun always comes to its end.
    async fn on<T: Send + 'static>(
        &self,
        (scope, call): (&Scope, &CallId),
        work: impl FnOnce(Changes) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let dir = self.dir(scope, call)?;
        blocking(StopWith::Nothing, move |_| work(open(&dir)?)).await
    }

    async fn turn(&self, scope: &Scope, turn: &Turn) -> Result<ChangeList, ToolError> {
        let Turn { of, direction: way, paths } = turn.clone();
        let (dir, mut recent) = (self.dir(scope, &of)?, self.recent(scope, &of));
        if way == Direction::Commit
            && let Some(quota) = self.workspaces.of(scope).ok().and_then(|workspace| workspace.quota.clone())
        {
            let known = recent.as_ref().map(|changes| added(changes, paths.as_deref()));
            let (dir, paths) = (dir.clone(), paths.clone());
            blocking(StopWith::Nothing, move |_| {
                let bytes = known.map_or_else(|| Ok(added(&open(&dir)?, paths.as_deref())), Ok)?;
                quota.make_room(bytes)
            })
            .await?;
        }
        if let Some(changes) = recent.as_mut().filter(|changes| !changes.is_empty()) {
            let turn = || changes.turn_at_once(direction(way), selection(paths.as_deref())).trying(named(way));
            if let Some(turned) = inline(turn)? {
                return Ok(change_list(turned));
            }
        }
        blocking(StopWith::Nothing, move |_| {
            // What was worked out without a command has no folders of its own.
            let by_command = recent.is_none();
            let mut changes = recent.map_or_else(|| open(&dir), Ok)?;
            if changes.is_empty() {
                keep(&dir);
                changes::remove(&dir).trying("put the call's folder away")?;
                return Ok(ChangeList::default());
            }
            let turned = changes.turn(direction(way), selection(paths.as_deref())).trying(named(way))?;
            if way == Direction::Commit && by_command {
                keep(&dir);
            }
            Ok(change_list(turned))
        })
        .await
    }

    async fn drop_staged(&self, scope: &Scope, call: &CallId) -> Result<(), ToolError> {
        let dir = self.dir(scope, call)?;
        blocking(StopWith::Nothing, move |_| match Changes::open(&dir) {
            // What was never whole is nothing to anybody: a process died while it was being worked out.
            Err(ChangesError::Gone) => changes::remove(&dir).trying("discard the changes"),
            opened => {
                opened.and_then(|mut changes| changes.discard()).trying("discard the changes")?;
                throw_away(&dir);
                Ok(())
            }
        })
        .await
    }

    async fn heal(&self, scope: &Scope, turn: &Turn) -> Result<Recovered, ToolError> {
        let (dir, turn) = (self.dir(scope, &turn.of)?, turn.clone());
        blocking(StopWith::Nothing, move |_| {
            let found = changes::recover(&dir).trying("recover the changes")?;
            let now = Changes::open(&dir).trying("look at the changes")?;
            let done =
                ChangeList(change_list(now.list()).0.into_iter().filter(|change| is_done(change, &turn)).collect());
            let sentence = sentence(turn.direction, &found, done.0.len());
            Ok(Recovered { done, sentence })
        })
        .await
    }
}

impl Workbench for SandboxWorkbench {
    fn show<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        Box::pin(self.on((scope, call), |changes| Ok(change_list(changes.list()))))
    }

    fn preview<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        let Turn { direction: way, paths, .. } = turn.clone();
        Box::pin(self.on((scope, &turn.of), move |changes| {
            let turned = changes.preview_turn(direction(way), selection(paths.as_deref()));
            turned.map(change_list).trying(named(way))
        }))
    }

    fn take<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        Box::pin(self.turn(scope, turn))
    }

    fn discard<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.drop_staged(scope, call))
    }

    fn recover<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<Recovered, ToolError>> {
        Box::pin(self.heal(scope, turn))
    }
}

/// How many bytes a commit of these paths adds at most.
fn added(changes: &Changes, paths: Option<&[String]>) -> u64 {
    let mut list = change_list(changes.list());
    list.0.retain(|change| paths.is_none_or(|paths| paths.contains(&change.path)));
    list.bytes()
}

fn open(dir: &Path) -> Result<Changes, ToolError> {
    Changes::open(dir).trying("look at the changes")
}

/// Whether a change stands where the turn leads to.
fn is_done(change: &Change, turn: &Turn) -> bool {
    let end = match turn.direction {
        Direction::Commit => ChangeState::Committed,
        Direction::Undo => ChangeState::Undone,
    };
    let is_chosen = |paths: &Vec<String>| {
        paths.contains(&change.path) || change.from.as_ref().is_some_and(|from| paths.contains(from))
    };
    change.state == end && turn.paths.as_ref().is_none_or(is_chosen)
}

fn sentence(way: Direction, found: &changes::RecoveryReport, done: usize) -> String {
    let way = named(way);
    let back = found.rolled_back.len();
    match (found.conflicted.as_slice(), done) {
        ([], 0) if back == 0 => format!("the {way} had not begun when haft ended; nothing was touched"),
        ([], 0) => format!("the {way} was cut short when haft ended and has been taken back ({back} paths)"),
        ([], done) => format!("the {way} was complete when haft ended ({done} paths)"),
        (left, _) => format!(
            "the {way} was cut short when haft ended and has been taken back, except for `{}`: changed by something \
             else meanwhile and left as it is",
            left.join("`, `")
        ),
    }
}

fn named(way: Direction) -> &'static str {
    match way {
        Direction::Commit => "commit",
        Direction::Undo => "undo",
    }
}

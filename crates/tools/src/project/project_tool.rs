//! A project tool on the line: its manifest, the files that it names, and the command that is run like any other.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{AnyTool, Effect, ErrorCode, Prepared, Ran, ToolCtx, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;

use super::{manifest::Manifest, output::output, script::Script};
use crate::{
    command::CommandLine,
    fenced::{CommandSpec, PinnedFile},
    refusal::Trying,
    workspace::Workspace,
    workspaces::Workspaces,
};

/// How long a tool may run where nobody says.
const USUAL: Duration = Duration::from_secs(120);

/// A tool that a manifest of this workspace describes. `scripts` are the files that its command names.
pub fn project_tool(
    workspaces: &Arc<dyn Workspaces>,
    workspace: &Workspace,
    manifest: Manifest,
    scripts: Vec<Script>,
) -> Arc<dyn AnyTool> {
    let usual = workspace.commands.fenced().map_or(USUAL, |fenced| fenced.config().timeout);
    let (spec, home) = (manifest.spec(usual), workspace.path().to_owned());
    Arc::new(ProjectTool { workspaces: Arc::clone(workspaces), home, manifest, scripts, spec })
}

struct ProjectTool {
    workspaces: Arc<dyn Workspaces>,
    /// The workspace that brought it, in which alone it was trusted.
    home: PathBuf,
    manifest: Manifest,
    scripts: Vec<Script>,
    spec: ToolSpec,
}

impl AnyTool for ProjectTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Execute
    }

    fn prepare<'a>(
        &'a self,
        ctx: &'a ToolCtx,
        input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace(ctx)?;
            let spec = self.command_spec(&workspace, input)?;
            let command = CommandLine::read(&typed(&spec.command));
            workspace.refuse(&command, &self.manifest.folder)?;
            match self.reaches() {
                Some(reaches) => workspace.describe(&command, Some(&reaches)),
                None => workspace.prepare_aside(ctx, spec, &command, output).await,
            }
        })
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace(ctx)?;
            workspace.run_after_a_yes(ctx, self.command_spec(&workspace, input)?, output).await
        })
    }
}

impl ProjectTool {
    /// The workspace of the call, which must be the one that brought the tool.
    fn workspace(&self, ctx: &ToolCtx) -> Result<Arc<Workspace>, ToolError> {
        let workspace = self.workspaces.of(ctx.scope())?;
        if workspace.path() != self.home {
            let message = format!("`{}` belongs to another workspace", self.spec.name);
            return Err(ToolError::new(ErrorCode::Forbidden, message));
        }
        Ok(workspace)
    }

    fn command_spec(&self, workspace: &Workspace, input: &Value) -> Result<CommandSpec, ToolError> {
        let values = self.manifest.with_defaults(input);
        let words = self.manifest.words(&values);
        let command =
            words.map_err(|why| ToolError::new(ErrorCode::InvalidArgs, format!("`{}`: {why}", self.spec.name)))?;
        CommandSpec {
            command,
            folder: workspace.folder(&self.manifest.folder)?,
            environment: BTreeMap::new(),
            stdin: Value::Object(values).to_string() + "\n",
            network: self.manifest.network,
            writable: self
                .manifest
                .writes
                .iter()
                .map(|folder| self.allowed(workspace, folder))
                .collect::<Result<_, _>>()?,
            pinned: self.pinned(workspace)?,
            limit: self.spec.timeout,
        }
        .checked()
    }

    /// The files that the command names, held to the bytes that were trusted.
    fn pinned(&self, workspace: &Workspace) -> Result<Vec<PinnedFile>, ToolError> {
        let root = workspace.files.root();
        let mut pinned = Vec::new();
        for script in &self.scripts {
            if let Some(bytes) = script.checked(root, &self.spec.name)? {
                let place = root.place_called(&script.path).trying("run")?;
                pinned.push(PinnedFile { place, bytes: bytes.to_vec() });
            }
        }
        Ok(pinned)
    }

    /// A folder outside, if the user's own settings let tools write there.
    fn allowed(&self, workspace: &Workspace, folder: &Path) -> Result<PathBuf, ToolError> {
        let (tool, shown) = (&self.spec.name, folder.display());
        let refused =
            |code, why: String| Err(ToolError::new(code, format!("`{tool}` may not write into {shown}: {why}")));
        if !workspace.commands.fenced()?.config().writable.iter().any(|allowed| allowed == folder) {
            let line = "add it to `sandbox.write` in your own haft.toml if that is what you want";
            return refused(ErrorCode::PermissionDenied, format!("your settings do not say so; {line}"));
        }
        if folder.starts_with(workspace.path()) {
            let why = "it lies in the workspace, where tools write without it";
            return refused(ErrorCode::PermissionDenied, why.to_owned());
        }
        if !folder.is_dir() {
            return refused(ErrorCode::FileNotFound, "there is no such folder; make it first".to_owned());
        }
        Ok(folder.to_owned())
    }

    /// What it may reach outside, in words that follow "reaches"; then it is asked for before it runs.
    fn reaches(&self) -> Option<String> {
        let hosts = self.manifest.network.then(|| "any host, this machine included".to_owned());
        let folders = self.manifest.writes.iter();
        let folders = folders.map(|folder| format!("the folder {}, where nothing can be undone", folder.display()));
        let all: Vec<String> = hosts.into_iter().chain(folders).collect();
        (!all.is_empty()).then(|| all.join("\nreaches "))
    }
}

/// The command as it would be typed, for whoever reads commands.
fn typed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    quoted.join(" ")
}

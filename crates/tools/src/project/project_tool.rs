//! A project tool on the line: its manifest, the files that it names, and the command that is run like any other.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{AnyTool, Described, Effect, ErrorCode, Prepared, Ran, ToolCtx, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;

use super::{argument::shown, manifest::Manifest, output::output, script::Script, variables::FindSecret};
use crate::{
    command::CommandLine,
    fenced::{CommandResult, CommandSpec, PinnedFile},
    refusal::Trying,
    workspace::Workspace,
    workspaces::Workspaces,
};

/// How long a tool may run where nobody says.
const USUAL: Duration = Duration::from_secs(120);

/// A tool that a manifest of this workspace describes. `scripts` are the files that its command names, and its secrets
/// are found when it is run.
pub fn project_tool(
    workspaces: &Arc<dyn Workspaces>,
    workspace: &Workspace,
    manifest: Manifest,
    (scripts, secrets): (Vec<Script>, FindSecret),
) -> Arc<dyn AnyTool> {
    let usual = workspace.commands.fenced().map_or(USUAL, |fenced| fenced.config().timeout);
    let (spec, home) = (manifest.spec(usual), workspace.path().to_owned());
    Arc::new(ProjectTool { workspaces: Arc::clone(workspaces), home, manifest, scripts, secrets, spec })
}

struct ProjectTool {
    workspaces: Arc<dyn Workspaces>,
    /// The workspace that brought it, in which alone it was trusted.
    home: PathBuf,
    manifest: Manifest,
    scripts: Vec<Script>,
    secrets: FindSecret,
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
            let words = spec.command.clone();
            let prepared = match self.reaches() {
                Some(reaches) => workspace.describe(&command, Some(&reaches)),
                None => workspace.prepare_aside(ctx, spec, &command, |done| self.output(done, &words)).await,
            };
            Ok(match prepared? {
                Prepared::Plain(described) => Prepared::Plain(self.with_command(described, &words)),
                other @ (Prepared::Staged { .. } | Prepared::CutShort(_)) => other,
            })
        })
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async move {
            let workspace = self.workspace(ctx)?;
            let spec = self.command_spec(&workspace, input)?;
            let words = spec.command.clone();
            workspace.run_after_a_yes(ctx, spec, |done| self.output(done, &words)).await
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
        let (environment, secrets) = self.manifest.variables.resolved(&self.secrets).map_err(|why| {
            ToolError::new(ErrorCode::ExecutionError, format!("`{}` was not run: {why}", self.spec.name))
        })?;
        CommandSpec {
            command,
            folder: workspace.folder(&self.manifest.folder)?,
            environment,
            stdin: Value::Object(values).to_string() + "\n",
            network: self.manifest.network,
            writable: self
                .manifest
                .writes
                .iter()
                .map(|folder| self.allowed(workspace, folder))
                .collect::<Result<_, _>>()?,
            pinned: self.pinned(workspace)?,
            secrets,
            limit: self.spec.timeout,
        }
        .checked()
    }

    /// What it gives back, with the command that was run for whoever is asked about it.
    fn output(&self, done: &CommandResult, words: &[String]) -> ToolOutput {
        let mut output = output(done, self.manifest.output_schema.as_ref());
        output.metadata.insert("command".to_owned(), shown(words).into());
        let variables = self.manifest.variables.shown();
        if !variables.is_empty() {
            output.metadata.insert("variables".to_owned(), variables.into());
        }
        output
    }

    /// What a person is shown of one that has not run: its command and the secrets that it gets, by their names.
    fn with_command(&self, described: Described, words: &[String]) -> Described {
        let command = format!("$ {}", shown(words));
        let secrets = self.manifest.variables.secrets().map(|secret| format!("gets {secret}"));
        let lines: Vec<String> = std::iter::once(command).chain(secrets).chain(described.preview).collect();
        Described { preview: Some(lines.join("\n")), ..described }
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

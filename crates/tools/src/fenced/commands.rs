//! What a tool that runs commands does before the yes, and after it.

use haft_runtime::{Described, ErrorCode, Prepared, Ran, Rememberable, ToolCtx, ToolError};
use haft_sandbox::{
    WorkspacePath,
    fence::{Rung, mounts_within},
};

use super::{
    command_spec::{CommandResult, CommandSpec},
    fence::isolation,
    running::{WriteLocation, run},
};
use crate::{
    command::{CommandLine, Places},
    refusal::Trying,
    workspace::Workspace,
};

impl Workspace {
    /// The folder that a command starts in, links resolved.
    pub(crate) fn folder(&self, typed: &str) -> Result<WorkspacePath, ToolError> {
        let root = self.files.root();
        let place = root.place(typed).trying("run a command in")?;
        Ok(root.open_folder(&place).trying("run a command in")?.place().clone())
    }

    /// Refuses what no mode, rule or person lets through.
    pub(crate) fn refuse(&self, command: &CommandLine, folder: &str) -> Result<(), ToolError> {
        let folder = self.path().join(self.folder(folder)?.as_path());
        let places =
            Places { workspace: self.path(), home: Some(&self.commands.fenced()?.config().home), folder: &folder };
        command.refusal(&places).map_or(Ok(()), |why| Err(ToolError::new(ErrorCode::CommandBlocked, why)))
    }

    /// Runs the command aside, or describes it where that cannot be.
    pub(crate) async fn prepare_aside<O>(
        &self,
        ctx: &ToolCtx,
        spec: CommandSpec,
        command: &CommandLine,
        output: impl FnOnce(&CommandResult) -> O,
    ) -> Result<Prepared<O>, ToolError> {
        match self.writes()? {
            WriteLocation::Aside => Ok(self.run(ctx, spec, WriteLocation::Aside).await?.prepared(ctx, output)),
            WriteLocation::Directly => self.describe(command, None),
        }
    }

    /// Runs the command that a person, or a rule, has said yes to.
    pub(crate) async fn run_after_a_yes<O>(
        &self,
        ctx: &ToolCtx,
        spec: CommandSpec,
        output: impl FnOnce(&CommandResult) -> O,
    ) -> Result<Ran<O>, ToolError> {
        let writes = self.writes()?;
        Ok(self.run(ctx, spec, writes).await?.ran(ctx, output))
    }

    /// What a person is shown of a command that runs only after the yes. `reaches` says what it may reach outside.
    pub(crate) fn describe<O>(&self, command: &CommandLine, reaches: Option<&str>) -> Result<Prepared<O>, ToolError> {
        Ok(Prepared::Plain(self.described(command, self.writes()?, reaches)?))
    }

    /// The same for one that writes in a way of its own.
    pub(crate) fn described(
        &self,
        command: &CommandLine,
        writes: WriteLocation,
        reaches: Option<&str>,
    ) -> Result<Described, ToolError> {
        let mut lines: Vec<String> = command.explained().iter().map(ToString::to_string).collect();
        lines.extend(command.unclear());
        if let Some(reaches) = reaches {
            lines.push(format!("reaches {reaches}"));
        }
        let runs_aside = writes == WriteLocation::Aside;
        let unsure = command.unclear().or_else(|| command.runs_others().then(|| "it runs other programs".to_owned()));
        let lasting = match unsure {
            Some(why) if !runs_aside => Rememberable::No { why },
            Some(_) | None => Rememberable::ThisInput,
        };
        let isolation = Some(isolation(self.commands.fenced()?.rung()?));
        let must_ask = if runs_aside { None } else { command.forced_ask() };
        Ok(Described { preview: Some(lines.join("\n")), isolation, runs_aside, lasting, must_ask, reach: None })
    }

    async fn run(&self, ctx: &ToolCtx, spec: CommandSpec, writes: WriteLocation) -> Result<CommandResult, ToolError> {
        run(ctx, self.command_context(&ctx.call_id)?, spec, writes).await
    }

    /// Whether commands can run aside here.
    pub(crate) fn runs_aside(&self) -> Result<bool, ToolError> {
        Ok(self.writes()? == WriteLocation::Aside)
    }

    /// Where commands write. A folder that is mounted inside the workspace would look empty to them.
    fn writes(&self) -> Result<WriteLocation, ToolError> {
        let rung = self.commands.fenced()?.rung()?;
        let mounts = mounts_within(self.path()).unwrap_or_default();
        Ok(if rung == Rung::Namespaces && mounts.is_empty() { WriteLocation::Aside } else { WriteLocation::Directly })
    }
}

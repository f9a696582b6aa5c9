//! The two shapes of a workspace tool, so that each tool is one file with one method.

use std::{future::Future, sync::Arc};

use haft_runtime::{
    AnyTool, ChangeList, DeprecatedAlias, Output, Prepared, Ran, Stamp, Tool, ToolCtx, ToolError, ToolFacts, Turn,
    typed,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A tool that only looks.
pub(crate) trait Reads: Send + Sync + 'static {
    /// What goes in; its doc comment is the tool's description.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;
    /// What comes out.
    type Output: Output;

    /// What holds of it whatever its input is.
    const FACTS: ToolFacts;

    /// Names that it had before, each with the last day on which it is understood.
    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        Vec::new()
    }

    /// What tells whether an earlier answer to this input still holds; `None` when nothing does.
    fn stamp(&self, _ctx: &ToolCtx, _input: &Self::Input) -> impl Future<Output = Option<Stamp>> + Send {
        async { None }
    }

    /// The work itself.
    fn read(&self, ctx: &ToolCtx, input: Self::Input) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// A tool that changes files: it says how, and the commit comes after the yes.
pub(crate) trait ChangesFiles: Send + Sync + 'static {
    /// What goes in; its doc comment is the tool's description.
    type Input: DeserializeOwned + JsonSchema + Clone + Send + Sync;
    /// What comes out after the commit.
    type Output: Output;

    /// What holds of it whatever its input is.
    const FACTS: ToolFacts;

    /// Names that it had before, each with the last day on which it is understood.
    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        Vec::new()
    }

    /// Works the changes out without touching the workspace.
    fn plan(
        &self,
        ctx: &ToolCtx,
        input: Self::Input,
    ) -> impl Future<Output = Result<(Self::Output, ChangeList), ToolError>> + Send;
}

/// A reading tool as the line holds it.
pub(crate) fn reads<T: Reads>(tool: T) -> Arc<dyn AnyTool> {
    typed(ReadingTool(tool))
}

/// A changing tool as the line holds it.
pub(crate) fn changes_files<T: ChangesFiles>(tool: T) -> Arc<dyn AnyTool> {
    typed(ChangingTool(tool))
}

struct ReadingTool<T>(T);

impl<T: Reads> Tool for ReadingTool<T> {
    type Input = T::Input;
    type Output = T::Output;

    const FACTS: ToolFacts = T::FACTS;

    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        T::deprecated_aliases()
    }

    async fn stamp(&self, ctx: &ToolCtx, input: &T::Input) -> Option<Stamp> {
        self.0.stamp(ctx, input).await
    }

    async fn run(&self, ctx: &ToolCtx, input: T::Input) -> Result<Ran<T::Output>, ToolError> {
        Ok(Ran::plain(self.0.read(ctx, input).await?))
    }
}

struct ChangingTool<T>(T);

impl<T: ChangesFiles> Tool for ChangingTool<T> {
    type Input = T::Input;
    type Output = T::Output;

    const FACTS: ToolFacts = T::FACTS;

    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        T::deprecated_aliases()
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &T::Input) -> Result<Prepared<T::Output>, ToolError> {
        let (output, changes) = self.0.plan(ctx, input.clone()).await?;
        Ok(Prepared::Staged { output, changes, turn: Turn::commit(ctx.call_id.clone()), isolation: None })
    }
}

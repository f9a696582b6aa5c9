//! A workspace of one's own, with the tools and the workbench at hand.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_runtime::{
    AnyTool, CallId, Caller, ChangeList, Prepared, Ran, RegisteredTool, Scope, Shown, Source, ToolCtx, ToolError,
    ToolOutput, Turn, Workbench,
};
use haft_tools::{OpenWorkspaces, SandboxWorkbench, Workspace, Workspaces};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct Place {
    dir: TempDir,
    runtime: Runtime,
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    pub(crate) workbench: SandboxWorkbench,
    pub(crate) workspace: Arc<Workspace>,
}

/// What a tool has staged.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) output: ToolOutput,
    pub(crate) changes: ChangeList,
    pub(crate) turn: Turn,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(|workspace| workspace)
    }

    /// In a haft that lives on between calls.
    pub(crate) fn living() -> Self {
        Self::with(Workspace::outliving_calls)
    }

    fn with(kind: impl FnOnce(Workspace) -> Workspace) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, data) = (dir.path().join("workspace"), dir.path().join("data"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&data).unwrap();
        let workspace = Arc::new(kind(Workspace::open(&root, &data).unwrap()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let workspaces = only(&workspace, &data);
        let tools = haft_tools::all(&workspaces, Shown::Never);
        Self { dir, runtime, tools, workbench: SandboxWorkbench::new(workspaces), workspace }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("workspace").join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a file into the workspace, past the tools.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn tool(&self, name: &str) -> &dyn AnyTool {
        self.tools.iter().find(|tool| tool.spec().name == name).unwrap().as_ref()
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Uses a tool that reads.
    #[expect(clippy::needless_pass_by_value, reason = "inputs are written where they are used")]
    pub(crate) fn read(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let output = self.wait(self.tool(tool).run(&ctx(), &input)).and_then(Ran::into_output)?;
        self.fits(tool, &output);
        Ok(output)
    }

    /// A result must be one that the tool's published schema allows.
    fn fits(&self, tool: &str, output: &ToolOutput) {
        let tool = self.tools.iter().find(|known| known.spec().name == tool).unwrap();
        let published = RegisteredTool::new(Arc::clone(tool)).unwrap();
        assert!(published.may_give(&output.structured), "{}: {}", tool.spec().name, output.structured.text());
    }

    /// Uses a tool that changes files, up to the question.
    #[expect(clippy::needless_pass_by_value, reason = "inputs are written where they are used")]
    pub(crate) fn stage(&self, tool: &str, input: Value) -> Result<Staged, ToolError> {
        match self.wait(self.tool(tool).prepare(&ctx(), &input))? {
            Prepared::Staged { output, changes, turn, .. } => {
                self.fits(tool, &output);
                Ok(Staged { output, changes, turn })
            }
            Prepared::Plain(described) => panic!("not staged: {described:?}"),
            Prepared::CutShort(cut) => Err(cut.error),
        }
    }

    /// Uses a tool that changes files, with a yes.
    pub(crate) fn change(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let staged = self.stage(tool, input)?;
        self.wait(self.workbench.take(&scope(), &staged.turn)).map(|_| staged.output)
    }

    /// The names of what is held aside.
    pub(crate) fn held_aside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data().join("changes")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Whether anything is held aside.
    pub(crate) fn holds_nothing_aside(&self) -> bool {
        self.held_aside().is_empty()
    }
}

/// The scope of every call here.
pub(crate) fn scope() -> Scope {
    Scope::local("test")
}

/// A workspace alone.
pub(crate) fn only(workspace: &Arc<Workspace>, data: &Path) -> Arc<dyn Workspaces> {
    Arc::new(OpenWorkspaces::new(data).with(scope(), Arc::clone(workspace)))
}

pub(crate) fn ctx() -> ToolCtx {
    ctx_in(scope())
}

/// A call in another scope.
pub(crate) fn ctx_in(scope: Scope) -> ToolCtx {
    ToolCtx::detached(CallId::new(), Caller::owner("test", scope, Source::Cli))
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

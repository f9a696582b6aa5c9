//! One set of tools that serves two workspaces: each call sees and changes only that of its own scope.

use std::{fs, path::PathBuf, sync::Arc};

use haft_runtime::{
    AnyTool, ChangeState, Direction, ErrorCode, Prepared, Ran, Scope, Shown, TenantId, ToolError, ToolOutput, Turn,
    Workbench,
};
use haft_tools::{OpenWorkspaces, SandboxWorkbench, Workspace, Workspaces};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::place::ctx_in;

/// Two folders, one data folder, one set of tools.
struct Pair {
    dir: TempDir,
    runtime: Runtime,
    tools: Vec<Arc<dyn AnyTool>>,
    workbench: SandboxWorkbench,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let mut open = OpenWorkspaces::new(&data);
        for name in ["left", "right"] {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("same"), format!("{name}\n")).unwrap();
            fs::write(folder.join(format!("only-{name}")), "").unwrap();
            open = open.with(Scope::local(name), Arc::new(Workspace::open(&folder, &data).unwrap()));
        }
        let workspaces: Arc<dyn Workspaces> = Arc::new(open);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let tools = haft_tools::all(&workspaces, Shown::Never);
        Self { dir, runtime, tools, workbench: SandboxWorkbench::new(workspaces) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn tool(&self, name: &str) -> &dyn AnyTool {
        self.tools.iter().find(|tool| tool.spec().name == name).unwrap().as_ref()
    }

    fn read(&self, scope: Scope, tool: &str, input: &Value) -> Result<ToolOutput, ToolError> {
        self.runtime.block_on(self.tool(tool).run(&ctx_in(scope), input)).and_then(Ran::into_output)
    }

    fn stage(&self, scope: Scope, tool: &str, input: &Value) -> Result<Turn, ToolError> {
        match self.runtime.block_on(self.tool(tool).prepare(&ctx_in(scope), input))? {
            Prepared::Staged { turn, .. } => Ok(turn),
            Prepared::Plain(described) => panic!("not staged: {described:?}"),
            Prepared::CutShort(cut) => Err(cut.error),
        }
    }
}

#[test]
fn each_call_reads_in_its_own_workspace() {
    let pair = Pair::new();
    for name in ["left", "right"] {
        let read = |tool, input| pair.read(Scope::local(name), tool, &input).unwrap().structured;
        assert_eq!(read("read_file", json!({"path": "same"}))["content"], json!(format!("{name}\n")));
        let found = read("glob", json!({"pattern": "only-*"}));
        assert!(found.to_string().contains(&format!("only-{name}")) && found["count"] == 1, "{found:?}");
        assert_eq!(read("grep", json!({"pattern": "left|right"}))["count"], 1);
        let listed = read("list_directory", json!({"path": "."}));
        assert_eq!(listed["total"], 2, "{listed:?}");
    }
    let refused = pair.read(Scope::local("left"), "read_file", &json!({"path": "../right/same"})).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidPath, "{refused:?}");
}

#[test]
fn each_call_changes_and_undoes_only_its_own_workspace() {
    let pair = Pair::new();
    let edit = |name: &str| {
        let input = json!({"path": "same", "old": name, "new": format!("new {name}")});
        pair.stage(Scope::local(name), "edit_file", &input).unwrap()
    };
    let (left, right) = (edit("left"), edit("right"));
    let (of_left, of_right) = (Scope::local("left"), Scope::local("right"));
    pair.runtime.block_on(pair.workbench.take(&of_left, &left)).unwrap();
    assert_eq!((pair.text("left/same").as_str(), pair.text("right/same").as_str()), ("new left\n", "right\n"));
    pair.runtime.block_on(pair.workbench.take(&of_right, &right)).unwrap();
    let back = Turn { direction: Direction::Undo, ..left.clone() };
    pair.runtime.block_on(pair.workbench.take(&of_left, &back)).unwrap();
    assert_eq!((pair.text("left/same").as_str(), pair.text("right/same").as_str()), ("left\n", "new right\n"));
    let shown = |scope, turn: &Turn| pair.runtime.block_on(pair.workbench.show(scope, &turn.of)).unwrap();
    assert_eq!(shown(&of_left, &left).0[0].state, ChangeState::Undone);
    assert_eq!(shown(&of_right, &right).0[0].state, ChangeState::Committed);
}

#[test]
fn the_same_changes_are_found_without_a_choice_of_workspace() {
    let pair = Pair::new();
    let scope = Scope::local("left");
    let turn = pair.stage(scope.clone(), "write_file", &json!({"path": "new", "content": "new\n"})).unwrap();
    let everywhere = Scope::of_house(TenantId::local(), None);
    assert_eq!(pair.runtime.block_on(pair.workbench.show(&everywhere, &turn.of)).unwrap().0.len(), 1);
    pair.runtime.block_on(pair.workbench.discard(&everywhere, &turn.of)).unwrap();
    assert!(pair.runtime.block_on(pair.workbench.take(&scope, &turn)).is_err());
    assert!(!pair.path("left/new").exists());
}

#[test]
fn a_scope_without_an_open_workspace_is_refused() {
    let pair = Pair::new();
    let scopes = [Scope::of_house(TenantId::local(), None), Scope::local("elsewhere")];
    for scope in scopes {
        let expected =
            if scope.workspace().is_some() { "`elsewhere` is not open here" } else { "belongs to no workspace" };
        for tool in ["read_file", "list_directory", "grep", "glob", "git_status", "shell_list"] {
            let input = match tool {
                "grep" | "glob" => json!({"pattern": "a"}),
                "read_file" => json!({"path": "same"}),
                _ => json!({}),
            };
            let refused = pair.read(scope.clone(), tool, &input).unwrap_err();
            assert_eq!((refused.code, refused.recoverable), (ErrorCode::Unavailable, false), "{tool}: {refused:?}");
            assert!(refused.message.contains(expected), "{tool}: {refused:?}");
        }
        let refused = pair.stage(scope, "write_file", &json!({"path": "new", "content": ""})).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unavailable);
    }
}

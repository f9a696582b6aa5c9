//! A search that matches far more than it may show takes little memory. Alone in its program, so that the memory is only
//! its own.

use std::{fs, sync::Arc};

use haft_runtime::{CallId, Caller, Scope, Shown, Source, ToolCtx};
use haft_tools::{OpenWorkspaces, Workspace, Workspaces};
use serde_json::json;
use tokio::runtime::Builder;

const FILES: usize = 40;
const LINES: usize = 20_000;
const MEMORY_KIB: u64 = 64 << 10;

#[test]
fn a_search_that_matches_everything_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Arc::new(Workspace::open(dir.path(), &dir.path().join("data")).unwrap());
    let line = format!("{}\n", "needle ".repeat(40));
    fs::write(dir.path().join("0"), line.repeat(LINES)).unwrap();
    for name in 1..FILES {
        fs::hard_link(dir.path().join("0"), dir.path().join(name.to_string())).unwrap();
    }
    let open = OpenWorkspaces::new(&dir.path().join("data")).with(Scope::local("test"), workspace);
    let workspaces: Arc<dyn Workspaces> = Arc::new(open);
    let tool = haft_tools::all(&workspaces, Shown::Never).into_iter().find(|tool| tool.spec().name == "grep").unwrap();
    let caller = Caller::owner("test", Scope::local("test"), Source::Cli);
    let ctx = ToolCtx::detached(CallId::new(), caller);
    let runtime = Builder::new_current_thread().build().unwrap();
    let input = json!({ "pattern": "needle", "maxResults": 10_000, "context": 2 });
    let found = runtime.block_on(tool.run(&ctx, &input)).unwrap().into_output().unwrap().structured;
    assert_eq!((&found["count"], &found["truncated"]), (&json!(FILES * LINES), &json!(true)));
    assert_eq!(found["matches"].as_array().unwrap().len(), 10_000);

    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < MEMORY_KIB, "{peak} KiB");
}

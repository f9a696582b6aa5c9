//! The end of a huge file is read in little memory. Alone in its program, so that the memory is only its own.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    sync::Arc,
};

use haft_runtime::{CallId, Caller, Scope, Shown, Source, ToolCtx};
use haft_tools::{OpenWorkspaces, Workspace, Workspaces};
use serde_json::json;
use tokio::runtime::Builder;

const SIZE: u64 = 512 << 20;
const MEMORY_KIB: u64 = 32 << 10;

#[test]
fn the_end_of_a_huge_file_is_read_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = File::create(dir.path().join("huge")).unwrap();
    file.write_all("head\n".repeat(2000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(SIZE)).unwrap();
    file.write_all("\ntail".repeat(100).as_bytes()).unwrap();

    let workspace = Arc::new(Workspace::open(dir.path(), &dir.path().join("data")).unwrap());
    let open = OpenWorkspaces::new(&dir.path().join("data")).with(Scope::local("test"), workspace);
    let workspaces: Arc<dyn Workspaces> = Arc::new(open);
    let tool =
        haft_tools::all(&workspaces, Shown::Never).into_iter().find(|tool| tool.spec().name == "read_file").unwrap();
    let caller = Caller::owner("test", Scope::local("test"), Source::Cli);
    let ctx = ToolCtx::detached(CallId::new(), caller);
    let runtime = Builder::new_current_thread().build().unwrap();
    let read = |input| runtime.block_on(tool.run(&ctx, &input)).unwrap().into_output().unwrap().structured;

    // Line 2001 is the hole.
    let found = read(json!({ "path": "huge", "offset": 2002, "limit": 100 }));
    assert_eq!(found["content"].as_str().unwrap().lines().count(), 100);
    assert_eq!((&found["endLine"], &found["totalLines"]), (&json!(2101), &json!(2101)));
    assert_eq!(found["truncated"], false);
    let found = read(json!({ "path": "huge", "limit": 5 }));
    assert_eq!((found.get("totalLines"), &found["truncated"]), (None, &json!(true)));

    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < MEMORY_KIB, "{peak} KiB");
}

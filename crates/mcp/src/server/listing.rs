//! The tools as the protocol lists them.

use haft_runtime::{ToolError, ToolSpec, to_mcp};
use rmcp::{
    ErrorData,
    model::{ListToolsResult, Tool},
};

use super::callers::ClientRequest;

/// How many tools are listed at once.
const PAGE: usize = 250;

/// No tool has a longer name.
const LONGEST_NAME: usize = 256;

/// The tools behind a cursor, which is the last name of the page before.
pub(super) async fn page(server: &ClientRequest, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    if cursor.as_ref().is_some_and(|last| last.len() > LONGEST_NAME) {
        return Err(ErrorData::invalid_params("the cursor is none that was given here; list without one", None));
    }
    let unknown = |error: ToolError| ErrorData::internal_error(error.message, None);
    let listing = server.ground.catalog.list(&server.caller).await.map_err(unknown)?;
    let offered = listing.offered();
    let first = cursor.map_or(0, |last| offered.partition_point(|tool| tool.spec().name <= last));
    let specs: Vec<ToolSpec> = offered[first..].iter().take(PAGE).map(|tool| tool.spec().clone()).collect();
    let more = offered.len() > first + PAGE;
    let mut result = ListToolsResult::with_all_items(tools(&specs));
    result.next_cursor = specs.last().filter(|_| more).map(|last| last.name.clone());
    Ok(result)
}

/// One that the protocol has no words for, which only a tool of somebody else can be, costs nobody the others.
fn tools(specs: &[ToolSpec]) -> Vec<Tool> {
    let one = |spec: &ToolSpec| serde_json::from_value::<Vec<Tool>>(to_mcp(std::slice::from_ref(spec))).ok();
    specs.iter().filter_map(one).flatten().collect()
}

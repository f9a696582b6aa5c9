//! Whole results, for clients that follow the link of a shortened one.

use haft_runtime::CallId;
use rmcp::{
    ErrorData,
    model::{ReadResourceResponse, ReadResourceResult, ResourceContents},
};
use serde_json::json;

use super::callers::ClientRequest;

const SCHEME: &str = "haft://result/";

/// Where the whole result of a call is.
pub(super) fn address(call: &CallId) -> String {
    format!("{SCHEME}{call}")
}

/// The whole result that an address leads to.
pub(super) async fn read(server: &ClientRequest, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("there is nothing at `{uri}`"), Some(json!({ "uri": uri })));
    let call = uri.strip_prefix(SCHEME).and_then(CallId::parse).ok_or_else(missing)?;
    let found = server.ground.journal.output(&server.caller.scope, &call).await;
    let output = found.map_err(|error| ErrorData::internal_error(error.message, None))?.ok_or_else(missing)?;
    let text = if output.structured.is_null() { output.content } else { output.structured.text().to_owned() };
    let contents = ResourceContents::text(text, uri).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents]).into())
}

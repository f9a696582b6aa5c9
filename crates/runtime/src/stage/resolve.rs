//! Which tool is meant.

use std::sync::Arc;

use serde_json::Value;

use crate::{CallEvent, CallRequest, Catalog, RegisteredTool, ToolError, log::CallLog};

/// The tool is known, and the input speaks its language. Every later station holds one of these.
pub(crate) struct ResolvedCall {
    pub(crate) request: CallRequest,
    pub(crate) tool: Arc<RegisteredTool>,
}

pub(crate) async fn resolve(
    catalog: &dyn Catalog,
    mut request: CallRequest,
    log: &mut CallLog,
) -> Result<ResolvedCall, ToolError> {
    let found = catalog.find(&request.caller.scope, &request.tool).await;
    let tool = match &found {
        Ok(tool) => tool.spec().name.clone(),
        Err(_) => request.tool.clone(),
    };
    let called_as = (tool != request.tool).then(|| request.tool.clone());
    log.resolved(&tool);
    log.note(CallEvent::Called { tool, called_as, args: request.input.clone() });
    let tool = found?;
    rename_parameters(&mut request.input, &tool.spec().parameter_aliases);
    drop_nulls(&mut request.input);
    Ok(ResolvedCall { request, tool })
}

/// A parameter's other name is understood where its own name is not used.
fn rename_parameters(input: &mut Value, aliases: &[(String, String)]) {
    let Value::Object(fields) = input else { return };
    for (other, own) in aliases {
        if !fields.contains_key(own)
            && let Some(value) = fields.shift_remove(other)
        {
            fields.insert(own.clone(), value);
        }
    }
}

/// Models write `null` for what they leave out.
fn drop_nulls(input: &mut Value) {
    if let Value::Object(fields) = input {
        fields.retain(|_, value| !value.is_null());
    }
}

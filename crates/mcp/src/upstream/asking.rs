//! What an upstream server asks in the middle of a call, put to whoever is behind that call.

use haft_runtime::{ErrorCode, Form, FormAnswer, ToolCtx, ToolError};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputResponses};
use serde_json::Value;

use super::secret_filter::SecretFilter;

/// Puts one question, in the server's name: a person must see who asks. An answer that nobody gives is none.
pub(super) async fn put(
    ctx: &ToolCtx,
    filter: &SecretFilter,
    name: Option<&str>,
    asked: ElicitRequestParams,
) -> Result<ElicitResult, ToolError> {
    let server = &filter.name;
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = asked else {
        let message = format!("the MCP server `{server}` wants an address to be opened; haft passes on only forms");
        return Err(ToolError::new(ErrorCode::ExecutionError, message));
    };
    let schema = filter.value(serde_json::to_value(requested_schema).unwrap_or_default());
    let form = Form::new(format!("The MCP server `{server}` asks: {}", filter.text(&message)), schema)?;
    let form = match name {
        Some(name) => form.named(name),
        None => form,
    };
    Ok(match ctx.ask(form).await {
        Ok(FormAnswer::Accepted(filled)) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(filled.values().clone()))
        }
        Ok(FormAnswer::Declined { .. }) => ElicitResult::new(ElicitationAction::Decline),
        Ok(FormAnswer::Cancelled) | Err(_) => ElicitResult::new(ElicitationAction::Cancel),
    })
}

/// Puts everything that a server wants before it goes on, one after the other.
pub(super) async fn put_all(
    ctx: &ToolCtx,
    filter: &SecretFilter,
    asked: InputRequests,
) -> Result<InputResponses, ToolError> {
    let server = &filter.name;
    let mut answers = InputResponses::new();
    for (name, request) in asked {
        let InputRequest::Elicitation(asked) = request else {
            let message = format!(
                "the MCP server `{server}` wants a model or a list of folders of its client in the middle of its work, \
                 which haft does not pass on"
            );
            return Err(ToolError::new(ErrorCode::ExecutionError, message));
        };
        let answer = put(ctx, filter, Some(&name), asked.params).await?;
        answers.insert(name, serde_json::to_value(answer).unwrap_or_default());
    }
    Ok(answers)
}

//! May this caller use this tool.

use crate::{Guard, ToolError, stage::resolve::ResolvedCall};

/// The caller may use the tool. Only this file makes one.
pub(crate) struct AuthorizedCall(ResolvedCall);

impl AuthorizedCall {
    pub(crate) fn into_inner(self) -> ResolvedCall {
        self.0
    }
}

pub(crate) async fn authorize(guard: &dyn Guard, call: ResolvedCall) -> Result<AuthorizedCall, ToolError> {
    guard.permit(&call.request.caller, call.tool.spec()).await?;
    Ok(AuthorizedCall(call))
}

//! May this caller use this tool, and how much of it without asking.

use crate::{Guard, ToolError, log::CallLog, stage::resolve::ResolvedCall};

/// The caller may use the tool. Only this file makes one.
pub(crate) struct AuthorizedCall(ResolvedCall);

impl AuthorizedCall {
    pub(crate) fn into_inner(self) -> ResolvedCall {
        self.0
    }
}

pub(crate) async fn authorize(
    guard: &dyn Guard,
    mut call: ResolvedCall,
    log: &mut CallLog,
) -> Result<AuthorizedCall, ToolError> {
    let request = &mut call.request;
    guard.permit(&request.caller, call.tool.spec()).await?;
    // Nobody lets more happen unasked than they may, whatever they wish for; the journal knows what held.
    request.auto_approve = request.auto_approve.min(guard.most_unasked(&request.caller));
    log.may_happen_unasked(request.auto_approve);
    Ok(AuthorizedCall(call))
}

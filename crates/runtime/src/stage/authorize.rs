//! May this caller use this tool, and how much of it without asking.

use crate::{Doors, ToolError, log::CallLog, stage::resolve::ResolvedCall};

/// The caller may use the tool. Only this file makes one.
pub(crate) struct AuthorizedCall(ResolvedCall);

impl AuthorizedCall {
    pub(crate) fn into_inner(self) -> ResolvedCall {
        self.0
    }
}

pub(crate) async fn authorize(
    doors: &Doors,
    mut call: ResolvedCall,
    log: &mut CallLog,
) -> Result<AuthorizedCall, ToolError> {
    let request = &mut call.request;
    doors.guard.permit(&request.caller, call.tool.spec()).await?;
    // A call that is carried on was counted when it began.
    if !log.is_recorded() {
        doors.guard.begin(&request.caller).await?;
    }
    // Nobody lets more happen unasked than they may, whatever they wish for; the journal knows what held.
    let wished = request.auto_approve.min(doors.guard.most_unasked(&request.caller));
    request.auto_approve = doors.policies.of(&log.scope).await?.mode.unwrap_or(wished);
    log.may_happen_unasked(request.auto_approve);
    Ok(AuthorizedCall(call))
}

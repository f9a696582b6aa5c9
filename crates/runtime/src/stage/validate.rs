//! Does the input fit the schema.

use crate::{
    ToolError,
    issues::issues_of,
    stage::{authorize::AuthorizedCall, resolve::ResolvedCall},
};

/// The input fits the schema. Only this file makes one.
pub(crate) struct ValidCall(ResolvedCall);

impl ValidCall {
    pub(crate) fn into_inner(self) -> ResolvedCall {
        self.0
    }
}

pub(crate) fn validate(call: AuthorizedCall) -> Result<ValidCall, ToolError> {
    let call = call.into_inner();
    let validator = call.tool.input()?;
    if validator.is_valid(&call.request.input) {
        return Ok(ValidCall(call));
    }
    Err(issues_of(call.tool.spec(), validator, &call.request.input))
}

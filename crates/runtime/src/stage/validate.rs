//! Does the input fit the schema, with what it takes from other results.

use crate::{
    Doors, ToolError,
    issues::issues_of,
    references,
    stage::{
        authorize::AuthorizedCall,
        resolve::{ResolvedCall, translate},
    },
};

/// The input fits the schema. Only this file makes one.
pub(crate) struct ValidCall(ResolvedCall);

impl ValidCall {
    pub(crate) fn into_inner(self) -> ResolvedCall {
        self.0
    }
}

pub(crate) async fn validate(doors: &Doors, call: AuthorizedCall) -> Result<ValidCall, ToolError> {
    let mut call = call.into_inner();
    let request = &mut call.request;
    // Whoever gives another input has seen the values; what looks like a reference among them is none.
    if request.edited.is_none() && references::has_any(&request.input) {
        let spec = call.tool.spec();
        request.input = references::filled(doors, &request.caller, &spec.name, request.input.take()).await?;
        translate(&mut request.input, spec, &request.tool)?;
    }
    fitting(call)
}

/// A call that was asked about: its input was whole then, and is not looked into again.
pub(crate) fn validate_again(call: AuthorizedCall) -> Result<ValidCall, ToolError> {
    fitting(call.into_inner())
}

fn fitting(call: ResolvedCall) -> Result<ValidCall, ToolError> {
    let validator = call.tool.input()?;
    if validator.is_valid(&call.request.input) {
        return Ok(ValidCall(call));
    }
    Err(issues_of(call.tool.spec(), validator, &call.request.input))
}

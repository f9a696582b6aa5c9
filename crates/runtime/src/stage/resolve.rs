//! Which tool is meant.

use std::sync::Arc;

use jiff::{civil::Date, tz::TimeZone};
use serde_json::Value;

use crate::{
    CallEvent, CallRequest, CalledAs, Caller, Catalog, ErrorCode, Forward, RegisteredTool, Shown, ToolError, ToolSpec,
    log::CallLog,
};

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
    let today = log.started_at.to_zoned(TimeZone::UTC).date();
    let mut found = find(catalog, &request.caller, &request.tool, &request.input).await;
    let mut handed_on_by = None;
    if let Ok((_, meant)) = &mut found
        && let Some(Forward { tool, input }) = meant.take()
    {
        handed_on_by = Some(std::mem::replace(&mut request.tool, tool));
        request.input = input;
        log.handed_on(&request.input);
    }
    let found = found.and_then(|(tool, _)| unless_removed(tool, &request.tool, today));
    let name = found.as_ref().map_or(&request.tool, |tool| &tool.spec().name);
    log.resolved(name);
    log.called_as = found.as_ref().ok().and_then(|tool| {
        let by = |name: &String| CalledAs::of(tool.spec(), name);
        by(&request.tool).or_else(|| by(handed_on_by.as_ref()?))
    });
    let (called_as, remove_by) =
        log.called_as.as_ref().map_or((None, None), |alias| (Some(alias.name.clone()), alias.remove_by));
    log.note(CallEvent::Called { tool: name.clone(), called_as, remove_by, args: request.input.clone() });
    let tool = found?;
    translate(&mut request.input, tool.spec(), &request.tool)?;
    Ok(ResolvedCall { request, tool })
}

/// The tool that was named, or the one that it hands this call on to, with the call that is meant then.
pub(crate) async fn find(
    catalog: &dyn Catalog,
    caller: &Caller,
    name: &str,
    input: &Value,
) -> Result<(Arc<RegisteredTool>, Option<Forward>), ToolError> {
    let named = catalog.find(caller, name).await?;
    let Some(meant) = named.tool().forward(input) else { return Ok((named, None)) };
    let tool = catalog.find(caller, &meant.tool).await?;
    if tool.shown() == Shown::ForOthers {
        let message = format!("`{}` is not called through `{name}`; call it directly", tool.spec().name);
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    }
    Ok((tool, Some(meant)))
}

/// After its last day an old name is no name any more.
fn unless_removed(tool: Arc<RegisteredTool>, name: &str, today: Date) -> Result<Arc<RegisteredTool>, ToolError> {
    match tool.spec().deprecated_alias(name).filter(|alias| alias.is_removed(today)) {
        Some(removed) => Err(removed.refusal(&tool.spec().name)),
        None => Ok(tool),
    }
}

/// The input in the tool's own words.
pub(crate) fn translate(input: &mut Value, spec: &ToolSpec, called_as: &str) -> Result<(), ToolError> {
    drop_nulls(input);
    rename_parameters(input, spec, called_as)
}

/// A parameter's other name is understood where its own name is not used.
fn rename_parameters(input: &mut Value, spec: &ToolSpec, called_as: &str) -> Result<(), ToolError> {
    let Value::Object(fields) = input else { return Ok(()) };
    let own = |(other, value): (&String, &Value)| Some((other.clone(), spec.own_parameter(called_as, other, value)?));
    let renamed: Vec<_> = fields.iter().filter_map(own).collect();
    for (other, (own, value)) in renamed {
        fields.shift_remove(&other);
        // Whoever says the same twice has said it.
        if fields.insert(own.clone(), value.clone()).is_some_and(|given| given != value) {
            let message = format!("`{other}` is another name of `{own}`, and both were given; give only `{own}`");
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
    }
    Ok(())
}

/// Models write `null` for what they leave out.
fn drop_nulls(input: &mut Value) {
    if let Value::Object(fields) = input {
        fields.retain(|_, value| !value.is_null());
    }
}

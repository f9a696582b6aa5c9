//! Which tool is meant.

use std::{sync::Arc, task::Poll};

use futures_util::poll;
use jiff::{civil::Date, tz::TimeZone};
use serde_json::Value;

use crate::{
    CallEvent, CallRequest, CallState, CalledAs, Caller, Catalog, Doors, Effect, ErrorCode, Forward, RegisteredTool,
    Shown, ToolError, ToolSpec, Trial,
    log::CallLog,
    work::{Limit, OutputRelease, Work},
};

/// The tool is known, and the input speaks its language. Every later station holds one of these.
pub(crate) struct ResolvedCall {
    pub(crate) request: CallRequest,
    pub(crate) tool: Arc<RegisteredTool>,
}

pub(crate) async fn resolve(
    doors: &Doors,
    mut request: CallRequest,
    log: &mut CallLog,
) -> Result<ResolvedCall, ToolError> {
    let today = log.started_at.to_zoned(TimeZone::UTC).date();
    let mut found = look_up(doors, &request, log).await;
    let mut handed_on_by = None;
    if let Ok(named) = &found
        && let Some(Forward { tool, input }) = named.tool().forward(&request.input)
    {
        let meant = CallRequest { tool, input, ..request.clone() };
        // A call that has to wait is recorded as the one that is meant.
        log.resolved(&meant.tool);
        log.handed_on(&meant.input);
        found = look_up(doors, &meant, log).await.and_then(|tool| unless_for_others(tool, &request.tool));
        match &found {
            Ok(_) => handed_on_by = Some(std::mem::replace(&mut request, meant).tool),
            Err(_) => log.handed_on(&request.input),
        }
    }
    let found = found.and_then(|tool| unless_removed(tool, &request.tool, today));
    let name = found.as_ref().map_or(&request.tool, |tool| &tool.spec().name);
    log.resolved(name);
    log.called_as = found.as_ref().ok().and_then(|tool| {
        let by = |name: &String| CalledAs::of(tool.spec(), name);
        by(&request.tool).or_else(|| by(handed_on_by.as_ref()?))
    });
    let (called_as, remove_by) =
        log.called_as.as_ref().map_or((None, None), |alias| (Some(alias.name.clone()), alias.remove_by));
    let (tool, args, test) = (name.clone(), request.input.clone(), request.caller.via.trial.is_some());
    log.note(CallEvent::Called { tool, called_as, remove_by, args, test });
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
    Ok((unless_for_others(tool, name)?, Some(meant)))
}

/// Looks for the tool of a call. A server that must be started first may keep it waiting: that wait is the call's own, so
/// that it is seen, limited and stopped like any other work.
async fn look_up(doors: &Doors, request: &CallRequest, log: &mut CallLog) -> Result<Arc<RegisteredTool>, ToolError> {
    if request.caller.via.trial == Some(Trial::Draft) {
        // What was saved under the same name since is something else than what was tried.
        return request.draft.clone().ok_or_else(|| {
            let message = format!("the draft of `{}` is gone: it was saved nowhere; try it again", request.tool);
            ToolError::new(ErrorCode::Interrupted, message)
        });
    }
    let mut found = doors.catalog.find(&request.caller, &request.tool);
    if let Poll::Ready(found) = poll!(&mut found) {
        return found;
    }
    let longest = doors.limits.longest_work;
    let work = Work {
        request,
        limit: Limit::from_now(request.timeout.map_or(longest, |limit| limit.min(longest)), log),
        idle: None,
        doors,
        state: CallState::Preparing,
        heard: OutputRelease::AtOnce,
        effect: Effect::Read,
    };
    work.run(log, |_ctx| found).await
}

/// What leads to others is not led to itself.
fn unless_for_others(tool: Arc<RegisteredTool>, by: &str) -> Result<Arc<RegisteredTool>, ToolError> {
    if tool.shown() == Shown::ForOthers {
        let message = format!("`{}` is not called through `{by}`; call it directly", tool.spec().name);
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    }
    Ok(tool)
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

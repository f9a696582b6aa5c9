//! One call at a gateway: begun once, followed by its events, ended or left to others.

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{CallEvent, CallId, CallRequest, ErrorCode, Outcome, ToolError};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Remote,
    client::{AWAY, encoded},
    events::{RemoteEvent, RemoteEvents},
    read,
};

/// How soon something is looked for again that is not in the journal yet.
const NOT_YET: Duration = Duration::from_millis(50);

impl Remote {
    /// Begins a call, and gives the id that the server has for it. The same request is sent again where the answer never
    /// came, and the server knows it by its key.
    pub(crate) async fn begin(&self, request: &CallRequest) -> Result<CallId> {
        let mut body = json!({"input": request.input, "detach": true, "noCache": request.fresh});
        if let Some(workspace) = request.caller.scope.workspace() {
            body["workspace"] = json!(workspace);
        }
        if let Some(timeout) = request.timeout {
            body["timeoutMs"] = json!(timeout.as_millis());
        }
        let sent = self.client.post(&format!("/api/tools/{}/calls", encoded(&request.tool)), &body).await?;
        read(sent["tool_call_id"].clone())
    }

    /// Sees a call through to its end, or until it was waited for as long as the request says. Its events are told to the
    /// listener of the request as they come.
    pub(crate) async fn finish(&self, mut call: CallId, request: CallRequest) -> Result<Outcome> {
        let mut events = self.events_of(&call);
        let (mut until, mut stopped): (Option<Instant>, bool) = (None, false);
        let mut child_since: Option<Instant> = None;
        loop {
            let event = tokio::select! {
                event = events.next() => match event {
                    Ok(event) => event,
                    // Whoever may not listen still learns how it ends.
                    Err(err) if has_code(&err, ErrorCode::Forbidden) => return self.settled(&call).await,
                    // A call is told to go on as another one before the journal has that one.
                    Err(err)
                        if has_code(&err, ErrorCode::NotFound)
                            && child_since.is_some_and(|since| since.elapsed() < AWAY) =>
                    {
                        sleep(NOT_YET).await;
                        continue;
                    }
                    Err(err) => return Err(err.context(format!("{call} goes on; `haft wait {call}` waits for it"))),
                },
                () = request.cancel.cancelled(), if !stopped => {
                    stopped = true;
                    self.stop(&call).await?;
                    continue;
                }
                () = request.hand_back.cancelled() => return self.standing(&call).await,
                () = reached(until) => return self.standing(&call).await,
            };
            let told = event.of_journal();
            if let (Some(listener), Some(told)) = (&request.listener, &told) {
                listener(told);
            }
            if let Some(CallEvent::Approved { continued_as: Some(child), .. }) = told {
                // Somebody gave another input: that one goes on in its place.
                events = self.events_of(&child);
                (call, child_since) = (child, Some(Instant::now()));
                continue;
            }
            match stage_of(&event) {
                CallStage::Over => return self.settled(&call).await,
                CallStage::Waits => until = until.or(Some(Instant::now() + request.wait)),
                CallStage::GoesOn => until = None,
                CallStage::Unchanged => {}
            }
        }
    }

    fn events_of(&self, call: &CallId) -> RemoteEvents<'_> {
        RemoteEvents::new(&self.client, format!("/api/calls/{call}/events"))
    }

    /// Stops a call that may just have ended by itself.
    async fn stop(&self, call: &CallId) -> Result<()> {
        match self.cancel(call).await {
            Ok(_) => Ok(()),
            Err(err) => match err.downcast_ref::<ToolError>().map(|error| error.code) {
                Some(ErrorCode::Conflict | ErrorCode::Busy) => Ok(()),
                Some(_) | None => Err(err),
            },
        }
    }
}

/// Where an event leaves a call.
enum CallStage {
    Over,
    /// It waits for somebody.
    Waits,
    /// It was answered.
    GoesOn,
    Unchanged,
}

fn stage_of(event: &RemoteEvent) -> CallStage {
    let is_late = event.data["late"] == true;
    match event.name.as_str() {
        "tool.completed" | "tool.failed" | "tool.cancelled" | "tool.rejected" | "tool.interrupted" if !is_late => {
            CallStage::Over
        }
        "tool.needs_approval" | "tool.pending" => CallStage::Waits,
        "tool.approved" | "tool.started" => CallStage::GoesOn,
        _ => CallStage::Unchanged,
    }
}

fn has_code(err: &anyhow::Error, code: ErrorCode) -> bool {
    err.downcast_ref::<ToolError>().is_some_and(|error| error.code == code)
}

async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

//! Everything that can be done without leaving a trace, so that the decision is made on evidence.

use crate::{
    About, Asks, AutoApprove, CallState, Doors, Effect, ErrorCode, Evidence, Limits, Prepared, Question, ToolError,
    log::CallLog,
    ran::CallFailure,
    stage::{resolve::ResolvedCall, validate::ValidCall},
    work::{Limit, OutputRelease, Work},
};

/// What the call does is known as far as it can be. Only this file makes one.
pub(crate) struct PreparedCall {
    call: ResolvedCall,
    effect: Effect,
    evidence: Evidence,
}

impl PreparedCall {
    pub(crate) fn call(&self) -> &ResolvedCall {
        &self.call
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    pub(crate) fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    pub(crate) fn into_parts(self) -> (ResolvedCall, Effect, Evidence) {
        (self.call, self.effect, self.evidence)
    }
}

pub(crate) async fn prepare(doors: &Doors, call: ValidCall, log: &mut CallLog) -> Result<PreparedCall, CallFailure> {
    let call = call.into_inner();
    let told = call.tool.tool().effect(&call.request.input);
    let work = Work {
        request: &call.request,
        limit: work_limit(&doors.limits, &call, log),
        idle: doors.limits.idle,
        doors,
        state: CallState::Preparing,
        heard: heard(&call),
        effect: told,
    };
    let prepared = work
        .run(log, |ctx| {
            let (tool, input) = (&call.tool, &call.request.input);
            async move { tool.tool().prepare(&ctx, input).await }
        })
        .await?;
    Ok(match prepared {
        Prepared::Staged { output, changes, turn, isolation } => {
            // A command has been run by now.
            if let Some(isolation) = isolation {
                log.has_begun();
                log.isolation = isolation;
            }
            log.staged(&changes, &turn);
            let effect = changes.effect();
            PreparedCall { call, effect, evidence: Evidence::Staged { output, changes, turn, isolation } }
        }
        Prepared::Plain(described) => PreparedCall { call, effect: told, evidence: Evidence::Plain(described) },
        Prepared::CutShort(cut) => {
            log.has_begun();
            log.staged(&cut.changes, &cut.turn);
            return Err(cut.into());
        }
    })
}

/// Where even a read is asked for, what it says stays here until the yes.
fn heard(call: &ResolvedCall) -> OutputRelease {
    match (call.request.auto_approve, call.tool.spec().asks) {
        (_, Asks::Always) | (AutoApprove::Nothing, Asks::ByEffect | Asks::OnlyToDestroy) => OutputRelease::AfterTheYes,
        (AutoApprove::Nothing, Asks::NeverForReads) | (AutoApprove::Reads | AutoApprove::Everything, _) => {
            OutputRelease::AtOnce
        }
    }
}

/// A call whose question was put by a process that is gone: the evidence is the one that was stored with it.
pub(crate) fn prepared_before(
    call: ValidCall,
    question: Question,
    log: &mut CallLog,
) -> Result<PreparedCall, ToolError> {
    log.questions = question.number;
    let About::Approval(evidence) = question.about else {
        let message = format!("{} waited for a form in a process that is gone; call it anew", question.call);
        return Err(ToolError::new(ErrorCode::Interrupted, message));
    };
    if let Evidence::Staged { turn, isolation, .. } = &evidence {
        log.turn = Some(turn.clone());
        log.isolation = isolation.unwrap_or(log.isolation);
    }
    Ok(PreparedCall { call: call.into_inner(), effect: question.effect, evidence })
}

/// The caller's limit or the tool's own, and never more than the house allows.
pub(crate) fn work_limit(limits: &Limits, call: &ResolvedCall, log: &CallLog) -> Limit {
    Limit::from_now(call.request.timeout.unwrap_or(call.tool.spec().timeout).min(limits.longest_work), log)
}

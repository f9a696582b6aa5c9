//! What an answer sets going: a waiting call is carried on by its owner, or by whoever answered.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    About, Answer, Answered, CallId, CallListener, CallRecord, CallRequest, CallState, Caller, ChangeList, ChangeState,
    ErrorCode, Outcome, Permissions, Pipeline, Question, Recovered, Scope, ToolError, Turn,
    answers::withdraw,
    await_result::ended_elsewhere,
    log::CallLog,
    stage::{
        approve::{Declined, apply_answer},
        authorize::authorize,
        execute::{Executed, execute},
        prepare::prepared_before,
        record::Ending,
        resolve::resolve,
        validate::validate,
    },
};

/// How long one look for an outcome or a dead owner lasts.
const ONE_LOOK: Duration = Duration::from_millis(250);

/// Who follows a call that this process may carry on.
#[derive(Clone, Default)]
pub struct Follower {
    /// Stops the call where it is carried on here, and the wait for it where it is not.
    pub cancel: CancellationToken,
    /// Told of every event of a call that is carried on here.
    pub listener: Option<CallListener>,
}

impl Pipeline {
    /// Sees an answered call to its end. The owner may die at any moment, so this keeps trying, bounded.
    pub async fn carry(&self, scope: &Scope, call: &CallId, follower: Follower) -> Result<Outcome, ToolError> {
        let patience = tokio::time::Instant::now() + self.doors.limits.longest_work + ONE_LOOK;
        loop {
            if self.doors.questions.claim(scope, call).await? {
                return self.resume(scope, call, follower).await;
            }
            if let Some(outcome) = self.doors.journal.ended(scope, call, ONE_LOOK).await? {
                return Ok(outcome);
            }
            if follower.cancel.is_cancelled() || tokio::time::Instant::now() >= patience {
                break;
            }
            self.recover().await?;
        }
        let message =
            format!("the answer to {call} counts, but its owner has not ended it; see `haft log show {call}`");
        Err(ToolError::new(ErrorCode::Busy, message))
    }

    /// Carries on a call that this process has claimed. It is resolved, authorized and validated again,
    /// then decided on the stored evidence. One that waited for a result has it now, and nothing is run.
    async fn resume(&self, scope: &Scope, call: &CallId, follower: Follower) -> Result<Outcome, ToolError> {
        let gone = || ToolError::new(ErrorCode::InvalidArgs, format!("there is no call {call} that waits"));
        let record = self.doors.journal.find(scope, call).await?.ok_or_else(gone)?;
        let Some((question, Some(answered))) = self.doors.questions.find(scope, call).await? else {
            return Err(gone());
        };
        let started_at = record.opening.at;
        let mut request = request_of(record);
        // Under its own name a tool does not understand what an old name's parameters were called.
        request.input.clone_from(&question.input);
        request.cancel = follower.cancel;
        request.listener = follower.listener;
        tracing::info!(call = %request.id, tool = request.tool, "call resumed after its answer");
        let mut log = CallLog::resumed(&request, started_at);
        if let About::Result(awaited) = &question.about {
            let executed = ended_elsewhere(&question, awaited, answered, &mut log);
            return Ok(self.end(&mut log, Ending::Executed(executed)).await);
        }
        let caller = &mut request.caller;
        // What they may do is looked up again: a key may be revoked by now.
        let walked = match self.doors.guard.permissions_of(&caller.scope, &caller.record()).await {
            Ok(permissions) => {
                caller.permissions = permissions;
                self.walk_again(request.clone(), question, answered, &mut log).await
            }
            Err(refused) => Err(refused.into()),
        };
        Ok(self.close(walked, request, &mut log).await)
    }

    async fn walk_again(
        &self,
        request: CallRequest,
        question: Question,
        answered: Answered,
        log: &mut CallLog,
    ) -> Result<Executed, Declined> {
        let doors = &*self.doors;
        let call = resolve(doors, request, log).await?;
        log.forget_the_call_event();
        log.called_as.clone_from(&question.called_as);
        let call = authorize(&*doors.guard, call, log).await?;
        let call = validate(call)?;
        let call = prepared_before(call, question, log)?;
        let call = apply_answer(doors, call, answered, log).await?;
        execute((doors, &self.cache), call, log).await
    }

    /// Ends what a dead process left behind, and carries on what it had been answered. Never touches a live call.
    pub async fn recover(&self) -> Result<(), ToolError> {
        let house = &self.doors.house;
        for record in self.doors.journal.abandoned(house).await? {
            self.interrupted(record).await?;
        }
        for (scope, call) in self.doors.questions.answered(house).await? {
            // Whoever had answered it, or was to carry it on, is gone.
            if self.doors.questions.claim(&scope, &call).await? {
                self.resume(&scope, &call, Follower::default()).await?;
            }
        }
        Ok(())
    }

    async fn interrupted(&self, record: CallRecord) -> Result<(), ToolError> {
        let (state, turn, at) = (record.state, record.turn.clone(), record.opening.at);
        let foreseen = record.outcome.clone().filter(|_| state == CallState::Executing);
        let own = record.call.clone();
        self.put_away(&record.scope, &own).await?;
        let request = request_of(record);
        let mut log = CallLog::resumed(&request, at);
        log.turn.clone_from(&turn);
        let DeadCall { sentence, turned, left } = self.heal(&log.scope, (state, turn.as_ref()), &own).await;
        if let (Some(turn), Some(turned)) = (&turn, &turned) {
            log.note(turn.event(turned));
        }
        if let (None, Some(left)) = (&turn, &left) {
            log.staged(left, &Turn::commit(own));
        }
        let ending = match (foreseen, turned) {
            (Some(foreseen), Some(turned)) => Ending::AsForeseen { foreseen: Box::new(foreseen), turned },
            (_, turned) => Ending::Interrupted { sentence, changes: turned.or(left) },
        };
        self.end(&mut log, ending).await;
        Ok(())
    }

    /// What a dead process had asked can no longer be answered.
    async fn put_away(&self, scope: &Scope, call: &CallId) -> Result<(), ToolError> {
        if let Some((question, None)) = self.doors.questions.find(scope, call).await? {
            let haft = Caller::house(scope).who();
            withdraw(&self.doors, scope, &question, (Answer::Cancel, haft)).await?;
        }
        Ok(())
    }

    /// A call that was only preparing has touched nothing; one that was acting is brought to its beginning or its end,
    /// and what it had staged by then stays so.
    async fn heal(&self, scope: &Scope, stood: (CallState, Option<&Turn>), own: &CallId) -> DeadCall {
        match stood {
            (CallState::Executing, Some(turn)) => {
                // What cannot be healed now (the folder is gone) heals itself when its changes are next looked at.
                match self.doors.workbench.recover(scope, turn).await {
                    Ok(Recovered { sentence, done }) if done.0.is_empty() => {
                        let left = if turn.of == *own { self.still_staged(scope, own).await } else { None };
                        DeadCall::nothing_turned(sentence, left)
                    }
                    Ok(Recovered { sentence, done }) => DeadCall { sentence, turned: Some(done), left: None },
                    Err(error) => {
                        let sentence = format!("what it had changed could not be looked at: {}", error.message);
                        DeadCall::nothing_turned(sentence, None)
                    }
                }
            }
            (CallState::Executing, None) => {
                let sentence = "it was acting on something outside, and may or may not have happened".to_owned();
                let left = self.still_staged(scope, own).await;
                if left.is_none() {
                    let _ = self.doors.workbench.discard(scope, own).await;
                }
                DeadCall::nothing_turned(sentence, left)
            }
            (CallState::Preparing | CallState::Waiting | CallState::Ended, _) => {
                // There may be nothing to drop, or only half a plan: neither was ever in the workspace.
                let _ = self.doors.workbench.discard(scope, own).await;
                DeadCall::nothing_turned("it had not acted yet; nothing was changed".to_owned(), None)
            }
        }
    }

    /// What the call has set aside, as far as that was finished.
    async fn still_staged(&self, scope: &Scope, own: &CallId) -> Option<ChangeList> {
        let mut staged = self.doors.workbench.show(scope, own).await.ok()?;
        staged.0.retain(|change| change.state == ChangeState::Staged);
        Some(staged).filter(|staged| !staged.0.is_empty())
    }
}

/// What a dead process left of a call.
struct DeadCall {
    sentence: String,
    /// What is in the workspace because of its turn.
    turned: Option<ChangeList>,
    /// What is only staged.
    left: Option<ChangeList>,
}

impl DeadCall {
    fn nothing_turned(sentence: String, left: Option<ChangeList>) -> Self {
        Self { sentence, turned: None, left }
    }
}

/// The call as it was asked for. Its caller may do nothing until the guard says what.
fn request_of(record: CallRecord) -> CallRequest {
    let caller = record.opening.caller.with(record.scope, Permissions::none());
    let mut request = CallRequest::new(caller, record.opening.tool, record.opening.input);
    request.id = record.call;
    request.parent = record.opening.parent;
    request.auto_approve = record.opening.auto_approve;
    request
}

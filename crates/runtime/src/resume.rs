//! What an answer sets going: a waiting call is carried on by its owner, or by whoever answered.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    About, Answer, Answered, CallId, CallListener, CallRecord, CallRequest, CallState, Caller, CallerKind, ChangeList,
    ChangeState, ClaimResult, ErrorCode, Outcome, Permissions, Pipeline, Question, Recovered, Scope, ToolError, Turn,
    Within,
    answers::withdraw,
    await_result::ended_elsewhere,
    current_trace,
    in_hand::CallInHand,
    log::CallLog,
    stage::{
        approve::{Declined, apply_answer},
        authorize::authorize,
        execute::{Executed, execute},
        prepare::prepared_before,
        record::Ending,
        resolve::resolve,
        validate::validate_again,
    },
    trace::{stage, tell, traced},
};

/// How long one look for an outcome or a dead owner lasts.
const ONE_LOOK: Duration = Duration::from_millis(250);
/// How long a call is waited for that another node carries on. That node may be down for days.
const OTHER_NODE: Duration = Duration::from_secs(5);
/// How many answered calls are carried on in the background at once.
const AT_ONCE: usize = 32;

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
        if !self.can_carry(scope, call).await? {
            return self.carried_elsewhere(scope, call, "the server that it came from").await;
        }
        loop {
            if let Some(in_hand) = self.in_hand.take(call) {
                match self.doors.questions.claim(scope, call).await? {
                    ClaimResult::Claimed => return self.resume(scope, call, follower).await,
                    ClaimResult::OfNode(node) => {
                        let who = format!("node {node}, where its workspace lives,");
                        return self.carried_elsewhere(scope, call, &who).await;
                    }
                    ClaimResult::NotClaimed => drop(in_hand),
                }
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

    /// The outcome of a call that another process carries on, if it does so soon.
    async fn carried_elsewhere(&self, scope: &Scope, call: &CallId, who: &str) -> Result<Outcome, ToolError> {
        let message = format!("the answer to {call} counts; {who} carries it on");
        let outcome = self.doors.journal.ended(scope, call, OTHER_NODE).await?;
        outcome.ok_or_else(|| ToolError::new(ErrorCode::Busy, message))
    }

    /// Whether this house can carry a call on. Commands on a server's machine know its owner alone: what keys and people
    /// may do, and which tools they have, the server knows.
    async fn can_carry(&self, scope: &Scope, call: &CallId) -> Result<bool, ToolError> {
        if *self.doors.house.carries() == Within::Everything {
            return Ok(true);
        }
        let Some((question, _)) = self.doors.questions.find(scope, call).await? else { return Ok(true) };
        let is_own = matches!(question.asked_by.id.kind, CallerKind::Owner | CallerKind::House);
        Ok(is_own || question.wants_a_result())
    }

    /// Takes a waiting call over and in hand, if no living process has it and it can be carried on here.
    pub(crate) async fn claim(&self, scope: &Scope, call: &CallId) -> Result<Option<CallInHand>, ToolError> {
        let Some(in_hand) = self.in_hand.take(call) else { return Ok(None) };
        if !self.can_carry(scope, call).await? {
            return Ok(None);
        }
        let claimed = self.doors.questions.claim(scope, call).await?;
        Ok((claimed == ClaimResult::Claimed).then_some(in_hand))
    }

    /// Carries on a call that this process has claimed. It is resolved, authorized and validated again,
    /// then decided on the stored evidence. One that waited for a result has it now, and nothing is run.
    pub(crate) async fn resume(&self, scope: &Scope, call: &CallId, follower: Follower) -> Result<Outcome, ToolError> {
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
        let (parent, input) = (current_trace(), self.doors.spans.is_some().then(|| request.input.clone()));
        let caller = &mut request.caller;
        // What they may do is looked up again: a key may be revoked by now.
        let permissions = self.doors.guard.permissions_of(&caller.scope, &caller.record()).await;
        // On the heap: whoever answers is deep in other work already.
        let walk = Box::pin(async {
            let walked = match permissions {
                Ok(permissions) => {
                    request.caller.permissions = permissions;
                    self.walk_again(request.clone(), question, answered, &mut log).await
                }
                Err(refused) => Err(refused.into()),
            };
            self.close(walked, request, &mut log).await
        });
        let (outcome, span) = traced(self.doors.spans.as_ref(), parent, walk).await;
        tell(span, &outcome, log.effect, input.as_ref());
        Ok(outcome)
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
        let call = authorize(doors, call, log).await?;
        let call = validate_again(call)?;
        let call = prepared_before(call, question, log)?;
        let call = apply_answer(doors, call, answered, log).await?;
        stage(doors.spans.as_ref(), "execute", execute((doors, &self.cache), call, log)).await
    }

    /// Ends what a dead process left behind, or this one let go, and carries on what was answered of it. Never touches a
    /// live call. What fails is found again by the next look.
    pub async fn recover(&self) -> Result<(), ToolError> {
        self.end_abandoned().await?;
        for (scope, call) in self.doors.questions.answered(&self.doors.house).await? {
            // Whoever had answered it, or was to carry it on, is gone.
            let Some(_in_hand) = self.claim(&scope, &call).await? else { continue };
            if let Err(error) = self.resume(&scope, &call, Follower::default()).await {
                tracing::warn!(%call, error = error.message, "an answered call was not carried on");
            }
        }
        Ok(())
    }

    /// The same for a process that goes on meanwhile: what is carried on may take its time, and `finish` waits for it.
    /// What is too much at once is left to the next look.
    pub async fn recover_in_background(&self) -> Result<(), ToolError> {
        self.end_abandoned().await?;
        for (scope, call) in self.doors.questions.answered(&self.doors.house).await? {
            if self.in_background() >= AT_ONCE {
                break;
            }
            if let Some(in_hand) = self.claim(&scope, &call).await? {
                let line = self.clone();
                self.carry_in_background(async move {
                    let _in_hand = in_hand;
                    if let Err(error) = line.resume(&scope, &call, Follower::default()).await {
                        tracing::warn!(%call, error = error.message, "an answered call was not carried on");
                    }
                });
            }
        }
        Ok(())
    }

    async fn end_abandoned(&self) -> Result<(), ToolError> {
        let (house, journal) = (&self.doors.house, &self.doors.journal);
        let mut left = journal.abandoned(house).await?;
        left.extend(journal.let_go(house, &self.in_hand).await?);
        for record in left {
            let call = record.call.clone();
            if let Err(error) = self.interrupted(record).await {
                tracing::warn!(%call, error = error.message, "a call that was cut off could not be ended");
            }
        }
        Ok(())
    }

    async fn interrupted(&self, record: CallRecord) -> Result<(), ToolError> {
        let Some(_in_hand) = self.in_hand.take(&record.call) else { return Ok(()) };
        let found = self.doors.journal.find(&record.scope, &record.call).await?;
        if found.is_none_or(|now| now.state == CallState::Ended) {
            return Ok(());
        }
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

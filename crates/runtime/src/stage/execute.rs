//! Commit what was staged, or run what could only be described.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    ApprovedBy, CallEvent, CallRequest, CallState, ChangeList, Doors, Effect, Entry, ErrorCode, Evidence, Isolation,
    PartialWork, Ran, Stamp, ToolCtx, ToolError, ToolOutput, Turn, WaitFor,
    await_result::await_result,
    cache::{Cache, CacheKey},
    log::CallLog,
    policy::covered_by_the_run,
    ran::CallFailure,
    retry::{self, Repeat},
    stage::{
        approve::{Approval, ApprovedCall, Declined},
        prepare::work_limit,
        record::foreseen,
        resolve::ResolvedCall,
    },
    work::{OutputRelease, Work},
};

/// The work is done. Only this file makes one.
#[derive(Clone)]
pub(crate) struct CompletedWork {
    pub(crate) output: ToolOutput,
    pub(crate) changes: Option<ChangeList>,
    pub(crate) isolation: Isolation,
}

/// What became of an approved call, and who had approved it.
pub(crate) struct Executed {
    pub(crate) approval: Approval,
    pub(crate) result: Result<CompletedWork, CallFailure>,
}

/// What a run came to.
enum RunEnd {
    Done(CompletedWork),
    /// Somebody outside gives the result.
    Waits(WaitFor),
}

/// The doors, and what this process has read.
type ExecutionDeps<'a> = (&'a Doors, &'a Cache);

pub(crate) async fn execute(
    house: ExecutionDeps<'_>,
    call: ApprovedCall,
    log: &mut CallLog,
) -> Result<Executed, Declined> {
    let (call, effect, evidence, approval) = call.into_parts();
    let result = match evidence {
        Evidence::Staged { output, changes, turn, isolation } => match conforming(&call, output) {
            // Nothing is committed whose result could not be handed out.
            Err(error) => Err(error.into()),
            Ok(output) => {
                let isolation = isolation.unwrap_or(Isolation::None);
                let done = CompletedWork { output, changes: Some(changes), isolation };
                commit(house.0, &turn, done, &approval, log).await.map_err(CallFailure::from)
            }
        },
        Evidence::Plain(described) => match run(house, &call, effect, &approval, log).await {
            Ok(RunEnd::Waits(wait)) => return await_result(house.0, (&call, effect), (wait, approval), log).await,
            Ok(RunEnd::Done(done)) => Ok(done),
            Err(failure) => Err(failure.behind(described.isolation)),
        },
    };
    Ok(Executed { approval, result })
}

/// Brings in what was staged and shown.
async fn commit(
    doors: &Doors,
    turn: &Turn,
    done: CompletedWork,
    approval: &Approval,
    log: &mut CallLog,
) -> Result<CompletedWork, ToolError> {
    if done.changes.as_ref().is_none_or(|staged| staged.0.is_empty()) {
        return take_nothing(doors, turn, done, log).await;
    }
    log.has_begun();
    let mut done = take(doors, turn, done, approval, log).await?;
    // Whoever said yes to some of the paths has left the others.
    if let (Some(_), Some(changes)) = (&turn.paths, &done.changes) {
        done.output.tell_of_what_is_left(&turn.of, &changes.staged_paths());
    }
    Ok(done)
}

/// A command that changed nothing in the workspace may have caches of its own, which are kept by the same yes.
async fn take_nothing(
    doors: &Doors,
    turn: &Turn,
    done: CompletedWork,
    log: &mut CallLog,
) -> Result<CompletedWork, ToolError> {
    if done.isolation > Isolation::None {
        log.has_begun();
        doors.workbench.take(&log.scope, turn).await?;
    }
    Ok(done)
}

/// Everything but the turn itself is known before it is taken, so the journal gets the foreseen end together with
/// the beginning. Once the turn is taken the answer need not wait for the journal again: after a crash, recovery
/// sees that it was taken and ends the call as foreseen.
async fn take(
    doors: &Doors,
    turn: &Turn,
    mut done: CompletedWork,
    approval: &Approval,
    log: &mut CallLog,
) -> Result<CompletedWork, ToolError> {
    log.turn = Some(turn.clone());
    let (outcome, whole) = foreseen(&doors.limits, log, approval.clone(), done.clone());
    let entry = Entry { outcome: Some(Arc::new(outcome)), whole_output: whole, ..log.entry(CallState::Executing) };
    doors.journal.record(&log.scope, entry).await?;
    // Once begun, a turn is finished: nothing cancels it half-way.
    let begun = std::time::Instant::now();
    let turned = doors.workbench.take(&log.scope, turn).await;
    log.worked += begun.elapsed();
    let turned = turned?;
    log.note(turn.event(&turned));
    log.ends_as_foreseen = true;
    done.changes = done.changes.map(|staged| staged.updated(turned));
    Ok(done)
}

async fn run(
    (doors, cache): ExecutionDeps<'_>,
    call: &ResolvedCall,
    effect: Effect,
    approval: &Approval,
    log: &mut CallLog,
) -> Result<RunEnd, CallFailure> {
    let acts = effect != Effect::Read;
    let work = Work {
        request: &call.request,
        limit: work_limit(&doors.limits, call, log),
        idle: doors.limits.idle,
        doors,
        // What only reads is, to everybody else, still being looked at: it can be stopped and leaves nothing.
        state: if acts { CallState::Executing } else { CallState::Preparing },
        heard: OutputRelease::AtOnce,
        effect,
    };
    let ran = if acts {
        act(doors, &work, call, log).await?
    } else if may_be_remembered(&call.request, approval) {
        read_or_remember(cache, &work, call, log).await?
    } else {
        log.attempt();
        attempts(&work, call, Repeat::Safe, log).await?
    };
    match ran {
        Ran::Done { output, isolation, staged } => {
            let done = CompletedWork { output, changes: None, isolation: isolation.unwrap_or(Isolation::None) };
            let Some((changes, turn)) = staged else { return Ok(RunEnd::Done(done)) };
            log.staged(&changes, &turn);
            let policy = doors.policies.of(&log.scope).await?;
            // Nobody said yes to a change by what was to be a read.
            let (covered, left) =
                changes.parted_by(|change| acts && covered_by_the_run(&policy, call.tool.spec(), change));
            let mut done = CompletedWork { changes: Some(changes), ..done };
            done.output.tell_of_what_is_left(&log.call, &left);
            commit_the_run(doors, done, (turn, covered), approval, log).await.map(RunEnd::Done)
        }
        Ran::Waits(wait) => Ok(RunEnd::Waits(wait)),
        Ran::CutShort(cut) => {
            log.staged(&cut.changes, &cut.turn);
            Err(cut.into())
        }
    }
}

/// Takes what the yes to the run covers; what cannot be taken stays staged with the rest.
async fn commit_the_run(
    doors: &Doors,
    done: CompletedWork,
    (whole, covered): (Turn, Vec<String>),
    approval: &Approval,
    log: &mut CallLog,
) -> Result<CompletedWork, CallFailure> {
    if done.changes.as_ref().is_none_or(|staged| staged.0.is_empty()) {
        return Ok(take_nothing(doors, &whole, done, log).await?);
    }
    if covered.is_empty() {
        return Ok(done);
    }
    let (changes, isolation) = (done.changes.clone().unwrap_or_default(), Some(done.isolation));
    let turn = Turn { paths: Some(covered), ..whole.clone() };
    let taken = take(doors, &turn, done, approval, log).await;
    taken.map_err(|error| PartialWork { error, changes, turn: whole, isolation }.into())
}

/// An answer that is kept and still holds, or a new one, which is kept if its stamp was the same before and after.
async fn read_or_remember(
    cache: &Cache,
    work: &Work<'_>,
    call: &ResolvedCall,
    log: &mut CallLog,
) -> Result<Ran<ToolOutput>, ToolError> {
    let Some(before) = stamp(work, call, log).await? else {
        log.attempt();
        return attempts(work, call, Repeat::Safe, log).await;
    };
    let key = CacheKey::of(&call.request, call.tool.spec());
    if let Some(output) = cache.find(&key, &before) {
        log.cached = true;
        return Ok(Ran::plain(output));
    }
    log.attempt();
    let questions = log.questions;
    let ran = attempts(work, call, Repeat::Safe, log).await?;
    // What somebody was asked for is theirs to say anew.
    if let Ran::Done { output, staged: None, .. } = &ran
        && log.questions == questions
        && stamp(work, call, log).await.is_ok_and(|after| after.as_ref() == Some(&before))
    {
        cache.keep(&key, before, output);
    }
    Ok(ran)
}

/// Invariant: the journal is durable before a call acts on anything but its own throw-away copy.
async fn act(
    doors: &Doors,
    work: &Work<'_>,
    call: &ResolvedCall,
    log: &mut CallLog,
) -> Result<Ran<ToolOutput>, ToolError> {
    log.attempt();
    let entry = log.entry(CallState::Executing);
    doors.journal.record(&log.scope, entry).await?;
    let twice = if call.tool.spec().idempotent { Repeat::Safe } else { Repeat::Unsafe };
    attempts(work, call, twice, log).await.map_err(|error| told_of_an_act(error, twice, log.attempts))
}

/// Tries until it works, it would do harm, or the time that the whole call has would be over. The first attempt is
/// already in the log.
async fn attempts(
    work: &Work<'_>,
    call: &ResolvedCall,
    twice: Repeat,
    log: &mut CallLog,
) -> Result<Ran<ToolOutput>, ToolError> {
    loop {
        let error = match attempt(work, call, log).await {
            Ok(ran) => return Ok(ran),
            Err(error) => error,
        };
        let delay = retry::delay(&log.call, &error, log.attempts, twice);
        let left = work.limit.until(log).saturating_duration_since(Instant::now());
        let Some(delay) = delay.filter(|delay| *delay < left) else { return Err(error) };
        let message = format!("{error}; trying again in {} ms", delay.as_millis());
        log.note(CallEvent::Progress { progress: None, part: None, message });
        // Waiting is work like any other, but for the silence: it can be stopped and counts as time.
        let waiting = Work { idle: None, ..*work };
        let waited = waiting.run(log, |ctx| pause(ctx, delay)).await;
        waited.map_err(|stopped| if error.nothing_done() { stopped.having_done_nothing() } else { stopped })?;
        log.attempt();
    }
}

/// Waits, but not for a call that was stopped.
async fn pause(ctx: ToolCtx, delay: Duration) -> Result<(), ToolError> {
    // Either way there is nothing to put away.
    let _cancelled = tokio::time::timeout(delay, ctx.cancel.cancelled()).await;
    Ok(())
}

/// Only what anybody in the caller's place would be given without asking.
fn may_be_remembered(request: &CallRequest, approval: &Approval) -> bool {
    let unasked = match approval.by {
        ApprovedBy::Auto | ApprovedBy::Config => approval.grant.is_none(),
        ApprovedBy::User => false,
    };
    unasked && !request.fresh
}

async fn stamp(work: &Work<'_>, call: &ResolvedCall, log: &mut CallLog) -> Result<Option<Stamp>, ToolError> {
    let (tool, input) = (&call.tool, &call.request.input);
    work.run(log, |ctx| async move { Ok(tool.tool().stamp(&ctx, input).await) }).await
}

async fn attempt(work: &Work<'_>, call: &ResolvedCall, log: &mut CallLog) -> Result<Ran<ToolOutput>, ToolError> {
    let (tool, input) = (&call.tool, &call.request.input);
    match work.run(log, |ctx| async move { tool.tool().run(&ctx, input).await }).await? {
        Ran::Done { output, isolation, staged } => {
            Ok(Ran::Done { output: conforming(call, output)?, isolation, staged })
        }
        other @ (Ran::CutShort(_) | Ran::Waits(_)) => Ok(other),
    }
}

/// What acted on the outside world and was cut short, or failed by passing trouble on the way, may have happened.
fn told_of_an_act(error: ToolError, twice: Repeat, attempts: u32) -> ToolError {
    let cut_short = matches!(error.code, ErrorCode::Timeout | ErrorCode::Cancelled);
    let may_have_happened = cut_short || (error.recoverable && twice == Repeat::Unsafe);
    if !may_have_happened || error.nothing_done() {
        return error;
    }
    let again = if attempts > 1 { "" } else { ", and was not tried again" };
    // Last may be what a server said, which nothing of ours should stand behind.
    let message = format!("It may have happened{again}. Check before you call again: {}", error.message);
    ToolError { details: error.details, ..ToolError::new(ErrorCode::OutcomeUnknown, message) }
}

/// A result that does not fit its own schema fails where tools are developed, and is marked where they are used.
/// There, the type that a typed result was made from is proof enough.
fn conforming(call: &ResolvedCall, mut output: ToolOutput) -> Result<ToolOutput, ToolError> {
    if call.tool.tool().is_typed() && !cfg!(debug_assertions) {
        return Ok(output);
    }
    let validator = call.tool.output()?;
    if validator.is_valid(&output.structured) {
        return Ok(output);
    }
    if cfg!(debug_assertions) {
        let why = validator.errors(&output.structured, 1).and_then(|errors| errors.first().map(ToString::to_string));
        let why = why.unwrap_or_default();
        let message = format!("the result of `{}` does not fit its own schema: {why}", call.tool.spec().name);
        return Err(ToolError::new(ErrorCode::OutputInvalid, message));
    }
    output.metadata.insert("output_invalid".to_owned(), true.into());
    Ok(output)
}

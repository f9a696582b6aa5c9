//! Where the calls of a command are: in the house of a folder, or at a gateway. All that differs stands behind this file.

use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::BoxFuture;
use haft_runtime::{
    Answer, AnswerReceipt, CallId, CallRecord, CallRequest, CallState, Caller, ChangeList, ErrorCode, Grant, Journal,
    Offer, Outcome, Question, QuestionAndAnswer, Redactor, Reply, Scope, ToolError, ToolSpec, Turn, Within,
};
use haft_store::{CallFilter, CallFollower, CallRow};
use haft_tools::KeptChanges;
use serde_json::Value;

use crate::{
    commands::{
        always::{LAST, coverage, remembered, remembered_as},
        answer::give,
        mistake, whole,
    },
    house::House,
    remote::{Remote, RemoteFollower},
    settings::Settings,
    show::timeline::Story,
};

/// How long the end of a call is waited for before looking whether somebody must carry it on.
const ONE_LOOK: Duration = Duration::from_secs(1);
/// How often a gateway is asked whether there are other questions than before.
const NEXT_LOOK: Duration = Duration::from_secs(1);

/// Where calls are.
pub(crate) enum Backend {
    /// In a folder of this machine.
    Here(Box<House>),
    /// At a gateway.
    There(Box<Remote>),
}

/// A call of a list, with its record where there is one.
pub(crate) struct ListedCall {
    pub(crate) row: CallRow,
    pub(crate) record: Option<CallRecord>,
}

/// A tool of a list, what its definition costs a model, and whether models are shown it.
#[derive(Clone)]
pub(crate) struct ListedTool {
    pub(crate) spec: ToolSpec,
    pub(crate) tokens: usize,
    pub(crate) shown: String,
}

/// A yes that can be remembered, and what of the past it would have covered, in words.
pub(crate) struct OfferedGrant {
    pub(crate) offer: Offer,
    pub(crate) covered: String,
}

/// A yes that is remembered, and what of the past it would have covered.
pub(crate) struct RememberedGrant {
    pub(crate) grant: Grant,
    pub(crate) covered: String,
}

/// A call that has begun, and how it will end.
pub(crate) struct RunningCall<'a> {
    pub(crate) id: CallId,
    pub(crate) ends: BoxFuture<'a, Result<Outcome>>,
}

impl Backend {
    /// The folder of this machine.
    pub(crate) fn here(house: House) -> Self {
        Self::Here(Box::new(house))
    }

    /// Its house, for what is done on this machine alone.
    pub(crate) fn into_house(self) -> Result<House> {
        match self {
            Self::Here(house) => Ok(*house),
            Self::There(remote) => Err(mistake(format!("this is not done at {}; leave out --server", remote.url()))),
        }
    }

    /// Waits for what is under way, and writes what is queued.
    pub(crate) async fn leave(&self) -> Result<()> {
        match self {
            Self::Here(house) => house.leave().await,
            Self::There(_) => Ok(()),
        }
    }

    /// The same for a process that goes on.
    pub(crate) async fn close(&self) -> Result<()> {
        match self {
            Self::Here(house) => house.close().await,
            Self::There(_) => Ok(()),
        }
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        match self {
            Self::Here(house) => &house.redactor,
            Self::There(remote) => &remote.redactor,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        match self {
            Self::Here(house) => &house.settings,
            Self::There(remote) => &remote.settings,
        }
    }

    /// What lists are about.
    pub(crate) fn within(&self) -> &Within {
        match self {
            Self::Here(house) => &house.here,
            Self::There(remote) => &remote.here,
        }
    }

    /// Whoever typed the command.
    pub(crate) fn caller(&self) -> &Caller {
        match self {
            Self::Here(house) => &house.caller,
            Self::There(remote) => &remote.caller,
        }
    }

    /// The same where a call works that is about another one: where that one did.
    pub(crate) fn caller_in(&self, scope: &Scope) -> Caller {
        Caller { scope: scope.clone(), ..self.caller().clone() }
    }

    /// Begins a call.
    pub(crate) async fn begin(&self, request: CallRequest) -> Result<RunningCall<'_>> {
        match self {
            Self::Here(house) => {
                let id = request.id.clone();
                Ok(RunningCall { id, ends: Box::pin(async move { Ok(house.pipeline.call(request).await) }) })
            }
            Self::There(remote) => {
                let id = remote.begin(&request).await?;
                Ok(RunningCall { id: id.clone(), ends: Box::pin(remote.finish(id, request)) })
            }
        }
    }

    /// A call, if there is one with this id.
    pub(crate) async fn record(&self, call: &CallId) -> Result<Option<CallRecord>> {
        match self {
            Self::Here(house) => Ok(Journal::find(&house.store, &house.scope, call).await?),
            Self::There(remote) => remote.record(call).await,
        }
    }

    /// The calls that a filter lets through, newest first.
    pub(crate) async fn calls(&self, filter: &CallFilter) -> Result<Vec<ListedCall>> {
        match self {
            Self::Here(house) => {
                let mut calls = Vec::new();
                for row in house.store.calls(&house.scope, &house.here, filter).await? {
                    calls.push(listed(house, row).await?);
                }
                Ok(calls)
            }
            Self::There(remote) => remote.calls(filter).await,
        }
    }

    /// The calls as they ask and end.
    pub(crate) async fn follow(&self, filter: &CallFilter) -> Result<LiveCalls<'_>> {
        Ok(match self {
            Self::Here(house) => {
                let calls = house.store.follow(&house.scope, &house.here, filter).await?;
                LiveCalls::Here(house, Box::new(calls))
            }
            Self::There(remote) => LiveCalls::There(Box::new(RemoteFollower::new(remote, filter).await?)),
        })
    }

    /// Everything that is known of a call.
    pub(crate) async fn story(&self, record: CallRecord) -> Result<Story> {
        match self {
            Self::Here(house) => {
                let events = house.store.events(&house.scope, &record.call).await?;
                let relatives = house.store.relatives(&house.scope, &record.call).await?;
                let (question, answer) = house.question(&record.call).await?.unzip();
                Ok(Story { record, events, question, answer: answer.flatten(), relatives })
            }
            Self::There(remote) => remote.story(&record.call).await,
        }
    }

    /// Whether what a call changed is still kept, so that it can be undone.
    pub(crate) fn keeps_changes_of(&self, record: &CallRecord) -> bool {
        match self {
            Self::Here(house) => {
                record.turn.as_ref().is_some_and(|turn| KeptChanges::new(&house.settings.data).has(&turn.of))
            }
            Self::There(_) => true,
        }
    }

    /// The last call that did or undid what this one had staged.
    pub(crate) async fn last_turn_of(&self, call: &CallId) -> Result<Option<CallRecord>> {
        match self {
            Self::Here(house) => Ok(house.store.last_turn_of(&house.scope, call).await?),
            Self::There(remote) => remote.last_turn_of(call).await,
        }
    }

    /// What a call staged, or the part of it that another one turned, as it stands now.
    pub(crate) async fn changes(&self, record: &CallRecord) -> Result<ChangeList> {
        match self {
            Self::Here(house) => Ok(record.changes(&*house.workbench).await?),
            Self::There(remote) => remote.changes(&record.call).await,
        }
    }

    /// All that a call staged; nothing where that is no longer kept.
    pub(crate) async fn staged_by(&self, call: &CallId) -> Result<ChangeList> {
        match self {
            Self::Here(house) => match house.workbench.show(&house.scope, call).await {
                Ok(changes) => Ok(changes),
                Err(error) if error.code == ErrorCode::Unavailable => Ok(ChangeList::default()),
                Err(error) => Err(error.into()),
            },
            Self::There(remote) => remote.changes(call).await,
        }
    }

    /// An error where a turn names paths that are not there to be turned. A gateway looks by itself.
    pub(crate) async fn check_turn(&self, turn: &Turn) -> Result<()> {
        match self {
            Self::Here(house) => Ok(house.workbench.preview(&house.scope, turn).await.map(drop)?),
            Self::There(_) => Ok(()),
        }
    }

    /// An outcome with the whole of its result.
    pub(crate) async fn whole(&self, outcome: Outcome) -> Outcome {
        match self {
            Self::Here(house) => whole(house, outcome).await,
            Self::There(remote) => remote.whole(outcome).await,
        }
    }

    /// How a call ended, if it did within a time, or before it has to be looked after.
    pub(crate) async fn ended(&self, call: &CallId, limit: Duration) -> Result<Option<Outcome>> {
        match self {
            Self::Here(house) => Ok(house.store.ended(&house.scope, call, limit.min(ONE_LOOK)).await?),
            Self::There(remote) => remote.ended(call, limit).await,
        }
    }

    /// Carries on what somebody left who has died, and ends what has had its time. A gateway does so by itself.
    pub(crate) async fn look_after_calls(&self) -> Result<()> {
        if let Self::Here(house) = self {
            house.pipeline.recover().await?;
            house.pipeline.expire().await?;
        }
        Ok(())
    }

    /// Stops a call that has not ended, and says how it ended then.
    pub(crate) async fn cancel(&self, record: &CallRecord) -> Result<Outcome> {
        let (call, house) = match self {
            Self::There(remote) => return remote.cancel(&record.call).await,
            Self::Here(house) => (&record.call, house),
        };
        match record.state {
            CallState::Waiting => give(self, call, Answer::Cancel).await,
            CallState::Preparing | CallState::Executing | CallState::Ended => {
                house.store.want_stop(&house.scope, call).await?;
                match house.store.ended(&house.scope, call, Duration::from_secs(10)).await? {
                    Some(outcome) => Ok(outcome),
                    None => bail!("{call} was told to stop and has not ended yet; `haft wait {call}` waits for it"),
                }
            }
        }
    }

    /// The question of a call, and its answer once there is one.
    pub(crate) async fn question(&self, call: &CallId) -> Result<Option<QuestionAndAnswer>> {
        match self {
            Self::Here(house) => Ok(house.question(call).await?),
            Self::There(remote) => remote.question(call).await,
        }
    }

    /// The calls that come from a call, oldest first.
    pub(crate) async fn children(&self, call: &CallId) -> Result<Vec<CallId>> {
        match self {
            Self::Here(house) => Ok(house.store.children(&house.scope, call).await?),
            Self::There(remote) => remote.children(call).await,
        }
    }

    /// The open questions, oldest first.
    pub(crate) async fn open_questions(&self, within: &Within) -> Result<Vec<Question>> {
        match self {
            Self::Here(house) => Ok(house.open_questions(within).await?),
            Self::There(remote) => remote.open_questions(within).await,
        }
    }

    /// Rings when some question may have been put or answered. Register, look, then wait.
    pub(crate) fn question_news(&self) -> BoxFuture<'_, ()> {
        match self {
            Self::Here(house) => {
                let news = house.store.watch_questions(&house.scope);
                Box::pin(async move { news.changed().await })
            }
            Self::There(_) => Box::pin(tokio::time::sleep(NEXT_LOOK)),
        }
    }

    /// The yeses that can be made of one; inside an error is why there are none.
    pub(crate) async fn offers(&self, question: &Question) -> Result<Result<Vec<OfferedGrant>, String>> {
        let house = match self {
            Self::There(remote) => return remote.offers(question).await,
            Self::Here(house) => house,
        };
        let offers = match house.pipeline.offers(&house.caller, question).await {
            Ok(offers) => offers,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let within = question.workspace.clone().map_or(Within::Everything, Within::Only);
        let past = house.store.last_calls(&question.scope(&house.scope), &within, LAST).await.unwrap_or_default();
        let offered = |offer: Offer| {
            let grant = Grant::new(&question.tool, offer.bounds.clone());
            OfferedGrant { covered: coverage(house, &grant, &past).to_string(), offer }
        };
        Ok(Ok(offers.into_iter().map(offered).collect()))
    }

    /// What a call would do with another input.
    pub(crate) async fn preview_edit(&self, question: &Question, input: &Value) -> Result<Question, ToolError> {
        match self {
            Self::Here(house) => house.pipeline.preview_edit(&house.caller, question, input).await,
            Self::There(remote) => remote.preview_edit(question, input).await,
        }
    }

    /// Gives an answer and lets the call go on. What the answer leaves behind is told in words, once it counts.
    pub(crate) async fn give_answer(
        &self,
        question: &Question,
        answer: Answer,
    ) -> Result<(AnswerReceipt, Option<String>)> {
        match self {
            Self::Here(house) => {
                let told = remembered(house, &answer).await;
                Ok((house.pipeline.give_answer(&house.caller, &question.id(), answer).await?, told))
            }
            Self::There(remote) => {
                let (receipt, remembered) = remote.give_answer(question, &answer).await?;
                Ok((receipt, remembered.map(|remembered| remembered_as(&remembered))))
            }
        }
    }

    /// Gives an answer and sees the call through.
    pub(crate) async fn answer(&self, question: &Question, answer: Answer) -> Result<(Reply, Option<String>)> {
        match self {
            Self::Here(house) => {
                let told = remembered(house, &answer).await;
                Ok((house.pipeline.answer(&house.caller, &question.id(), answer).await?, told))
            }
            Self::There(remote) => {
                let (reply, remembered) = remote.answer(question, &answer).await?;
                Ok((reply, remembered.map(|remembered| remembered_as(&remembered))))
            }
        }
    }

    /// What a tool is, as far as that is known.
    pub(crate) async fn describe(&self, tool: &str) -> Result<Option<ToolSpec>> {
        match self {
            Self::Here(house) => Ok(house.tools().get(tool).map(|found| found.spec().clone())),
            Self::There(remote) => Ok(remote.tool(tool).await?.map(|found| found.spec)),
        }
    }
}

async fn listed(house: &House, row: CallRow) -> Result<ListedCall> {
    let record = Journal::find(&house.store, &house.scope, &row.id).await?;
    Ok(ListedCall { row, record })
}

/// Tells calls as they ask and end.
pub(crate) enum LiveCalls<'a> {
    Here(&'a House, Box<CallFollower>),
    There(Box<RemoteFollower<'a>>),
}

impl LiveCalls<'_> {
    /// The next call that asks or ends; waits for one.
    pub(crate) async fn next(&mut self) -> Result<ListedCall> {
        match self {
            Self::Here(house, calls) => listed(house, calls.next().await?).await,
            Self::There(calls) => calls.next().await,
        }
    }
}

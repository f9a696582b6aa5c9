//! One call and its client, who is asked while the call waits, as far as it can be asked then.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{Answer, CallId, CallRequest, Outcome, Question};
use rmcp::{
    RoleServer,
    model::{ElicitRequest, InputResponses, ServerRequest},
    service::{PeerRequestOptions, RequestContext, RequestHandle},
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    asking::{self, CallQuestions, ClientReply},
    callers::ClientRequest,
    calling::{AskMethod, CallStatus, patience},
};

/// How often a client may give values that do not fit before it is left alone.
const TRIES: usize = 3;
/// As long as any question can be open.
const EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What is known of a call while it goes on.
pub(super) struct Conversation<'a> {
    server: &'a ClientRequest,
    context: &'a RequestContext<RoleServer>,
    way: AskMethod,
    call: CallId,
    /// What the client has said before it was asked.
    given: InputResponses,
    /// What another call asks that this one waits for.
    followed: Option<Question>,
    questions: CallQuestions,
    cancel: CancellationToken,
    /// Hands the call back while it waits.
    hand_back: CancellationToken,
}

/// How it goes on after a question.
enum NextStep {
    GoOn,
    Ended(Box<Outcome>),
    /// The call waits on behind the answer to its client.
    HandBack,
}

type OutcomeFuture = BoxFuture<'static, Outcome>;

impl<'a> Conversation<'a> {
    pub(super) fn new(
        server: &'a ClientRequest,
        context: &'a RequestContext<RoleServer>,
        way: AskMethod,
        request: &CallRequest,
    ) -> Self {
        let questions = server.ground.asked.of(&request.id);
        let (cancel, hand_back) = (request.cancel.clone(), request.hand_back.clone());
        let call = request.id.clone();
        Self { server, context, way, call, given: InputResponses::new(), followed: None, questions, cancel, hand_back }
    }

    /// The same with answers that the client has sent along.
    pub(super) fn knowing(mut self, given: InputResponses) -> Self {
        self.given = given;
        self
    }

    /// The same where another call is waited for, and has asked this.
    pub(super) fn asking_first(mut self, followed: Option<Question>) -> Self {
        self.followed = followed;
        self
    }

    /// Takes the call down the line until it ends, or asks what its client is told only by the answer to its call.
    pub(super) async fn follow(mut self, request: CallRequest) -> CallStatus {
        let mut call: OutcomeFuture = Box::pin(self.server.ground.pipeline.call(request));
        if let Some(question) = self.followed.take()
            && let NextStep::Ended(outcome) = self.elicit(&question, &mut call).await
        {
            return CallStatus::Ended(outcome);
        }
        loop {
            let question = tokio::select! {
                biased;
                outcome = ended(&mut call, self.context, &self.cancel) => return CallStatus::Ended(outcome),
                Some(question) = self.questions.next() => question,
            };
            match self.put(&question, &mut call).await {
                NextStep::GoOn => {}
                NextStep::Ended(outcome) => return CallStatus::Ended(outcome),
                NextStep::HandBack => {
                    // It is recorded by itself, and ends with the server at the latest.
                    drop(self.server.under_way.spawn(call));
                    return CallStatus::Asks(question);
                }
            }
        }
    }

    async fn put(&mut self, question: &Question, call: &mut OutcomeFuture) -> NextStep {
        let is_form = question.form().is_some();
        let may_be_asked = self.server.ground.may_approve.covers(question) && !question.wants_a_result();
        if is_form
            && may_be_asked
            && let Some(given) = self.given.remove(asking::name(question))
            && let ClientReply::Answer(answer) = asking::said(question, &given)
        {
            self.give(question, answer).await;
            return NextStep::GoOn;
        }
        let way = if may_be_asked { self.way } else { AskMethod::Wait };
        match way {
            AskMethod::Elicitation => self.elicit(question, call).await,
            AskMethod::Task | AskMethod::InputRequired if is_form => NextStep::HandBack,
            AskMethod::Wait if is_form => self.wait_for_others(question, call).await,
            // A call that waits for a yes or a result hands itself back.
            AskMethod::Task | AskMethod::InputRequired | AskMethod::Wait => NextStep::GoOn,
        }
    }

    /// Asks the client. Whoever answers first, here or elsewhere, is heard; what a client puts away by itself stays open.
    async fn elicit(&self, question: &Question, call: &mut OutcomeFuture) -> NextStep {
        let (ground, id) = (&self.server.ground, question.id());
        let is_form = question.form().is_some();
        let mut wrong = None;
        for _ in 0..TRIES {
            let Some(form) = asking::form(ground, question, wrong.as_deref()) else { break };
            let form = ServerRequest::ElicitRequest(ElicitRequest::new(form));
            let asked = self.context.peer.send_cancellable_request(form, PeerRequestOptions::no_options()).await;
            let Ok(mut asked) = asked else { break };
            let next = tokio::select! {
                outcome = ended(call, self.context, &self.cancel) => NextStep::Ended(outcome),
                given = &mut asked.rx => {
                    let given = given.ok().and_then(Result::ok).and_then(|given| serde_json::to_value(given).ok());
                    match asking::said(question, &given.unwrap_or_default()) {
                        ClientReply::Answer(answer) => {
                            self.give(question, answer).await;
                            return NextStep::GoOn;
                        }
                        ClientReply::Wrong(why) => wrong = Some(why),
                        ClientReply::PutAway if !is_form => {
                            self.server.put_away(question);
                            // Nobody is there who would answer while the client waits.
                            self.hand_back.cancel();
                            return NextStep::GoOn;
                        }
                        ClientReply::PutAway | ClientReply::Nothing => break,
                    }
                    continue;
                }
                _answered = ground.questions.wait(&self.server.caller.scope, &id, EVER) => NextStep::GoOn,
                () = sleep(patience(self.context)), if is_form => NextStep::HandBack,
            };
            self.withdraw(asked).await;
            return next;
        }
        if is_form { self.wait_for_others(question, call).await } else { NextStep::GoOn }
    }

    /// Nobody should go on filling in what is answered; who has cancelled the call knows.
    async fn withdraw(&self, asked: RequestHandle<RoleServer>) {
        if !self.context.ct.is_cancelled() {
            let _gone = asked.cancel(Some("the question is no longer open here".to_owned())).await;
        }
    }

    /// The client cannot answer, but somebody else may while it waits.
    async fn wait_for_others(&self, question: &Question, call: &mut OutcomeFuture) -> NextStep {
        let (ground, id) = (&self.server.ground, question.id());
        tokio::select! {
            outcome = ended(call, self.context, &self.cancel) => NextStep::Ended(outcome),
            _answered = ground.questions.wait(&self.server.caller.scope, &id, EVER) => NextStep::GoOn,
            () = sleep(patience(self.context)) => NextStep::HandBack,
        }
    }

    /// The call itself hears it; when somebody was earlier, it has heard that.
    async fn give(&self, question: &Question, answer: Answer) {
        if question.call == self.call {
            let pipeline = &self.server.ground.pipeline;
            let _heard = pipeline.give_answer(&self.server.answerer, &question.id(), answer).await;
        } else {
            // Whoever had the other call may be gone, so that it is carried on from here.
            let _carried = self.server.answer(question, answer, None).await;
        }
    }
}

/// The end of a call that its client may cancel as long as it waits for it.
async fn ended(
    call: &mut OutcomeFuture,
    context: &RequestContext<RoleServer>,
    cancel: &CancellationToken,
) -> Box<Outcome> {
    tokio::select! {
        outcome = &mut *call => return Box::new(outcome),
        () = context.ct.cancelled() => cancel.cancel(),
    }
    Box::new(call.await)
}

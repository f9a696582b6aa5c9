//! Calls that only wait for another one, whose question is put to the client meanwhile.

use std::sync::PoisonError;

use futures_util::FutureExt;
use haft_runtime::{About, CallId, Question, ToolError};
use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, InputRequiredResult},
};
use serde_json::Value;

use super::{
    asking::{self, ClientReply},
    callers::ClientRequest,
    calling::{SealedState, opened, required},
};

/// How many questions are remembered that clients have put away.
const MOST_PUT_AWAY: usize = 1024;

impl ClientRequest {
    /// The open question of the call that this one only waits for, if the client may be asked and has not put it away.
    pub(super) async fn followed(&self, params: &CallToolRequestParams) -> Option<Question> {
        let call = self.call_followed_by(params)?;
        let found = self.ground.questions.find(&self.caller.scope, &call).await.ok().flatten();
        let (question, None) = found? else { return None };
        let is_approval = matches!(question.about, About::Approval(_));
        let may_be_asked = is_approval && self.ground.may_approve.covers(&question);
        (may_be_asked && !self.was_put_away(&question)).then_some(question)
    }

    fn call_followed_by(&self, params: &CallToolRequestParams) -> Option<CallId> {
        // A tool whose server must be started first follows no call, and is not waited for here.
        let tool = self.ground.catalog.find(&self.caller, &params.name).now_or_never()?.ok()?;
        tool.follows(&Value::Object(params.arguments.clone().unwrap_or_default()))
    }

    /// The question of the followed call for a client that is asked in the answer to its call.
    pub(super) async fn required_of_followed(&self, params: &CallToolRequestParams) -> Option<InputRequiredResult> {
        let question = self.followed(params).await?;
        required(self, params, &question, None)
    }

    /// Takes what a client answers to the question of a call that this one only waits for. `false` when the state belongs
    /// to a call of its own.
    pub(super) async fn take_answer_of_followed(
        &self,
        params: &CallToolRequestParams,
        state: &str,
    ) -> Result<bool, ErrorData> {
        let Some(call) = self.call_followed_by(params) else { return Ok(false) };
        let SealedState { call: sealed, question: number } = opened(self, params, state)?;
        if sealed != call {
            return Ok(false);
        }
        let internal = |error: ToolError| ErrorData::internal_error(error.message, None);
        let found = self.ground.questions.find(&self.caller.scope, &call).await.map_err(internal)?;
        let Some((question, None)) = found.filter(|(question, _)| question.number == number) else { return Ok(true) };
        let given = params.input_responses.as_ref().and_then(|inputs| inputs.get(asking::name(&question)));
        match asking::said(&question, given.unwrap_or(&Value::Null)) {
            ClientReply::Answer(answer) => drop(self.answer(&question, answer, None).await.map_err(internal)?),
            ClientReply::Wrong(_) | ClientReply::PutAway | ClientReply::Nothing => self.put_away(&question),
        }
        Ok(true)
    }

    /// The client is not asked this again.
    pub(super) fn put_away(&self, question: &Question) {
        let mut put_away = self.put_away.lock().unwrap_or_else(PoisonError::into_inner);
        if put_away.len() >= MOST_PUT_AWAY {
            put_away.clear();
        }
        put_away.insert((question.call.clone(), question.number));
    }

    fn was_put_away(&self, question: &Question) -> bool {
        self.put_away.lock().unwrap_or_else(PoisonError::into_inner).contains(&(question.call.clone(), question.number))
    }
}

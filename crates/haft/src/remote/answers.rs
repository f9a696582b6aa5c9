//! Answers to the questions of a gateway.

use anyhow::Result;
use haft_runtime::{
    Answer, AnswerReceipt, Answered, Bounds, Breadth, ErrorCode, Grant, GrantId, Offer, Outcome, Question, Reply,
    ToolError,
};
use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    Remote,
    client::RequestError,
    read,
    views::{RemoteCard, RemoteDecision},
};
use crate::backend::{OfferedGrant, RememberedGrant};

/// What a server says of an answer that counts.
#[derive(Deserialize)]
struct RemoteReply {
    #[serde(rename = "answered")]
    _answered: IgnoredAny,
    /// How many others have to say the same before it does.
    needed: Option<u32>,
    grant: Option<GrantId>,
    outcome: Option<Outcome>,
}

#[derive(Deserialize)]
struct RemoteOffers {
    offers: Vec<RemoteOffer>,
    withheld: Option<String>,
}

#[derive(Deserialize)]
struct RemoteOffer {
    kind: String,
    bounds: Bounds,
    covered: String,
}

fn word(breadth: Breadth) -> &'static str {
    match breadth {
        Breadth::Call => "call",
        Breadth::Folder => "folder",
        Breadth::Bounds => "bounds",
    }
}

impl Remote {
    /// The yeses that can be made of one, narrowest first; inside an error is why there are none.
    pub(crate) async fn offers(&self, question: &Question) -> Result<Result<Vec<OfferedGrant>, String>> {
        let sent = self.client.get(&format!("/api/approvals/{}/offers", question.call)).await?;
        let RemoteOffers { offers, withheld } = read(sent)?;
        if let Some(why) = withheld {
            return Ok(Err(why));
        }
        let known = [Breadth::Call, Breadth::Folder, Breadth::Bounds];
        let offered = offers.into_iter().filter_map(|RemoteOffer { kind, bounds, covered }| {
            let breadth = known.into_iter().find(|breadth| word(*breadth) == kind)?;
            Some(OfferedGrant { offer: Offer { breadth, bounds }, covered })
        });
        Ok(Ok(offered.collect()))
    }

    /// What a call would do with another input.
    pub(crate) async fn preview_edit(&self, question: &Question, input: &Value) -> Result<Question, ToolError> {
        let path = format!("/api/approvals/{}/preview", question.call);
        let sent = self.client.post(&path, &json!({"input": input})).await.map_err(|err| *err.error)?;
        let card = read::<RemoteCard>(sent).and_then(RemoteCard::into_question);
        card.map(|(question, _)| question).map_err(|err| ToolError::new(ErrorCode::UpstreamError, format!("{err:#}")))
    }

    /// Gives an answer; the server goes on with the call.
    pub(crate) async fn give_answer(
        &self,
        question: &Question,
        answer: &Answer,
    ) -> Result<(AnswerReceipt, Option<RememberedGrant>)> {
        let (receipt, remembered, _) = self.given(question, answer).await?;
        Ok((receipt, remembered))
    }

    /// Gives an answer and waits for what comes of it.
    pub(crate) async fn answer(
        &self,
        question: &Question,
        answer: &Answer,
    ) -> Result<(Reply, Option<RememberedGrant>)> {
        let (receipt, remembered, outcome) = self.given(question, answer).await?;
        let reply = match (receipt, outcome) {
            (AnswerReceipt::TooLate(first), _) => Reply::TooLate(first),
            (AnswerReceipt::MoreNeeded(others), _) => Reply::MoreNeeded(others),
            (AnswerReceipt::NoQuestion, _) => Reply::NoQuestion,
            (AnswerReceipt::Taken, _) if question.form().is_some() => Reply::Heard,
            (AnswerReceipt::Taken, Some(outcome)) => Reply::Counted(Box::new(outcome)),
            (AnswerReceipt::Taken, None) => Reply::Counted(Box::new(self.settled(&question.call).await?)),
        };
        Ok((reply, remembered))
    }

    async fn given(
        &self,
        question: &Question,
        answer: &Answer,
    ) -> Result<(AnswerReceipt, Option<RememberedGrant>, Option<Outcome>)> {
        let call = &question.call;
        let at = |what: &str| format!("/api/approvals/{call}/{what}");
        let mut covered = None;
        let (path, body) = match answer {
            Answer::Approve { paths } => {
                (at("approve"), with_number(question, "paths", paths.as_ref().map(|paths| json!(paths))))
            }
            Answer::Always { grant } => {
                let (always, words) = self.always(question, grant).await?;
                covered = Some(words);
                (at("approve"), with_number(question, "always", Some(always)))
            }
            Answer::Edit { input } => (at("approve"), with_number(question, "input", Some(input.clone()))),
            Answer::Fill { values } => (at("fill"), json!({"values": values.values()})),
            Answer::Result { value } => (at("fill"), json!({"values": value})),
            Answer::Reject { message } => (at("reject"), json!({"message": message})),
            Answer::Failed { message, .. } => (at("reject"), json!({"message": message})),
            // Nobody but the house says the last two.
            Answer::Cancel | Answer::Expire | Answer::TimedOut { .. } => {
                (format!("/api/calls/{call}/cancel"), Value::Null)
            }
        };
        match self.client.post(&path, &body).await {
            Ok(sent) if *answer == Answer::Cancel => Ok((AnswerReceipt::Taken, None, Some(read(sent)?))),
            Ok(sent) => {
                let RemoteReply { grant: id, outcome, needed, .. } = read(sent)?;
                if let Some(others) = needed {
                    return Ok((AnswerReceipt::MoreNeeded(others), None, None));
                }
                let remembered = match (answer, id, covered) {
                    (Answer::Always { grant }, Some(id), Some(covered)) => {
                        Some(RememberedGrant { grant: Grant { id, ..(**grant).clone() }, covered })
                    }
                    _ => None,
                };
                Ok((AnswerReceipt::Taken, remembered, outcome))
            }
            Err(RequestError { error, body, repeated }) => match decided(&body) {
                // The first time it was sent it counted; only that was not heard.
                Ok(first) if repeated && first.answer == *answer => Ok((AnswerReceipt::Taken, None, None)),
                Ok(first) => Ok((AnswerReceipt::TooLate(first), None, None)),
                Err(_) if error.code == ErrorCode::NotFound => Ok((AnswerReceipt::NoQuestion, None, None)),
                Err(_) => Err((*error).into()),
            },
        }
    }

    /// How a server is told of a yes that is to be remembered: by its breadth, which is found by its bounds.
    async fn always(&self, question: &Question, grant: &Grant) -> Result<(Value, String)> {
        let offers = self.offers(question).await?.unwrap_or_default();
        let chosen = offers.into_iter().find(|offered| offered.offer.bounds == grant.bounds);
        let Some(OfferedGrant { offer, covered }) = chosen else {
            let message = format!("what {} does has changed since it was shown; look again", question.call);
            return Err(ToolError::new(ErrorCode::Conflict, message).into());
        };
        let seconds = grant.until.map(|until| until.duration_since(Timestamp::now()).as_secs_f64().ceil() as i64);
        let lasting = seconds.map(|seconds| format!("{}s", seconds.max(1)));
        Ok((json!({"kind": word(offer.breadth), "for": lasting, "uses": grant.uses_left}), covered))
    }
}

/// What a server says was answered before.
fn decided(body: &Value) -> serde_json::Result<Answered> {
    serde_json::from_value::<RemoteDecision>(body["decided"].clone()).map(Answered::from)
}

/// A yes is bound to the question that was seen.
fn with_number(question: &Question, name: &str, what: Option<Value>) -> Value {
    let mut body = json!({"number": question.number});
    if let Some(what) = what {
        body[name] = what;
    }
    body
}

//! How programs outside give the result of a call: once, again, too late, or not fitting.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    About, Answer, AnswerReceipt, Answered, AwaitedResult, CallEvent, CallId, CallRecord, Caller, CallerRef, Delivered,
    Follower, Pipeline, Question, Scope, ToolError,
    answers::{give, refuse_who_may_not},
    await_result::failed_outside,
};

/// What somebody outside made of a call: `{"result": …}`, or `{"error": {"code"?, "message"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Submission {
    /// Its result.
    Result(Value),
    /// It could not be done.
    Error {
        /// What whoever tried it calls this failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Why.
        message: String,
    },
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum SubmitReply {
    /// It counts, and the call has ended with it. A late one is kept beside its call and goes to the inbox.
    Resolved {
        /// How it reached the caller.
        delivered: Delivered,
    },
    /// The same was given before; nothing has changed since.
    AlreadyEqual {
        /// How the first one reached the caller.
        delivered: Delivered,
    },
    /// Something else was given before.
    Conflict,
    /// No call of this tenant with that id waits, or has waited, for a result.
    Unknown,
    /// Nobody gave it in time.
    Expired,
    /// Nobody wants it any more.
    Cancelled,
    /// It does not fit the result's schema, and this says why. Nothing was taken: the same call can be given another one.
    NotFitting(ToolError),
}

/// A result that came after its call had timed out. It is kept beside the call, which stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct LateResult {
    /// What was given.
    pub submission: Submission,
    /// By whom.
    pub by: CallerRef,
    /// When.
    pub at: Timestamp,
}

impl LateResult {
    /// What the journal tells of it.
    pub fn event(&self, call: &CallRecord) -> CallEvent {
        match self.submission.outcome() {
            Err(error) => CallEvent::Failed { error, late: true },
            Ok(_) => {
                let execution_time_ms = call.outcome.as_ref().map_or(0, |outcome| outcome.execution_time_ms);
                CallEvent::Completed { execution_time_ms, late: true }
            }
        }
    }
}

impl Submission {
    /// What the call's caller is told: the result, or why there is none.
    pub fn outcome(&self) -> Result<&Value, ToolError> {
        match self {
            Self::Result(value) => Ok(value),
            Self::Error { code, message } => Err(failed_outside(code.clone(), message.clone())),
        }
    }

    fn answer(self) -> Answer {
        match self {
            Self::Result(value) => Answer::Result { value },
            Self::Error { code, message } => Answer::Failed { code, message },
        }
    }

    /// The same as it is after it was written down and read again, so that equal ones are equal to the last digit.
    fn as_stored(&self) -> Self {
        let read = serde_json::to_string(self).and_then(|text| serde_json::from_str(&text));
        read.unwrap_or_else(|_| self.clone())
    }

    fn fits(&self, awaited: &AwaitedResult) -> Result<(), ToolError> {
        match self {
            Self::Result(value) => awaited.check(value),
            Self::Error { .. } => Ok(()),
        }
    }
}

impl Pipeline {
    /// Gives the result of a call that waits for one, and sees the call to its end. Whoever may not answer is refused by an
    /// error, whatever has become of the call.
    pub async fn submit(
        &self,
        caller: &Caller,
        call: &CallId,
        submission: Submission,
    ) -> Result<SubmitReply, ToolError> {
        let scope = &caller.scope;
        let Some((question, answered)) = self.doors.questions.find(scope, call).await? else {
            return Ok(SubmitReply::Unknown);
        };
        let About::Result(awaited) = &question.about else { return Ok(SubmitReply::Unknown) };
        refuse_who_may_not(&self.doors, caller, &question).await?;
        let first = match answered {
            Some(first) => first,
            None => match self.give_first(caller, (&question, awaited), &submission).await? {
                GivenFirst::Replied(reply) => return Ok(reply),
                GivenFirst::TooLate(first) => first,
            },
        };
        // Whoever gave the first answer may be gone before its call has ended.
        self.carry(scope, call, Follower::default()).await?;
        let given = match first.answer {
            Answer::Result { value } => Submission::Result(value),
            Answer::Failed { code, message } => Submission::Error { code, message },
            Answer::TimedOut { .. } => return self.give_late(caller, (call, awaited), submission).await,
            Answer::Expire => return Ok(SubmitReply::Expired),
            Answer::Cancel
            | Answer::Approve { .. }
            | Answer::Always { .. }
            | Answer::Edit { .. }
            | Answer::Fill { .. }
            | Answer::Reject { .. } => return Ok(SubmitReply::Cancelled),
        };
        if given != submission.as_stored() {
            return Ok(SubmitReply::Conflict);
        }
        Ok(SubmitReply::AlreadyEqual { delivered: self.delivered(scope, call).await? })
    }

    /// Answers an open question.
    async fn give_first(
        &self,
        caller: &Caller,
        (question, awaited): (&Question, &AwaitedResult),
        submission: &Submission,
    ) -> Result<GivenFirst, ToolError> {
        let overdue = self.doors.questions.now() >= question.expires_at;
        let receipt = if overdue {
            give(&self.doors, &Caller::house(&caller.scope), question, Answer::Expire).await?
        } else {
            if let Err(why) = submission.fits(awaited) {
                return Ok(GivenFirst::Replied(SubmitReply::NotFitting(why)));
            }
            give(&self.doors, caller, question, submission.clone().answer()).await?
        };
        Ok(match receipt {
            AnswerReceipt::TooLate(first) => GivenFirst::TooLate(first),
            AnswerReceipt::NoQuestion | AnswerReceipt::MoreNeeded(_) => GivenFirst::Replied(SubmitReply::Unknown),
            AnswerReceipt::Taken => {
                self.see_through(&caller.scope, question).await?;
                GivenFirst::Replied(match overdue {
                    true => SubmitReply::Expired,
                    false => SubmitReply::Resolved { delivered: self.delivered(&caller.scope, &question.call).await? },
                })
            }
        })
    }

    /// Keeps what came after the call had timed out.
    async fn give_late(
        &self,
        caller: &Caller,
        (call, awaited): (&CallId, &AwaitedResult),
        submission: Submission,
    ) -> Result<SubmitReply, ToolError> {
        let (scope, questions) = (&caller.scope, &self.doors.questions);
        let delivered = Delivered::Inbox;
        if let Some(kept) = questions.late(scope, call).await? {
            return Ok(again(&kept, &submission, delivered));
        }
        if let Err(why) = submission.fits(awaited) {
            return Ok(SubmitReply::NotFitting(why));
        }
        let Some(record) = self.doors.journal.find(scope, call).await? else { return Ok(SubmitReply::Unknown) };
        let late = LateResult { submission, by: caller.who(), at: Timestamp::now() };
        if questions.keep_late(&record, &late).await? {
            return Ok(SubmitReply::Resolved { delivered });
        }
        Ok(match questions.late(scope, call).await? {
            Some(kept) => again(&kept, &late.submission, delivered),
            None => SubmitReply::Unknown,
        })
    }

    /// How the result of a call that has ended reached its caller.
    async fn delivered(&self, scope: &Scope, call: &CallId) -> Result<Delivered, ToolError> {
        let found = self.doors.questions.find(scope, call).await?;
        Ok(match found.map(|(question, _)| question.about) {
            Some(About::Result(awaited)) => awaited.delivered,
            Some(About::Form(_) | About::Approval(_)) | None => Delivered::Inbox,
        })
    }
}

/// What became of a submission to an open question.
enum GivenFirst {
    Replied(SubmitReply),
    /// Somebody was earlier.
    TooLate(Answered),
}

fn again(kept: &LateResult, submission: &Submission, delivered: Delivered) -> SubmitReply {
    match kept.submission == submission.as_stored() {
        true => SubmitReply::AlreadyEqual { delivered },
        false => SubmitReply::Conflict,
    }
}

//! The one guarded way to answer a question. Every door goes through it, and the house too.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    About, Answer, AnswerReceipt, Answered, CallId, Caller, CallerKind, CallerRef, Category, Described, Doors, Effect,
    ErrorCode, Follower, Outcome, Pipeline, Prepared, Question, QuestionId, Scope, Source, ToolCtx, ToolError,
    issues::issues_of, stage::resolve::translate,
};

/// How long an edited input is planned to see whether it can be.
const PLANNED_WITHIN: Duration = Duration::from_secs(5);

/// An answer by somebody who may give it. Only this file makes one, so that nobody answers around the guard.
#[derive(Clone, Debug, PartialEq)]
pub struct PermittedAnswer(Answered);

impl PermittedAnswer {
    /// For the tests of a store: an answer that nobody was asked about.
    pub fn unchecked(answered: Answered) -> Self {
        Self(answered)
    }

    /// The answer.
    pub fn answered(&self) -> &Answered {
        &self.0
    }
}

/// What became of an answer.
#[derive(Debug)]
pub enum Reply {
    /// It counted, and this is how the call ended or stands.
    Counted(Box<Outcome>),
    /// It counted, and the process that does the work goes on with it.
    Heard,
    /// Somebody was earlier.
    TooLate(Answered),
    /// The call waits for nothing.
    NoQuestion,
}

impl Pipeline {
    /// Gives an answer and sees it through: the owner carries the call on, or this process does if the owner is gone.
    pub async fn answer(&self, caller: &Caller, question: &QuestionId, answer: Answer) -> Result<Reply, ToolError> {
        let Some(asked) = self.open_question(&caller.scope, question).await? else {
            return Ok(match self.earlier_answer(&caller.scope, question).await? {
                Some(first) => Reply::TooLate(first),
                None => Reply::NoQuestion,
            });
        };
        match give(&self.doors, caller, &asked, answer).await? {
            AnswerReceipt::Taken => self.see_through(&caller.scope, &asked).await,
            AnswerReceipt::TooLate(first) => Ok(Reply::TooLate(first)),
            AnswerReceipt::NoQuestion => Ok(Reply::NoQuestion),
        }
    }

    /// Gives an answer for somebody who follows the call anyway.
    pub async fn give_answer(
        &self,
        caller: &Caller,
        question: &QuestionId,
        answer: Answer,
    ) -> Result<AnswerReceipt, ToolError> {
        match self.open_question(&caller.scope, question).await? {
            Some(asked) => give(&self.doors, caller, &asked, answer).await,
            None => {
                let earlier = self.earlier_answer(&caller.scope, question).await?;
                Ok(earlier.map_or(AnswerReceipt::NoQuestion, AnswerReceipt::TooLate))
            }
        }
    }

    /// Whether an input could take the place of the one that is asked about; an error says what is wrong with it. Nothing
    /// is changed, and nothing is run.
    pub async fn check_edit(&self, caller: &Caller, question: &Question, input: &Value) -> Result<(), ToolError> {
        refuse_a_slip(&self.doors, caller, question, input).await
    }

    /// Answers the questions that nobody answered in time with a no.
    pub async fn expire(&self) -> Result<(), ToolError> {
        for (scope, question) in self.doors.questions.overdue(&self.doors.house).await? {
            let Some(asked) = self.open_question(&scope, &question).await? else { continue };
            if let AnswerReceipt::Taken = give(&self.doors, &Caller::house(&scope), &asked, Answer::Expire).await? {
                self.see_through(&scope, &asked).await?;
            }
        }
        Ok(())
    }

    async fn see_through(&self, scope: &Scope, asked: &Question) -> Result<Reply, ToolError> {
        match asked.about {
            About::Form(_) => Ok(Reply::Heard),
            About::Approval(_) | About::Result(_) => {
                let outcome = self.carry(scope, &asked.call, Follower::default()).await?;
                Ok(Reply::Counted(Box::new(outcome)))
            }
        }
    }

    /// The question, if it is still open.
    async fn open_question(&self, scope: &Scope, question: &QuestionId) -> Result<Option<Question>, ToolError> {
        let last = self.doors.questions.find(scope, &question.call).await?;
        Ok(last.filter(|(last, answer)| last.id() == *question && answer.is_none()).map(|(last, _)| last))
    }

    async fn earlier_answer(&self, scope: &Scope, question: &QuestionId) -> Result<Option<Answered>, ToolError> {
        self.doors.questions.wait(scope, question, Duration::ZERO).await
    }
}

/// Asks the guard, and writes the answer. Whoever asked for the call may always take it back, and haft itself may always say
/// that nobody wants to know any more.
async fn give(doors: &Doors, caller: &Caller, question: &Question, answer: Answer) -> Result<AnswerReceipt, ToolError> {
    refuse_what_does_not_fit(question, &answer)?;
    let takes_it_back = answer == Answer::Cancel && question.asked_by.id == caller.id;
    if !takes_it_back && caller.id.kind != CallerKind::House {
        refuse_who_is_not_meant(question, caller)?;
        doors.guard.may_answer(caller, question).await?;
    }
    if let Answer::Edit { input } = &answer {
        refuse_a_slip(doors, caller, question, input).await?;
    }
    let answered = Answered { answer, by: caller.who(), source: caller.source, at: Timestamp::now() };
    doors.questions.answer(&caller.scope, &question.id(), &PermittedAnswer(answered)).await
}

/// Takes a question away that nobody needs to answer any more, in the name of whoever that is; a call does so with its own.
/// The answer that counts is the first one.
pub(crate) async fn withdraw(
    doors: &Doors,
    scope: &Scope,
    question: &Question,
    (answer, by): (Answer, CallerRef),
) -> Result<Answered, ToolError> {
    let mine = Answered { answer, by, source: Source::House, at: Timestamp::now() };
    let mine = PermittedAnswer(mine);
    Ok(match doors.questions.answer(scope, &question.id(), &mine).await? {
        AnswerReceipt::Taken | AnswerReceipt::NoQuestion => mine.0,
        AnswerReceipt::TooLate(first) => first,
    })
}

/// A yes fills in no form, values are no yes, and a result fits its schema: otherwise the question stays open.
fn refuse_what_does_not_fit(question: &Question, answer: &Answer) -> Result<(), ToolError> {
    let call = &question.call;
    let why = match (&question.about, answer) {
        (_, Answer::Cancel | Answer::Expire) => return Ok(()),
        (About::Form(_), Answer::Fill { .. } | Answer::Reject { .. }) => return Ok(()),
        (About::Result(awaited), Answer::Result { value }) => return awaited.check(value),
        (About::Result(_), Answer::Failed { .. }) => return Ok(()),
        (
            About::Approval(_),
            Answer::Approve { .. } | Answer::Always { .. } | Answer::Edit { .. } | Answer::Reject { .. },
        ) => return Ok(()),
        (About::Form(_), _) => {
            format!("{call} asks something in the middle of its work; `haft approve {call} --input JSON` fills it in")
        }
        (About::Result(_), _) => format!("{call} waits for a result; `haft approve {call} --input JSON` gives it"),
        (About::Approval(_), _) => format!("{call} waits for a yes or a no, not for values"),
    };
    Err(ToolError::new(ErrorCode::InvalidArgs, why))
}

/// A slip in an edited input is for whoever made it to mend: the question stays open. What changes files is planned for a
/// moment, so that a path that cannot be is seen too; a command is not run for that.
async fn refuse_a_slip(doors: &Doors, caller: &Caller, question: &Question, input: &Value) -> Result<(), ToolError> {
    let (tool, mut input) = (doors.catalog.find(caller, &question.tool).await?, input.clone());
    translate(&mut input, tool.spec(), &question.tool)?;
    let validator = tool.input()?;
    if !validator.is_valid(&input) {
        return Err(issues_of(tool.spec(), validator, &input));
    }
    if !matches!(tool.spec().effect, Effect::Write | Effect::Destroy) {
        return Ok(());
    }
    let trial = CallId::new();
    let ctx = ToolCtx::detached(trial.clone(), caller.clone());
    let planned = tool.tool().prepare(&ctx, &input);
    let planned = match tokio::time::timeout(PLANNED_WITHIN, planned).await {
        Ok(planned) => planned,
        // Whatever takes so long is no slip.
        Err(_) => Ok(Prepared::Plain(Described::default())),
    };
    doors.workbench.discard(&caller.scope, &trial).await.ok();
    match planned {
        Err(error) if matches!(error.category, Category::InvalidParams | Category::Permission) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A tool may say that only some of those whom the guard lets may give its result.
fn refuse_who_is_not_meant(question: &Question, caller: &Caller) -> Result<(), ToolError> {
    match &question.about {
        About::Result(awaited) if !awaited.may_be_given_by(&caller.id) => {
            let message = format!("the result of {} is not for {} to give", question.call, caller.name);
            Err(ToolError::new(ErrorCode::Forbidden, message))
        }
        About::Result(_) | About::Form(_) | About::Approval(_) => Ok(()),
    }
}

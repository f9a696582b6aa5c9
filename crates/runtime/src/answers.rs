//! The one guarded way to answer a question. Every door goes through it, and the house too.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    About, Agreement, Answer, AnswerReceipt, Answered, CallId, Caller, CallerKind, CallerRef, Category, Doors, Effect,
    ErrorCode, Evidence, Follower, Outcome, Pipeline, Prepared, Question, QuestionId, RegisteredTool, Scope, Source,
    ToolCtx, ToolError, ToolOutput, issues::issues_of, policy::would_do, stage::resolve::translate,
};

/// How long an edited input is planned to see whether it can be.
const PLANNED_WITHIN: Duration = Duration::from_secs(5);
/// How many overdue questions are answered at once.
const EXPIRE_AT_ONCE: usize = 32;

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
    /// So many others have to say the same before it counts.
    MoreNeeded(u32),
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
            AnswerReceipt::MoreNeeded(others) => Ok(Reply::MoreNeeded(others)),
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

    /// What the call would do with another input, prepared like any call and then dropped; for whoever may answer.
    pub async fn preview_edit(
        &self,
        caller: &Caller,
        question: &Question,
        input: &Value,
    ) -> Result<Question, ToolError> {
        let doors = &*self.doors;
        refuse_who_may_not(doors, caller, question).await?;
        let (tool, input) = fitting(doors, caller, question, input).await?;
        let within = tool.spec().timeout.min(doors.limits.longest_work);
        let Some(prepared) = tried(doors, caller, (&tool, &input), within).await else {
            let message =
                format!("it was not ready within {} s; approve it with this input to run it", within.as_secs());
            return Err(ToolError::new(ErrorCode::Timeout, message));
        };
        let evidence = match prepared? {
            Prepared::Staged { output, changes, turn, isolation } => {
                Evidence::Staged { output, changes, turn, isolation }
            }
            Prepared::Plain(described) => Evidence::Plain(described),
            Prepared::CutShort(cut) => return Err(cut.error),
        };
        let effect = match &evidence {
            Evidence::Staged { changes, .. } => changes.effect(),
            Evidence::Plain(_) => tool.tool().effect(&input),
        };
        let reason = match &evidence {
            Evidence::Staged { changes, .. } => format!("it would {}", would_do(changes)),
            Evidence::Plain(_) => question.reason.clone(),
        };
        Ok(Question { input, effect, reason, about: About::Approval(evidence), ..question.clone() })
    }

    /// Answers the questions that nobody answered in time with a no, or passes them on where a rule says so. A living owner ends its call itself; that is not
    /// waited for.
    pub async fn expire(&self) -> Result<(), ToolError> {
        let overdue = self.doors.questions.overdue(&self.doors.house).await?;
        let ends = overdue.into_iter().map(|(scope, question)| async move { self.expire_one(&scope, &question).await });
        // Together they take one commit each step, not one for each of them; and each goes on when another one fails.
        let ended: Vec<Result<(), ToolError>> = stream::iter(ends).buffer_unordered(EXPIRE_AT_ONCE).collect().await;
        ended.into_iter().collect()
    }

    async fn expire_one(&self, scope: &Scope, question: &QuestionId) -> Result<(), ToolError> {
        let Some(asked) = self.open_question(scope, question).await? else { return Ok(()) };
        if self.doors.guard.escalate(scope, &asked).await? {
            return Ok(());
        }
        let receipt = give(&self.doors, &Caller::house(scope), &asked, Answer::Expire).await?;
        if receipt == AnswerReceipt::Taken
            && let Some(_in_hand) = self.claim(scope, &asked.call).await?
        {
            self.resume(scope, &asked.call, Follower::default()).await?;
        }
        Ok(())
    }

    pub(crate) async fn see_through(&self, scope: &Scope, asked: &Question) -> Result<Reply, ToolError> {
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
pub(crate) async fn give(
    doors: &Doors,
    caller: &Caller,
    question: &Question,
    mut answer: Answer,
) -> Result<AnswerReceipt, ToolError> {
    refuse_what_does_not_fit(question, &answer)?;
    let takes_it_back = answer == Answer::Cancel && question.asked_by.id == caller.id;
    if !takes_it_back && caller.id.kind != CallerKind::House {
        refuse_who_may_not(doors, caller, question).await?;
    }
    if let Answer::Edit { input } = &answer {
        refuse_a_slip(doors, caller, question, input).await?;
    }
    let is_yes = matches!(answer, Answer::Approve { .. } | Answer::Edit { .. } | Answer::Always { .. });
    let decides = is_yes || matches!((&answer, &question.about), (Answer::Reject { .. }, About::Approval(_)));
    if decides && let Agreement::MoreNeeded(others) = doors.guard.agree(caller, question, &answer).await? {
        return Ok(AnswerReceipt::MoreNeeded(others));
    }
    if let Answer::Always { grant } = &mut answer {
        grant.given_by = Some(caller.id.clone());
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
        AnswerReceipt::Taken | AnswerReceipt::MoreNeeded(_) | AnswerReceipt::NoQuestion => mine.0,
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
    let (tool, input) = fitting(doors, caller, question, input).await?;
    if !matches!(tool.spec().effect, Effect::Write | Effect::Destroy) {
        return Ok(());
    }
    match tried(doors, caller, (&tool, &input), PLANNED_WITHIN).await {
        Some(Err(error)) if matches!(error.category, Category::InvalidParams | Category::Permission) => Err(error),
        // Whatever takes so long is no slip.
        Some(Ok(_) | Err(_)) | None => Ok(()),
    }
}

/// The tool that is asked about, and an input that fits it.
async fn fitting(
    doors: &Doors,
    caller: &Caller,
    question: &Question,
    input: &Value,
) -> Result<(Arc<RegisteredTool>, Value), ToolError> {
    let (tool, mut input) = (doors.catalog.find(caller, &question.tool).await?, input.clone());
    translate(&mut input, tool.spec(), &question.tool)?;
    let validator = tool.input()?;
    if !validator.is_valid(&input) {
        return Err(issues_of(tool.spec(), validator, &input));
    }
    Ok((tool, input))
}

/// Prepares an input and drops what that has staged; `None` when it took too long.
async fn tried(
    doors: &Doors,
    caller: &Caller,
    (tool, input): (&RegisteredTool, &Value),
    within: Duration,
) -> Option<Result<Prepared<ToolOutput>, ToolError>> {
    let trial = CallId::new();
    let ctx = ToolCtx::detached(trial.clone(), caller.clone());
    let prepared = tokio::time::timeout(within, tool.tool().prepare(&ctx, input)).await;
    doors.workbench.discard(&caller.scope, &trial).await.ok();
    prepared.ok()
}

/// Asks the guard. A tool may say that only some of those whom it lets may give its result.
pub(crate) async fn refuse_who_may_not(doors: &Doors, caller: &Caller, question: &Question) -> Result<(), ToolError> {
    match &question.about {
        About::Result(awaited) if !awaited.may_be_given_by(&caller.id) => {
            let message = format!("the result of {} is not for {} to give", question.call, caller.name);
            Err(ToolError::new(ErrorCode::Forbidden, message))
        }
        About::Result(_) | About::Form(_) | About::Approval(_) => doors.guard.may_answer(caller, question).await,
    }
}

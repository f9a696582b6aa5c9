//! The forms that one piece of work puts, one after the other: durable, waited for, put away when the work ends.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::{sync::oneshot, time::Instant};

use crate::{
    About, Answer, Answered, CallEvent, Caller, Doors, ErrorCode, Form, FormAnswer, Question, ToolError,
    answers::withdraw, log::CallLog, stage::deliver::tell_of_question, work::Work,
};

/// A form on its way from a tool, and the way back.
#[derive(Debug)]
pub(crate) struct FormRequest {
    pub(crate) form: Form,
    pub(crate) reply: oneshot::Sender<Result<FormAnswer, ToolError>>,
}

/// What the work asks, and whether it waits for an answer now.
pub(crate) struct FormSession<'a> {
    doors: &'a Doors,
    open: Option<Open<'a>>,
}

/// A form that waits.
struct Open<'a> {
    question: Question,
    reply: oneshot::Sender<Result<FormAnswer, ToolError>>,
    since: Instant,
    answer: BoxFuture<'a, Result<Option<Answered>, ToolError>>,
}

/// What has come of an open form.
pub(crate) enum FormEvent {
    Answered(Answered),
    /// Nobody said anything, so the house does.
    Unanswered(Answer),
    /// Nobody can tell.
    Lost(ToolError),
}

impl<'a> FormSession<'a> {
    pub(crate) fn new(doors: &'a Doors) -> Self {
        Self { doors, open: None }
    }

    /// Whether the work waits for an answer; such time does not count.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Puts a form. The question, the call's row and its events are one transaction.
    pub(crate) async fn put(&mut self, asking: FormRequest, work: &Work<'_>, log: &mut CallLog) {
        let FormRequest { form, reply } = asking;
        let doors = self.doors;
        let within = work.request.form_wait.unwrap_or(doors.limits.answer_within);
        let question = question(form, (doors.questions.now(), within), work, log);
        let id = question.id();
        if let About::Form(form) = &question.about {
            log.note(CallEvent::Asks { question: id.number, form: form.clone() });
        }
        let entry = log.entry(work.state);
        if let Err(error) = doors.questions.ask(&log.scope, &question, entry).await {
            let _gone = reply.send(Err(error));
            return;
        }
        tell_of_question(&doors.deliveries, &log.scope, &question).await;
        let scope = log.scope.clone();
        let answer = Box::pin(async move { doors.questions.wait(&scope, &id, within).await });
        self.open = Some(Open { question, reply, since: Instant::now(), answer });
    }

    /// Waits until the open form is answered, its time is over, or the work no longer wants to know.
    pub(crate) async fn news(&mut self) -> FormEvent {
        let Some(open) = &mut self.open else { return std::future::pending().await };
        tokio::select! {
            answered = &mut open.answer => match answered {
                Ok(Some(answered)) => FormEvent::Answered(answered),
                Ok(None) => FormEvent::Unanswered(Answer::Expire),
                Err(error) => FormEvent::Lost(error),
            },
            () = open.reply.closed() => FormEvent::Unanswered(Answer::Cancel),
        }
    }

    /// Takes the form away and tells the work what came of it. The house speaks where nobody else has.
    pub(crate) async fn close(&mut self, news: FormEvent, work: &Work<'_>, log: &mut CallLog) {
        let Some(Open { question, reply, since, .. }) = self.open.take() else { return };
        log.waited += since.elapsed();
        let answered = match news {
            FormEvent::Answered(answered) => Ok(answered),
            FormEvent::Unanswered(answer) => {
                withdraw(self.doors, &log.scope, &question, (answer, Caller::house(&log.scope).who())).await
            }
            FormEvent::Lost(error) => Err(error),
        };
        let told = match answered {
            Ok(Answered { answer, by, source, .. }) => {
                let question = question.number;
                log.note(CallEvent::Answered { question, answer: answer.clone(), by, source });
                // Whoever looks at the call meanwhile sees that it goes on; what is not told now is told with its end.
                let entry = log.entry(work.state);
                let _later = work.doors.journal.record_later(&log.scope, entry).await;
                heard(answer)
            }
            Err(error) => Err(error),
        };
        let _gone = reply.send(told);
    }

    /// The work has ended: nobody should go on answering what it asked.
    pub(crate) async fn withdraw(&mut self, work: &Work<'_>, log: &mut CallLog) {
        if self.is_open() {
            self.close(FormEvent::Unanswered(Answer::Cancel), work, log).await;
        }
    }
}

/// What the work is told. An answer that is for no form cannot come; it would be none.
fn heard(answer: Answer) -> Result<FormAnswer, ToolError> {
    match answer {
        Answer::Fill { values } => Ok(FormAnswer::Accepted(values)),
        Answer::Reject { message } => Ok(FormAnswer::Declined { message }),
        Answer::Expire => {
            let message = "the tool asked something in the middle of its work, and nobody answered in time; somebody \
                           must be there when it is called again (`haft call` waits with `--wait SECONDS`)";
            Err(ToolError::new(ErrorCode::ApprovalExpired, message))
        }
        Answer::Cancel
        | Answer::Approve { .. }
        | Answer::Always { .. }
        | Answer::Edit { .. }
        | Answer::Result { .. }
        | Answer::Failed { .. }
        | Answer::TimedOut { .. } => Ok(FormAnswer::Cancelled),
    }
}

fn question(form: Form, time: (Timestamp, Duration), work: &Work<'_>, log: &mut CallLog) -> Question {
    let reason = format!("`{}` asks in the middle of its work", log.tool);
    log.question((work.request, work.effect), About::Form(form), reason, time)
}

//! A question at the terminal: the card, one line typed, the answer.

use std::{
    io::{BufRead, IsTerminal},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use haft_runtime::{
    About, Answer, AnswerReceipt, CallEvent, CallId, CallRequest, ErrorCode, Evidence, Outcome, Question, ToolError,
};
use serde_json::Value;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::{Backend, RunningCall},
    commands::{always::choose, answer::already, arguments, fill, mistake},
    show::{
        card::{Purpose, card},
        changes::DetailLevel,
        fitting,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{width, wrapped},
    },
};

/// The keys, in the order in which they are offered.
const YES: &str = "  y  yes: do exactly what the card shows";
const NO: &str = "  n  no: nothing is done; you can say why, and the caller reads it";
const LATER: &str = "  l  later: leave it open; answer with haft approve or haft reject";
const ALWAYS: &str = "  a  always: yes, and remember it; you choose how much it covers";
const EDIT: &str = "  e  edit: type the whole new input as JSON, then see what it would do";
const DIFF: &str = "  d  diff: show everything: whole diffs, all output, hidden secrets";
const SAME: &str = "  s  same: yes to this and to all that are alike";
const HELP: &str = "  ?  this help\nType a letter and press Enter.";

/// How soon a question is looked for again that is not in the store yet.
const NEXT_LOOK: Duration = Duration::from_millis(5);

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// Nobody: the question stays open for others.
    Absent,
    /// Somebody at the terminal.
    Terminal,
    /// Somebody who typed a command that is itself the yes.
    SaysYes,
}

impl Person {
    /// A person can be asked where both the question can be seen and the answer typed.
    pub(crate) fn at_the_terminal() -> Self {
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() { Self::Terminal } else { Self::Absent }
    }
}

/// Takes a call down the line, and puts its question to the person while it waits. Ctrl-C cancels it.
pub(crate) async fn see_through(backend: &Backend, mut request: CallRequest, person: &Person) -> Result<Outcome> {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let listener = request.listener.take();
    request.listener = Some(Arc::new(move |event| {
        if let Some(listener) = &listener {
            listener(event);
        }
        if matches!(event, CallEvent::NeedsApproval { .. } | CallEvent::Asks { .. }) {
            let _ = asked.send(());
        }
    }));
    let (cancel, hand_back) = (request.cancel.clone(), request.hand_back.clone());
    // One reader for the whole call: an edited input asks again.
    let mut lines = (*person == Person::Terminal).then(TerminalLines::new);
    let mut interrupts = Interrupts::listen();
    let RunningCall { id: call, ends: mut calling } = tokio::select! {
        begun = backend.begin(request) => begun?,
        () = interrupts.next() => return Err(mistake("stopped before the server had answered; `haft log` lists its calls")),
    };
    loop {
        tokio::select! {
            outcome = &mut calling => return outcome,
            Some(()) = questions.recv() => {
                let answering = answer_when_asked(backend, &call, (person, lines.as_mut()), &hand_back);
                tokio::select! {
                    // What an answer leaves behind is told before the outcome.
                    biased;
                    answered = answering => answered?,
                    outcome = &mut calling => {
                        // Somebody else has answered, behind the prompt.
                        if *person == Person::Terminal {
                            anstream::eprintln!();
                        }
                        return outcome;
                    }
                    () = interrupts.next() => stop(&cancel),
                }
            }
            () = interrupts.next() => stop(&cancel),
        }
    }
}

/// What is said of it begins behind the keys that the terminal shows.
fn stop(cancel: &CancellationToken) {
    if !cancel.is_cancelled() && std::io::stderr().is_terminal() {
        anstream::eprintln!();
    }
    cancel.cancel();
}

/// Ctrl-C, or another wish that this process ends, also when it comes while nobody waits for it.
pub(crate) struct Interrupts {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Interrupts {
    pub(crate) fn listen() -> Self {
        let heard = |kind| signal(kind).ok();
        Self { interrupt: heard(SignalKind::interrupt()), terminate: heard(SignalKind::terminate()) }
    }

    /// Returns when somebody has pressed Ctrl-C or sent SIGTERM since the last time, or since this was made.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.interrupt) => {}
            () = received(&mut self.terminate) => {}
        }
    }
}

/// Returns when the signal has come; one that cannot be heard never comes.
async fn received(signal: &mut Option<Signal>) {
    let heard = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if heard.is_none() {
        std::future::pending::<()>().await;
    }
}

/// The question is in the store a moment after the event; an edited input's child asks under its own id.
async fn answer_when_asked(
    backend: &Backend,
    call: &CallId,
    (person, lines): (&Person, Option<&mut TerminalLines>),
    hand_back: &CancellationToken,
) -> Result<()> {
    let question = loop {
        match open_question(backend, call).await {
            Ok(Some(question)) => break question,
            Ok(None) => tokio::time::sleep(NEXT_LOOK).await,
            // Whoever may call tools may not also answer for everybody.
            Err(err) if is_forbidden(&err) => {
                hand_back.cancel();
                return Ok(());
            }
            Err(err) => return Err(err),
        }
    };
    let answer = match (&question.about, lines) {
        (About::Form(form), Some(lines)) => fill::ask(backend, (&question, form), lines).await,
        (About::Form(form), None) => {
            let (call, message) = (&question.call, safe(&form.message));
            anstream::eprintln!("{WARN}asked:{WARN:#} {message}\n  haft approve {call} --input JSON");
            return std::future::pending().await;
        }
        (About::Approval(_), Some(lines)) => match ask(backend, &question, lines).await {
            Some(answer) => answer,
            None => {
                hand_back.cancel();
                return Ok(());
            }
        },
        (About::Approval(_), None) if *person == Person::SaysYes => Answer::Approve { paths: None },
        // Whoever gives a result is elsewhere.
        (About::Approval(_), None) | (About::Result(_), _) => return std::future::pending().await,
    };
    let (receipt, remembered) = backend.give_answer(&question, answer).await?;
    match receipt {
        AnswerReceipt::Taken => remembered.into_iter().for_each(|text| anstream::eprintln!("{text}")),
        AnswerReceipt::TooLate(first) => anstream::eprintln!("{WARN}{}{WARN:#}", safe(&already(call, &first))),
        AnswerReceipt::MoreNeeded(others) => anstream::eprintln!("your yes is noted; {others} more to go"),
        AnswerReceipt::NoQuestion => {}
    }
    Ok(())
}

fn is_forbidden(err: &anyhow::Error) -> bool {
    err.downcast_ref::<ToolError>().is_some_and(|error| error.code == ErrorCode::Forbidden)
}

async fn open_question(backend: &Backend, call: &CallId) -> Result<Option<Question>> {
    if let Some((question, None)) = backend.question(call).await? {
        return Ok(Some(question));
    }
    for child in backend.children(call).await? {
        if let Some((question, None)) = backend.question(&child).await? {
            return Ok(Some(question));
        }
    }
    Ok(None)
}

/// Lines typed at the terminal, read on a thread of their own so that nothing else waits for them.
pub(crate) struct TerminalLines(mpsc::Receiver<String>);

impl TerminalLines {
    pub(crate) fn new() -> Self {
        let (typed, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if typed.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    pub(crate) async fn next(&mut self, prompt: &str) -> Option<String> {
        anstream::eprint!("{prompt}");
        let line = self.0.recv().await;
        if line.is_none() {
            // Nobody has pressed Enter behind the prompt.
            anstream::eprintln!();
        }
        line
    }
}

/// What a person says to a question.
#[derive(Debug, PartialEq)]
pub(crate) enum PromptReply {
    Answer(Answer),
    /// Yes, and yes to the others that are like it.
    YesToAllAlike,
    /// None now: the question stays open.
    Later,
}

/// Shows the card and asks until the answer is clear; `None` leaves the question open. No more input means: stop the call.
pub(crate) async fn ask(backend: &Backend, question: &Question, lines: &mut TerminalLines) -> Option<Answer> {
    match ask_beside(backend, question, 0, lines).await {
        PromptReply::Answer(answer) => Some(answer),
        PromptReply::YesToAllAlike => Some(Answer::Approve { paths: None }),
        PromptReply::Later => None,
    }
}

/// The same where so many other questions are like this one and can be answered with it.
pub(crate) async fn ask_beside(
    backend: &Backend,
    question: &Question,
    others: usize,
    lines: &mut TerminalLines,
) -> PromptReply {
    anstream::eprint!("{}", card(question, DetailLevel::Short, backend.redactor()));
    let keys = PromptKeys::of(backend, question, others).await;
    loop {
        let Some(line) = lines.next(&keys.prompt()).await else { return PromptReply::Answer(Answer::Cancel) };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return PromptReply::Answer(Answer::Approve { paths: None }),
            "n" | "no" => {
                let words = lines.next("Why? (Enter to give no reason) ").await.unwrap_or_default();
                let message = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
                return PromptReply::Answer(Answer::Reject { message });
            }
            "l" | "later" => return PromptReply::Later,
            "s" | "same" if keys.others > 0 => return PromptReply::YesToAllAlike,
            "a" | "always" if keys.always => {
                if let Some(answer) = choose(backend, question, lines).await {
                    return PromptReply::Answer(answer);
                }
            }
            "e" | "edit" if keys.edit => {
                if let Some(input) = edited(backend, question, lines).await {
                    return PromptReply::Answer(Answer::Edit { input });
                }
            }
            "d" | "diff" => anstream::eprint!("{}", card(question, DetailLevel::Whole, backend.redactor())),
            "?" | "h" | "help" => anstream::eprintln!("{}", keys.help(backend, question).await),
            _ => anstream::eprintln!("Type one of {}.", keys.letters()),
        }
    }
}

/// What can be answered to a question.
struct PromptKeys {
    purpose: Purpose,
    always: bool,
    edit: bool,
    others: usize,
}

impl PromptKeys {
    /// Says why a yes cannot be remembered, and which others are alike.
    async fn of(backend: &Backend, question: &Question, others: usize) -> Self {
        // What an earlier call has staged is turned as it is: there is no input to edit, and nothing to repeat.
        let is_own = match question.evidence() {
            Some(Evidence::Staged { turn, .. }) => turn.of == question.call,
            Some(Evidence::Plain(_)) | None => true,
        };
        let offers = if is_own { backend.offers(question).await } else { Ok(Ok(Vec::new())) };
        let withheld = offers.unwrap_or_else(|err| Err(format!("{err:#}"))).err();
        if let Some(why) = &withheld {
            let sentence = format!("A yes cannot be remembered: {}", safe(why));
            anstream::eprintln!("{DIM}{}{DIM:#}", wrapped(&sentence, width()));
        }
        if others > 0 {
            anstream::eprintln!("{} more like this: [s]ame says yes to all {}", others, others + 1);
        }
        Self { purpose: Purpose::of(question), always: is_own && withheld.is_none(), edit: is_own, others }
    }

    fn prompt(&self) -> String {
        let same = if self.others > 0 { "[s]ame " } else { "" };
        let always = if self.always { "[a]lways " } else { "" };
        let edit = if self.edit { "[e]dit " } else { "" };
        format!("{STRONG}{}{STRONG:#} [y]es [n]o [l]ater {same}{always}{edit}[d]iff [?] ", self.purpose.asks())
    }

    fn letters(&self) -> String {
        let mut letters = vec!["y", "n", "l"];
        letters.extend((self.others > 0).then_some("s"));
        letters.extend(self.always.then_some("a"));
        letters.extend(self.edit.then_some("e"));
        letters.push("d");
        format!("{} or ?", letters.join(", "))
    }

    /// What the tool does, and what each key means.
    async fn help(&self, backend: &Backend, question: &Question) -> String {
        let tool = backend.describe(&question.tool).await.ok().flatten();
        let about = tool.map(|tool| format!("{}: {}", question.tool, tool.description));
        let about = about.map(|about| wrapped(&safe(&about), width()));
        let mut lines: Vec<&str> = about.as_deref().into_iter().collect();
        lines.extend([YES, NO, LATER]);
        lines.extend((self.others > 0).then_some(SAME));
        lines.extend(self.always.then_some(ALWAYS));
        lines.extend(self.edit.then_some(EDIT));
        lines.extend([DIFF, HELP]);
        lines.join("\n")
    }
}

/// The whole input that is typed in the place of the other one, as `haft approve --input` takes it. A slip is told, and
/// the question stays open.
async fn edited(backend: &Backend, question: &Question, lines: &mut TerminalLines) -> Option<Value> {
    anstream::eprintln!("{}", safe(&question.input.to_string()));
    let line = lines.next("The whole new input, as JSON (Enter keeps the old one): ").await?;
    if line.trim().is_empty() {
        return None;
    }
    let input = match serde_json::from_str(&line) {
        Ok(input) => input,
        Err(err) => {
            anstream::eprintln!("{}", fitting(&arguments::not_json(&err)));
            return None;
        }
    };
    match backend.preview_edit(question, &input).await {
        Ok(preview) => anstream::eprint!("{}", card(&preview, DetailLevel::Short, backend.redactor())),
        Err(slip) => {
            anstream::eprintln!("{WARN}{}{WARN:#}", fitting(&format!("{}: {}", slip.code, safe(&slip.message))));
            return None;
        }
    }
    let answer = lines.next(&format!("{STRONG}Do this instead?{STRONG:#} [y]es [n]o ")).await?;
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes").then_some(input)
}

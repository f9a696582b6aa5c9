//! A question at the terminal: the card, one line typed, the answer.

use std::{
    io::{BufRead, IsTerminal},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use haft_runtime::{About, Answer, AnswerReceipt, CallEvent, CallId, CallRequest, Evidence, Outcome, Question};
use serde_json::Value;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    commands::{
        always::{choose, remembered},
        fill,
    },
    house::House,
    show::{
        card::card,
        changes::DetailLevel,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{width, wrapped},
    },
};

const HELP: &str = "  y  yes: do exactly what the card shows
  n  no: nothing is done; you can say why, and the caller reads it
  a  always: yes, and remember it; you choose how much it covers
  e  edit: type the whole new input as JSON; you then see what that would do
  d  show everything: the whole output, all diffs, and what was marked as a secret
  l  where others are alike: yes to this and to all of them
  ?  this help";

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
pub(crate) async fn see_through(house: &House, mut request: CallRequest, person: &Person) -> Result<Outcome> {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let listener = request.listener.take();
    let call = request.id.clone();
    request.listener = Some(Arc::new(move |event| {
        if let Some(listener) = &listener {
            listener(event);
        }
        if matches!(event, CallEvent::NeedsApproval { .. } | CallEvent::Asks { .. }) {
            let _ = asked.send(());
        }
    }));
    let cancel = request.cancel.clone();
    // One reader for the whole call: an edited input asks again.
    let mut lines = (*person == Person::Terminal).then(TerminalLines::new);
    let mut interrupts = Interrupts::listen();
    let calling = house.pipeline.call(request);
    tokio::pin!(calling);
    loop {
        tokio::select! {
            outcome = &mut calling => return Ok(outcome),
            Some(()) = questions.recv() => {
                let answering = answer_when_asked(house, &call, person, lines.as_mut());
                tokio::select! {
                    // What an answer leaves behind is told before the outcome.
                    biased;
                    answered = answering => answered?,
                    outcome = &mut calling => return Ok(outcome),
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

/// Returns when somebody presses Ctrl-C or sends SIGTERM.
pub(crate) async fn interrupt() {
    Interrupts::listen().next().await;
}

/// The question is in the store a moment after the event; an edited input's child asks under its own id.
async fn answer_when_asked(
    house: &House,
    call: &CallId,
    person: &Person,
    lines: Option<&mut TerminalLines>,
) -> Result<()> {
    let question = loop {
        if let Some(question) = open_question(house, call).await? {
            break question;
        }
        tokio::time::sleep(NEXT_LOOK).await;
    };
    let answer = match (&question.about, lines) {
        (About::Form(form), Some(lines)) => fill::ask(house, (&question, form), lines).await,
        (About::Form(form), None) => {
            let (call, message) = (&question.call, safe(&form.message));
            anstream::eprintln!("{WARN}asked:{WARN:#} {message}\n  haft approve {call} --input JSON");
            return std::future::pending().await;
        }
        (About::Approval(evidence), Some(lines)) => ask(house, (&question, evidence), lines).await,
        (About::Approval(_), None) if *person == Person::SaysYes => Answer::Approve { paths: None },
        // Whoever gives a result is elsewhere.
        (About::Approval(_), None) | (About::Result(_), _) => return std::future::pending().await,
    };
    let remembered = remembered(house, &answer).await;
    match house.pipeline.give_answer(&house.caller, &question.id(), answer).await? {
        AnswerReceipt::Taken => remembered.into_iter().for_each(|text| anstream::eprintln!("{text}")),
        AnswerReceipt::TooLate(first) => anstream::eprintln!("{WARN}already answered by {}{WARN:#}", first.by),
        AnswerReceipt::NoQuestion => {}
    }
    Ok(())
}

async fn open_question(house: &House, call: &CallId) -> Result<Option<Question>> {
    if let Some((question, None)) = house.question(call).await? {
        return Ok(Some(question));
    }
    for child in house.store.children(&house.scope, call).await? {
        if let Some((question, None)) = house.question(&child).await? {
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
        self.0.recv().await
    }
}

/// What a person says to a question.
#[derive(Debug, PartialEq)]
pub(crate) enum PromptReply {
    Answer(Answer),
    /// Yes, and yes to the others that are like it.
    YesToAllAlike,
}

/// Shows the card and asks until the answer is clear. No more input means: stop the call.
pub(crate) async fn ask(house: &House, asked: (&Question, &Evidence), lines: &mut TerminalLines) -> Answer {
    match ask_beside(house, asked, 0, lines).await {
        PromptReply::Answer(answer) => answer,
        PromptReply::YesToAllAlike => Answer::Approve { paths: None },
    }
}

/// The same where so many other questions are like this one and can be answered with it.
pub(crate) async fn ask_beside(
    house: &House,
    (question, evidence): (&Question, &Evidence),
    others: usize,
    lines: &mut TerminalLines,
) -> PromptReply {
    anstream::eprint!("{}", card(question, DetailLevel::Short, &house.redactor));
    let what = match evidence {
        Evidence::Staged { .. } => "Commit this?",
        Evidence::Plain(_) => "Do this?",
    };
    let always = match house.pipeline.offers(&house.caller, question).await {
        Ok(_) => "[a]lways ",
        Err(why) => {
            let sentence = format!("always is withheld: {}", safe(&why.to_string()));
            anstream::eprintln!("{DIM}{}{DIM:#}", wrapped(&sentence, width()));
            ""
        }
    };
    let (offer, key) =
        if others > 0 { (format!("[l] yes to all {} alike ", others + 1), ", l") } else { <_>::default() };
    loop {
        let prompt = format!("{STRONG}{what}{STRONG:#} [y]es [n]o {always}[e]dit [d]iff {offer}[?] ");
        let Some(line) = lines.next(&prompt).await else { return PromptReply::Answer(Answer::Cancel) };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return PromptReply::Answer(Answer::Approve { paths: None }),
            "l" | "alike" if others > 0 => return PromptReply::YesToAllAlike,
            "n" | "no" => {
                let words = lines.next("Why? (Enter for no words) ").await.unwrap_or_default();
                let message = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
                return PromptReply::Answer(Answer::Reject { message });
            }
            "a" | "always" => {
                if let Some(answer) = choose(house, question, lines).await {
                    return PromptReply::Answer(answer);
                }
            }
            "e" | "edit" => {
                if let Some(input) = edited(house, question, lines).await {
                    return PromptReply::Answer(Answer::Edit { input });
                }
            }
            "d" | "diff" => anstream::eprint!("{}", card(question, DetailLevel::Whole, &house.redactor)),
            "?" | "h" | "help" => anstream::eprintln!("{HELP}"),
            other => anstream::eprintln!("`{other}` is none of y, n, a, e, d{key}, ?"),
        }
    }
}

/// The whole input that is typed in the place of the other one, as `haft approve --input` takes it. A slip is told, and
/// the question stays open.
async fn edited(house: &House, question: &Question, lines: &mut TerminalLines) -> Option<Value> {
    anstream::eprintln!("{}", safe(&question.input.to_string()));
    let line = lines.next("The whole new input, as JSON (Enter keeps the old one): ").await?;
    if line.trim().is_empty() {
        return None;
    }
    let input = match serde_json::from_str(&line) {
        Ok(input) => input,
        Err(err) => {
            anstream::eprintln!("that is not JSON: {err}");
            return None;
        }
    };
    match house.pipeline.check_edit(&house.caller, question, &input).await {
        Ok(()) => Some(input),
        Err(slip) => {
            anstream::eprintln!("{WARN}{}{WARN:#} {}", slip.code, safe(&slip.message));
            None
        }
    }
}

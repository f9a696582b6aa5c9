//! `haft approve` and `haft reject`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{About, Answer, Answered, CallId, End, Outcome, Question, Reply};
use jiff::Timestamp;

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag},
    commands::{
        alike,
        always::{Always, GrantLimits, by_flag, parse_lasting},
        arguments, fill, mistake,
        prompt::{Person, TerminalLines, ask},
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    show::{Out, outcome},
};

/// How long to wait for news of a call before looking again.
const MOMENT: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(crate) struct ApproveArgs {
    /// The call, or the beginning of its id; the only one that waits when left out
    call: Option<String>,
    /// Use this input instead; for a form its values, for a call that waits for a result the result
    #[arg(long, value_name = "JSON", conflicts_with = "always")]
    input: Option<String>,
    /// Also say yes to all that are alike: the same tool, folders and kinds of change
    #[arg(long, conflicts_with_all = ["input", "always"])]
    alike: bool,
    /// Remember the yes
    #[arg(long, value_name = "WHAT")]
    always: Option<Always>,
    /// How long to remember it: 30m, 8h, 7d [default: until it is revoked]
    #[arg(long = "for", value_name = "TIME", requires = "always", value_parser = parse_lasting)]
    lasting: Option<Duration>,
    /// How often it can be used [default: no limit]
    #[arg(long, value_name = "N", requires = "always", value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

#[derive(clap::Args)]
pub(crate) struct RejectArgs {
    /// The call, or the beginning of its id; the only one that waits when left out
    call: Option<String>,
    /// Why, in your own words; the caller reads it
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

pub(crate) async fn approve(everywhere: &Everywhere, out: &Out, args: ApproveArgs) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Waiting).await?;
    if args.call.is_none()
        && Person::at_the_terminal() == Person::Terminal
        && let Some((question, None)) = backend.question(&record.call).await?
    {
        if args.input.is_some() || args.alike || args.always.is_some() {
            let sentence = "with --input, --alike or --always the call must be named: haft approve";
            return Err(mistake(format!("{sentence} {}", record.call)));
        }
        return look_and_answer(&backend, out, &question).await;
    }
    if let Some((question, None)) = backend.question(&record.call).await?
        && let About::Form(form) = &question.about
    {
        if args.alike || args.always.is_some() {
            return Err(mistake(format!(
                "{} asks something in the middle of its work, which is answered each time by itself",
                record.call
            )));
        }
        let answer = fill::by_flag(&backend, (&question, form), args.input.as_deref()).await?;
        let exit = fill::give_and_say(&backend, out, &question, answer).await?;
        backend.leave().await?;
        return Ok(exit);
    }
    if args.alike
        && let Some((question, None)) = backend.question(&record.call).await?
    {
        let exit = alike::approve(&backend, out, &question).await?;
        backend.leave().await?;
        return Ok(exit);
    }
    let lease = GrantLimits { lasting: args.lasting, uses: args.uses };
    let wants_a_result = backend.question(&record.call).await?.is_some_and(|(question, _)| question.wants_a_result());
    let answer = match (&args.input, args.always) {
        (Some(text), _) if wants_a_result => Answer::Result { value: arguments::read(text)? },
        (Some(text), _) => Answer::Edit { input: arguments::read(text)? },
        (None, Some(always)) => by_flag(&backend, &record.call, always, lease).await?,
        (None, None) => Answer::Approve { paths: None },
    };
    let outcome = give(&backend, &record.call, answer).await?;
    let outcome = ask_for_the_child(&backend, &record.call, outcome).await?;
    let outcome = backend.whole(outcome).await;
    backend.leave().await?;
    Ok(outcome::print(*out, &outcome).or_that_of_its_command(&outcome, *out))
}

pub(crate) async fn reject(everywhere: &Everywhere, out: &Out, args: RejectArgs) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, args.call.as_deref(), DefaultCall::Waiting).await?;
    let question = backend.question(&record.call).await?;
    let answer = match &question {
        Some((question, _)) if question.wants_a_result() => {
            Answer::Failed { code: None, message: args.message.unwrap_or_else(|| "it will not be done".to_owned()) }
        }
        Some(_) | None => Answer::Reject { message: args.message },
    };
    if let Some((question, None)) = question
        && question.form().is_some()
    {
        let exit = fill::give_and_say(&backend, out, &question, answer).await?;
        backend.leave().await?;
        return Ok(exit);
    }
    let outcome = give(&backend, &record.call, answer).await?;
    backend.leave().await?;
    outcome::print(*out, &outcome);
    Ok(CliExit::Success)
}

/// Shows a question that was not named and asks. It may have come a moment ago: nobody says yes to what they have not seen.
pub(crate) async fn look_and_answer(backend: &Backend, out: &Out, question: &Question) -> Result<CliExit> {
    let mut lines = TerminalLines::new();
    let exit = match &question.about {
        About::Form(form) => {
            let answer = fill::ask(backend, (question, form), &mut lines).await;
            fill::give_and_say(backend, out, question, answer).await?
        }
        About::Approval(_) => {
            let Some(answer) = ask(backend, question, &mut lines).await else {
                backend.leave().await?;
                out.hint(&format!("it stays open: haft approve {0} or haft reject {0}", question.call));
                return Ok(CliExit::Pending);
            };
            let outcome = give(backend, &question.call, answer).await?;
            let outcome = ask_for_the_child(backend, &question.call, outcome).await?;
            let outcome = backend.whole(outcome).await;
            outcome::print(*out, &outcome).or_that_of_its_command(&outcome, *out)
        }
        About::Result(_) => {
            let call = &question.call;
            return Err(mistake(format!("{call} waits for a result: haft approve {call} --input JSON")));
        }
    };
    backend.leave().await?;
    Ok(exit)
}

/// Gives an answer and sees the call through; an answer that does not count is an error that says why.
pub(crate) async fn give(backend: &Backend, call: &CallId, answer: Answer) -> Result<Outcome> {
    let Some((question, _)) = backend.question(call).await? else {
        return Err(mistake(format!("{call} waits for no answer; `haft log show {call}` tells its story")));
    };
    let (reply, remembered) = backend.answer(&question, answer).await?;
    match reply {
        Reply::Counted(outcome) => {
            remembered.into_iter().for_each(|text| anstream::eprintln!("{text}"));
            Ok(*outcome)
        }
        Reply::Heard => {
            Err(mistake(format!("{call} got the answer to what it asked in the middle of its work, and goes on")))
        }
        Reply::MoreNeeded(others) => {
            Err(mistake(format!("your yes to {call} is noted; {others} more to go before it counts")))
        }
        Reply::TooLate(first) => Err(mistake(already(call, &first))),
        Reply::NoQuestion => {
            Err(mistake(format!("{call} waits for no answer; `haft log show {call}` tells its story")))
        }
    }
}

/// Why an answer came too late: what the first one was.
pub(crate) fn already(call: &CallId, first: &Answered) -> String {
    if first.answer == Answer::Expire {
        return format!("{call} expired at {}: nobody answered in time", clock(first.at));
    }
    format!("{call} was already answered: {}", told(first))
}

/// The time of day, with the day unless that is today.
fn clock(at: Timestamp) -> String {
    let today = Timestamp::now().strftime("%Y-%m-%d").to_string() == at.strftime("%Y-%m-%d").to_string();
    at.strftime(if today { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" }).to_string()
}

/// What somebody decided, in words.
pub(crate) fn told(first: &Answered) -> String {
    let what = match &first.answer {
        Answer::Approve { paths: None } => "yes".to_owned(),
        Answer::Approve { paths: Some(paths) } => format!("yes to {}", paths.join(", ")),
        Answer::Always { grant } => format!("yes, always: {}", grant.id),
        Answer::Edit { .. } => "yes to an edited input".to_owned(),
        Answer::Fill { .. } => "filled in".to_owned(),
        Answer::Result { .. } => "the result was given".to_owned(),
        Answer::Failed { message, .. } => format!("it failed: {message}"),
        Answer::TimedOut { after_ms } => format!("it timed out after {after_ms} ms"),
        Answer::Reject { message: None } => "no".to_owned(),
        Answer::Reject { message: Some(message) } => format!("no, “{message}”"),
        Answer::Cancel => "cancelled".to_owned(),
        Answer::Expire => "nobody answered in time".to_owned(),
    };
    let at = clock(first.at);
    if first.answer == Answer::Expire { format!("{what} ({at})") } else { format!("{what} (by {} at {at})", first.by) }
}

/// An edited input is a call of its own, whose card is shown at once.
async fn ask_for_the_child(backend: &Backend, parent: &CallId, outcome: Outcome) -> Result<Outcome> {
    let child = match &outcome.end {
        End::Pending { pending } if pending.pending_tool_call_id != *parent => pending.pending_tool_call_id.clone(),
        End::Success { .. }
        | End::Error { .. }
        | End::Rejected { .. }
        | End::Pending { .. }
        | End::Cancelled { .. } => {
            return Ok(outcome);
        }
    };
    // It is about to ask, or to end without asking.
    let question = loop {
        let news = backend.question_news();
        if let Some((question, None)) = backend.question(&child).await? {
            break question;
        }
        tokio::select! {
            () = news => {}
            ended = backend.ended(&child, MOMENT) => {
                if let Some(ended) = ended? {
                    return Ok(ended);
                }
            }
        }
    };
    if Person::at_the_terminal() != Person::Terminal {
        return Ok(outcome);
    }
    let mut lines = TerminalLines::new();
    match &question.about {
        About::Approval(_) => match ask(backend, &question, &mut lines).await {
            Some(answer) => give(backend, &child, answer).await,
            None => Ok(outcome),
        },
        About::Form(form) => {
            let answer = fill::ask(backend, (&question, form), &mut lines).await;
            fill::give(backend, &question, answer).await?;
            Ok(outcome)
        }
        About::Result(_) => Ok(outcome),
    }
}

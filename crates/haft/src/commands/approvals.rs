//! `haft approvals`

use std::collections::HashSet;

use anyhow::Result;
use haft_runtime::{About, Answer, Question, QuestionId, Redactor, Within};
use serde_json::Value;

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag},
    commands::{
        alike::{alike, approve, grouped},
        answer::give,
        fill, open_backend,
        prompt::{Interrupts, PromptReply, TerminalLines, ask_beside},
        which::open_named,
    },
    exit::CliExit,
    show::{
        Out,
        card::card,
        changes::DetailLevel,
        outcome,
        style::{DIM, STRONG},
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Wait, and answer each question as it arrives
    #[arg(long)]
    watch: bool,
    /// Show the questions of all workspaces
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let backend = open_backend(everywhere).await?;
    let within = if args.all { Within::Everything } else { backend.within().clone() };
    if args.watch {
        return watch(everywhere, out, &backend, &within).await;
    }
    let open = backend.open_questions(&within).await?;
    backend.leave().await?;
    if out.json {
        out.document(&documents(&open, backend.redactor()));
        return Ok(CliExit::Success);
    }
    if open.is_empty() {
        out.line("nothing waits for an answer");
        out.hint("`haft approvals --watch` waits and asks as questions arrive");
    }
    for group in grouped(&open) {
        if group.len() > 1 {
            let call = &group[0].call;
            out.line(&format!("{STRONG}{} alike{STRONG:#}  {DIM}haft approve {call} --alike{DIM:#}\n", group.len()));
        }
        for question in group {
            out.text(&card(question, DetailLevel::Short, backend.redactor()));
            let values = if question.evidence().is_none() { " --input JSON" } else { "" };
            out.line(&format!("{DIM}yes  haft approve {0}{values}\nno   haft reject {0}{DIM:#}\n", question.call));
        }
    }
    Ok(CliExit::Success)
}

/// The open questions, each with the calls that are like it.
fn documents(open: &[Question], redactor: &Redactor) -> Vec<Value> {
    let groups = grouped(open);
    let with_its_like = |question: &Question| {
        let group = groups.iter().find(|group| group.iter().any(|other| other.call == question.call));
        let calls = group.into_iter().flatten().map(|other| &other.call).filter(|call| **call != question.call);
        let mut document = redacted(question, redactor);
        document["alike"] = calls.map(ToString::to_string).collect();
        document
    };
    open.iter().map(with_its_like).collect()
}

/// A question as programs see it. Its changes stay as they are: nothing that a yes commits is out of sight.
fn redacted(question: &Question, redactor: &Redactor) -> Value {
    let mut exact = serde_json::to_value(question).unwrap_or_default();
    if let Some(fields) = exact.as_object_mut() {
        let call = fields.shift_remove("call");
        fields.shift_insert(0, "callId".to_owned(), call.unwrap_or_default());
    }
    let mut shown = redactor.value(&exact);
    let changes = "/evidence/staged/changes";
    if let (Some(shown), Some(exact)) = (shown.pointer_mut(changes), exact.pointer(changes)) {
        shown.clone_from(exact);
    }
    shown
}

/// Asks one question after the other, until Ctrl-C or the end of input.
async fn watch(everywhere: &Everywhere, out: &Out, backend: &Backend, within: &Within) -> Result<CliExit> {
    out.hint("waiting for questions; Ctrl-C ends");
    let mut lines = TerminalLines::new();
    let mut left = HashSet::new();
    let mut interrupts = Interrupts::listen();
    loop {
        let question = tokio::select! {
            question = next(backend, within, &left) => question?,
            () = interrupts.next() => break,
        };
        let (id, others) = (question.id(), alike(backend, &question).await?.len());
        let said = tokio::select! {
            said = ask(backend, &question, others, &mut lines) => said,
            () = answered_elsewhere(backend, &id) => {
                anstream::eprintln!("\n{DIM}answered elsewhere{DIM:#}");
                continue;
            }
            () = interrupts.next() => break,
        };
        if said == PromptReply::Answer(Answer::Cancel) {
            break;
        }
        let (its_backend, _) = open_named(everywhere, question.call.as_str()).await?;
        let answered = match said {
            PromptReply::Answer(answer) if question.form().is_some() => {
                fill::give_and_say(&its_backend, out, &question, answer).await.map(drop)
            }
            PromptReply::Answer(answer) => give(&its_backend, &question.call, answer).await.map(|ended| {
                outcome::print(*out, &ended);
            }),
            PromptReply::YesToAllAlike => approve(&its_backend, out, &question).await.map(drop),
            PromptReply::Later => Ok(()),
        };
        if let Err(err) = answered {
            anstream::eprintln!("{err:#}");
        }
        left.insert(id);
        its_backend.close().await?;
    }
    backend.leave().await?;
    Ok(CliExit::Success)
}

async fn ask(backend: &Backend, question: &Question, others: usize, lines: &mut TerminalLines) -> PromptReply {
    match &question.about {
        About::Form(form) => PromptReply::Answer(fill::ask(backend, (question, form), lines).await),
        About::Approval(_) => ask_beside(backend, question, others, lines).await,
        // A result comes from a program, or from `haft approve CALL --input JSON`.
        About::Result(_) => std::future::pending().await,
    }
}

/// The oldest open question that was not looked at yet; waits for one.
async fn next(backend: &Backend, within: &Within, left: &HashSet<QuestionId>) -> Result<Question> {
    loop {
        let news = backend.question_news();
        let open = backend.open_questions(within).await?;
        if let Some(question) =
            open.into_iter().find(|question| !left.contains(&question.id()) && !question.wants_a_result())
        {
            return Ok(question);
        }
        news.await;
    }
}

async fn answered_elsewhere(backend: &Backend, asked: &QuestionId) {
    loop {
        let news = backend.question_news();
        if !matches!(backend.question(&asked.call).await, Ok(Some((last, None))) if last.id() == *asked) {
            return;
        }
        news.await;
    }
}

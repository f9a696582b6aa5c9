//! Questions that are alike: listed together, answered together, each with its own answer.

use anyhow::Result;
use haft_runtime::{Answer, Outcome, Question, Within};

use crate::{backend::Backend, commands::answer::give, exit::CliExit, show::Out, show::outcome};

/// The open questions in groups that one answer fits; a group stands where its oldest question does.
pub(crate) fn grouped(open: &[Question]) -> Vec<Vec<&Question>> {
    let mut groups: Vec<Vec<&Question>> = Vec::new();
    for question in open {
        match groups.iter_mut().find(|group| are_alike(group[0], question)) {
            Some(group) => group.push(question),
            None => groups.push(vec![question]),
        }
    }
    groups
}

fn are_alike(one: &Question, other: &Question) -> bool {
    one.signature().is_some_and(|signature| other.signature() == Some(signature))
}

/// The other open questions that an answer to this one fits as well.
pub(crate) async fn alike(backend: &Backend, question: &Question) -> Result<Vec<Question>> {
    let within = question.workspace.clone().map_or(Within::Everything, Within::Only);
    let mut open = backend.open_questions(&within).await?;
    open.retain(|other| other.call != question.call && are_alike(question, other));
    Ok(open)
}

/// Says yes to a question and to all that are like it. Each is a call with its own answer, and somebody else may have
/// been earlier with one of them.
pub(crate) async fn approve(backend: &Backend, out: &Out, question: &Question) -> Result<CliExit> {
    let others = alike(backend, question).await?;
    let mut exit = CliExit::Success;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for each in std::iter::once(question).chain(&others) {
        match give(backend, &each.call, Answer::Approve { paths: None }).await {
            Ok(outcome) => {
                exit = exit.or_worse(if out.json { CliExit::from(&outcome) } else { outcome::print(*out, &outcome) });
                outcomes.push(outcome);
            }
            Err(err) => {
                anstream::eprintln!("{err:#}");
                exit = exit.or_worse(CliExit::Failure);
            }
        }
    }
    if out.json {
        out.document(&outcomes);
    }
    Ok(exit)
}

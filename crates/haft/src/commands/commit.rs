//! `haft commit`

use anyhow::Result;
use haft_runtime::{Answer, CallRequest, Evidence, Turn};
use serde_json::json;

use crate::{
    cli::{Everywhere, ServerFlag},
    commands::{
        answer::{give, look_and_answer},
        mistake,
        prompt::{Person, see_through},
        which::{DefaultCall, names_a_call, open_call},
    },
    exit::CliExit,
    show::{Out, outcome},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call, or the beginning of its id; the last one with something to commit when left out
    call: Option<String>,
    /// Only these paths; everything that is staged when left out
    paths: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

/// While the question is open this is a yes to those paths; later it is a call of its own.
pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: Args) -> Result<CliExit> {
    let Args { call, mut paths, .. } = args;
    let call = call.filter(|word| {
        let names_a_call = names_a_call(word);
        if !names_a_call {
            paths.insert(0, word.clone());
        }
        names_a_call
    });
    let (backend, record) = open_call(everywhere, out, call.as_deref(), DefaultCall::Staged).await?;
    let paths = (!paths.is_empty()).then_some(paths);
    let question = backend.question(&record.call).await?;
    if let (None, None, Some((question, None))) = (&call, &paths, &question)
        && Person::at_the_terminal() == Person::Terminal
    {
        return look_and_answer(&backend, out, question).await;
    }
    let ended = if let Some((question, None)) = question {
        let Some(evidence) = question.evidence() else {
            return Err(mistake(format!(
                "{0} waits for values, not for a yes; `haft approve {0} --input JSON` answers",
                question.call
            )));
        };
        // A slip of the finger is no answer: the question stays open.
        if let (Evidence::Staged { turn, .. }, Some(_)) = (evidence, &paths) {
            backend.check_turn(&Turn { paths: paths.clone(), ..turn.clone() }).await?;
        }
        give(&backend, &record.call, Answer::Approve { paths }).await?
    } else {
        let input = json!({"callId": record.call, "paths": paths});
        let mut request = CallRequest::new(backend.caller_in(&record.scope), "commit_call", input);
        request.wait = std::time::Duration::from_secs(60);
        see_through(&backend, request, &Person::SaysYes).await?
    };
    backend.leave().await?;
    Ok(outcome::print(*out, &ended))
}

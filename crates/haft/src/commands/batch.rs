//! `haft batch`

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use futures_util::StreamExt;
use haft_runtime::{CallListener, CallRequest, Outcome, Wish};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Everywhere,
    commands::{
        flags::CallOptions,
        open,
        prompt::{Interrupts, Person},
        whole,
        wishes::{self, BatchLine},
    },
    exit::CliExit,
    house::House,
    show::{
        Out,
        report::{BatchReport, ReportedLine},
        stream::old_name,
        style::WARN,
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// JSON Lines, each {"tool": NAME, "input": {…}, "id": anything}, from a file, or - for standard input
    #[arg(value_name = "FILE | -")]
    file: String,
    #[command(flatten)]
    options: CallOptions,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let source = wishes::open(&args.file)?;
    let house = open(everywhere).await?;
    let stop = CancellationToken::new();
    let mut report = BatchReport::new(*out);
    {
        let listener = (!out.json).then(warning_once);
        let lines = wishes::read(source).map(|line| {
            let tag = (line.number, line.id.clone(), line.call.is_ok());
            (tag, wish(&house, &args.options, line, &stop, listener.as_ref()))
        });
        let outcomes = house.pipeline.batch(lines, &stop);
        tokio::pin!(outcomes);
        let mut interrupts = Interrupts::listen();
        loop {
            let next = tokio::select! {
                next = outcomes.next() => next,
                _ = interrupts.next(), if !stop.is_cancelled() => {
                    stop.cancel();
                    continue;
                }
            };
            let Some(((number, id, is_a_call), outcome)) = next else { break };
            let line = ReportedLine { number, id: id.as_ref(), is_a_call };
            if report.take(&line, &whole(&house, outcome).await).is_err() {
                stop.cancel();
            }
        }
    }
    house.leave().await?;
    Ok(if stop.is_cancelled() { report.stopped() } else { report.ended() })
}

fn wish(
    house: &House,
    options: &CallOptions,
    line: BatchLine,
    stop: &CancellationToken,
    listener: Option<&CallListener>,
) -> Wish {
    match line.call {
        Ok(call) => {
            let mut request = CallRequest::new(house.caller.clone(), call.tool, call.input);
            options.lay_over(&mut request, &house.settings, Person::Absent);
            request.cancel = stop.child_token();
            request.listener = listener.map(Arc::clone);
            Wish::Call(Box::new(request))
        }
        Err(error) => Wish::Unreadable(Box::new(Outcome::refused("", error))),
    }
}

/// Warns of each old name the first time it is used.
fn warning_once() -> CallListener {
    let warned = Mutex::new(HashSet::new());
    Arc::new(move |event| {
        if let Some(warning) = old_name(event)
            && warned.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.clone())
        {
            anstream::eprintln!("{WARN}warning:{WARN:#} {warning}");
        }
    })
}

//! One of many processes that want the same thing at once, for the tests: `contend <data folder> <what> [id]`.
#![expect(clippy::print_stdout, reason = "the test reads what this process prints")]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::{io::Read, path::PathBuf, time::Duration};

use haft_runtime::{
    Answer, AnswerReceipt, Answered, AutoApprove, CallEvent, CallId, CallState, Caller, ClaimResult, Entry, GrantId,
    HouseWide, Journal, Opening, PermittedAnswer, QuestionId, Questions, Scope, Source, Within,
};
use haft_store::{Faults, Store, StoreError};
use jiff::Timestamp;
use serde_json::json;

#[path = "../tests/store/database.rs"]
mod database;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (store, what, id) = match opened().await {
        Ok(opened) => opened,
        Err(err) => return println!("refused: {err}"),
    };
    println!("ready");
    contend(&store, &what, &id).await;
    store.close().await.unwrap();
}

/// The store, what is wanted of it, and of which call or grant.
async fn opened() -> Result<(Store, String, String), StoreError> {
    let mut words = std::env::args().skip(1);
    let data = PathBuf::from(words.next().unwrap());
    let what = words.next().unwrap();
    let id = words.next().unwrap_or_default();
    let mut options = database::options(data.parent().unwrap());
    if what == "late" {
        let longest_delay = Duration::from_millis(id.parse().unwrap());
        options.faults = Some(Faults { conflicts: 0, cut_commits: 0, longest_delay });
    }
    Ok((Store::open(&data, options).await?, what, id))
}

async fn contend(store: &Store, what: &str, id: &str) {
    let scope = Scope::local("w");
    match what {
        "open" => println!("opened"),
        "answer" => {
            wait_for_the_start();
            let receipt = store.answer(&scope, &QuestionId { call: call(id), number: 1 }, &yes(store)).await.unwrap();
            println!("{}", if receipt == AnswerReceipt::Taken { "won" } else { "lost" });
        }
        "spend" => {
            wait_for_the_start();
            let won = store.spend(&scope, &GrantId::parse(id).unwrap()).await.unwrap();
            println!("{}", if won { "won" } else { "lost" });
        }
        "claim" => {
            wait_for_the_start();
            println!(
                "{}",
                if store.claim(&scope, &call(id)).await.unwrap() == ClaimResult::Claimed { "won" } else { "lost" }
            );
            // An owner that is gone could be followed by the next one.
            wait_for_the_start();
        }
        "abandoned" => {
            wait_for_the_start();
            for taken in store.abandoned(&HouseWide::of_house(Within::Everything)).await.unwrap() {
                println!("{}", taken.call);
            }
            println!("done");
            wait_for_the_start();
        }
        "stop" => println!("{}", store.want_stop(&scope, &call(id)).await.unwrap()),
        "hold" => {
            for state in [CallState::Preparing, CallState::Executing, CallState::Waiting] {
                let entry = opening(state);
                println!("{}", entry.call);
                store.record(&scope, entry).await.unwrap();
            }
            println!("held");
            wait_for_the_start();
        }
        "write" => loop {
            let entry = opening(CallState::Executing);
            let id = entry.call.clone();
            store.record(&scope, entry).await.unwrap();
            println!("{id}");
        },
        "late" => {
            wait_for_the_start();
            write_together(store, &scope).await;
            println!("done");
            wait_for_the_start();
        }
        other => println!("what is {other}?"),
    }
}

fn yes(store: &Store) -> PermittedAnswer {
    let by = Caller::owner(store.owner(), Scope::local("w"), Source::Cli).who();
    let answer = Answer::Approve { paths: None };
    PermittedAnswer::unchecked(Answered { answer, by, source: Source::Cli, at: Timestamp::now() })
}

/// The parent writes a byte when all are ready, or closes the pipe.
fn wait_for_the_start() {
    std::io::stdin().read_exact(&mut [0]).ok();
}

fn call(id: &str) -> CallId {
    CallId::parse(id).unwrap()
}

/// Five times twelve entries at once; each is told when it is acknowledged.
async fn write_together(store: &Store, scope: &Scope) {
    for _ in 0..5 {
        let entries: Vec<Entry> = (0..12).map(|_| three_events()).collect();
        let ids: Vec<CallId> = entries.iter().map(|entry| entry.call.clone()).collect();
        let writes = entries.into_iter().map(|entry| store.record(scope, entry));
        futures_util::future::try_join_all(writes).await.unwrap();
        ids.iter().for_each(|id| println!("{id}"));
    }
}

fn three_events() -> Entry {
    let entry = opening(CallState::Executing);
    let events = (1..=3).map(|attempt| (Timestamp::now(), CallEvent::Started { attempt })).collect();
    Entry { events, ..entry }
}

fn opening(state: CallState) -> Entry {
    let at = Timestamp::now();
    Entry {
        call: CallId::new(),
        via: std::sync::Arc::default(),
        opening: Some(Opening {
            tool: "write_file".into(),
            input: json!({}),
            parent: None,
            caller: Caller::owner("contender", Scope::local("w"), Source::Cli).record(),
            auto_approve: AutoApprove::Reads,
            at,
        }),
        state,
        turn: None,
        outcome: None,
        whole_output: None,
        result_of: None,
        events: vec![(at, CallEvent::Started { attempt: 1 })],
    }
}

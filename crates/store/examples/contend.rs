//! One of many processes that want the same thing at once, for the tests: `contend <data folder> <what> [id]`.
#![expect(clippy::print_stdout, reason = "the test reads what this process prints")]
#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::{io::Read, path::PathBuf};

use haft_runtime::{
    Answer, AnswerReceipt, Answered, AutoApprove, CallEvent, CallId, CallState, Caller, Entry, GrantId, HouseWide,
    Journal, Opening, PermittedAnswer, QuestionId, Questions, Scope, Source, Within,
};
use haft_store::{Store, Sync};
use jiff::Timestamp;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let data = PathBuf::from(words.next().unwrap());
    let what = words.next().unwrap();
    let id = words.next().unwrap_or_default();
    let store = match Store::open(&data, Sync::Normal).await {
        Ok(store) => store,
        Err(err) => return println!("refused: {err}"),
    };
    println!("ready");
    let scope = Scope::local("w");
    match what.as_str() {
        "open" => println!("opened"),
        "answer" => {
            wait_for_the_start();
            let receipt = store.answer(&scope, &QuestionId { call: call(&id), number: 1 }, &yes(&store)).await.unwrap();
            println!("{}", if receipt == AnswerReceipt::Taken { "won" } else { "lost" });
        }
        "spend" => {
            wait_for_the_start();
            let won = store.spend(&scope, &GrantId::parse(&id).unwrap()).await.unwrap();
            println!("{}", if won { "won" } else { "lost" });
        }
        "claim" => {
            wait_for_the_start();
            println!("{}", if store.claim(&scope, &call(&id)).await.unwrap() { "won" } else { "lost" });
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
        "stop" => println!("{}", store.want_stop(&scope, &call(&id)).await.unwrap()),
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
        other => println!("what is {other}?"),
    }
    store.close().await.unwrap();
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

fn opening(state: CallState) -> Entry {
    let at = Timestamp::now();
    Entry {
        call: CallId::new(),
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
        events: vec![(at, CallEvent::Started { attempt: 1 })],
    }
}

//! Many calls at once: never more than eight, and always with the end that one after the other would have.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{StreamExt, stream};
use haft::house::House;
use haft_runtime::{
    AutoApprove, CallRequest, Effect, ErrorCode, Outcome, Output, Ran, Tool, ToolCtx, ToolError, ToolFacts, Wish, typed,
};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, request};

async fn batch(house: &House, calls: Vec<CallRequest>) -> Vec<(usize, Outcome)> {
    let wishes = calls.into_iter().map(|call| Wish::Call(Box::new(call))).enumerate();
    house.pipeline.batch(stream::iter(wishes), &CancellationToken::new()).collect().await
}

/// Goes on when eight are there, and knows how many there were at once.
struct Meeting {
    eight: Barrier,
    here: AtomicUsize,
    most: AtomicUsize,
}

/// Meets others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Met {}

impl Output for Met {
    fn text(&self) -> String {
        String::new()
    }
}

struct Meet(Arc<Meeting>);

impl Tool for Meet {
    type Input = Nothing;
    type Output = Met;
    const FACTS: ToolFacts = ToolFacts::new("meet", "test", Effect::Read);

    async fn run(&self, _ctx: &ToolCtx, _input: Nothing) -> Result<Ran<Met>, ToolError> {
        let here = self.0.here.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(here, Ordering::SeqCst);
        self.0.eight.wait().await;
        self.0.here.fetch_sub(1, Ordering::SeqCst);
        Ok(Ran::plain(Met {}))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_are_under_way_at_once_and_never_more() {
    let stage = Stage::new();
    let house = stage.house().await;
    let meeting = Arc::new(Meeting { eight: Barrier::new(8), here: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    house.registry.register(typed(Meet(meeting.clone()))).unwrap();
    let outcomes = batch(&house, (0..64).map(|_| request(&house, "meet", json!({}))).collect()).await;
    assert!(outcomes.iter().enumerate().all(|(at, (tag, outcome))| at == *tag && outcome.end.status() == "success"));
    assert_eq!((outcomes.len(), meeting.most.load(Ordering::SeqCst)), (64, 8));
}

/// Acts, and says whether anybody else was at work meanwhile.
struct Alone(Arc<Meeting>);

impl Tool for Alone {
    type Input = Nothing;
    type Output = Met;
    const FACTS: ToolFacts = ToolFacts::new("alone", "test", Effect::Write);

    async fn run(&self, _ctx: &ToolCtx, _input: Nothing) -> Result<Ran<Met>, ToolError> {
        for _ in 0..20 {
            if self.0.here.load(Ordering::SeqCst) != 0 {
                return Err(ToolError::new(ErrorCode::ExecutionError, "somebody is here"));
            }
            tokio::task::yield_now().await;
        }
        Ok(Ran::plain(Met {}))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_change_something_is_alone() {
    let stage = Stage::new();
    let house = stage.house().await;
    let meeting = Arc::new(Meeting { eight: Barrier::new(4), here: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    house.registry.register(typed(Meet(meeting.clone()))).unwrap();
    house.registry.register(typed(Alone(meeting.clone()))).unwrap();
    let calls = (0..50).map(|at| {
        let mut call = request(&house, if at % 5 == 4 { "alone" } else { "meet" }, json!({}));
        call.auto_approve = AutoApprove::Everything;
        call
    });
    for (_, outcome) in batch(&house, calls.collect()).await {
        assert_eq!(outcome.end.status(), "success", "{outcome:?}");
    }
    assert_eq!(meeting.most.load(Ordering::SeqCst), 4, "those between two of them run at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_dropped_cancels_its_calls() {
    let stage = Stage::new();
    let house = stage.house().await;
    let meeting = Arc::new(Meeting { eight: Barrier::new(9), here: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    house.registry.register(typed(Meet(meeting.clone()))).unwrap();
    let calls: Vec<CallRequest> = (0..8).map(|_| request(&house, "meet", json!({}))).collect();
    let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
    {
        let running = batch(&house, calls);
        tokio::pin!(running);
        while meeting.here.load(Ordering::SeqCst) < 8 {
            tokio::select! {
                outcomes = &mut running => panic!("they cannot end: {outcomes:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    for id in ids {
        let patience = std::time::Duration::from_secs(60);
        let ended = haft_runtime::Journal::ended(&house.store, &house.scope, &id, patience).await.unwrap();
        assert_eq!(ended.unwrap().end.status(), "cancelled");
    }
}

/// One call on one of a few paths, so that they often meet.
fn any_call() -> impl Strategy<Value = (String, Value)> {
    let path = prop::sample::select(vec!["a", "b", "d/c", "d"]);
    let word = prop::sample::select(vec!["one", "two", "three"]);
    let reads = path.clone().prop_map(|path| ("read_file", json!({"path": path})));
    let lists = prop_oneof![Just("."), Just("d")].prop_map(|path| ("list_directory", json!({"path": path})));
    let writes = (path.clone(), word.clone()).prop_map(|(path, word)| {
        ("write_file", json!({"path": path, "content": format!("{word}\n"), "createDirs": true}))
    });
    let edits = (path.clone(), word.clone(), word)
        .prop_map(|(path, old, new)| ("edit", json!({"path": path, "old": old, "new": new})));
    let deletes = path.prop_map(|path| ("delete_file", json!({"path": path, "recursive": true})));
    let nonsense = Just(("write_file", json!({"path": 5})));
    prop_oneof![4 => reads, 2 => lists, 2 => writes, 2 => edits, 1 => deletes, 1 => nonsense]
        .prop_map(|(tool, input)| (tool.to_owned(), input))
}

/// What differs between two runs of the same calls is taken out.
fn steady(outcome: &Outcome) -> Value {
    let id = outcome.tool_call_id.to_string();
    let text = serde_json::to_string(outcome).unwrap().replace(&id, "(id)");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    take_out(&mut value);
    value
}

fn take_out(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !matches!(name.as_str(), "started_at" | "finished_at" | "execution_time_ms" | "expiresAt")
                    && !matches!(name.as_str(), "modified" | "cached" | "attempts")
            });
            fields.values_mut().for_each(take_out);
        }
        Value::Array(items) => items.iter_mut().for_each(take_out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn tree(folder: &Path, found: &mut BTreeMap<String, Option<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.insert(name, None);
            tree(&path, found);
        } else {
            found.insert(name, fs::read_to_string(&path).ok());
        }
    }
}

#[derive(PartialEq, Eq)]
enum Way {
    AtOnce,
    InTurn,
}

type Seen = (Vec<Value>, BTreeMap<String, Option<String>>);

async fn play(calls: &[(String, Value)], mode: AutoApprove, way: Way) -> Seen {
    let stage = Stage::new();
    stage.put("a", "one\ntwo\n");
    let house = stage.house().await;
    let wish = |(tool, input): &(String, Value)| {
        let mut wish = request(&house, tool, input.clone());
        wish.auto_approve = mode;
        wish
    };
    let mut outcomes = Vec::new();
    if way == Way::AtOnce {
        let all = batch(&house, calls.iter().map(wish).collect()).await;
        outcomes.extend(all.iter().map(|(_, outcome)| steady(outcome)));
    } else {
        for call in calls {
            outcomes.push(steady(&house.pipeline.call(wish(call)).await));
        }
    }
    let mut found = BTreeMap::new();
    tree(&stage.path(""), &mut found);
    (outcomes, found)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn at_once_is_the_same_as_one_after_the_other(
        calls in prop::collection::vec(any_call(), 1..20),
        mode in prop_oneof![3 => Just(AutoApprove::Everything), 1 => Just(AutoApprove::Reads)],
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let (at_once, in_turn) = runtime.block_on(async {
            (play(&calls, mode, Way::AtOnce).await, play(&calls, mode, Way::InTurn).await)
        });
        prop_assert_eq!(at_once, in_turn);
    }
}

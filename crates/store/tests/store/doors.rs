//! What goes in by a door comes out by it.

use std::{sync::Arc, time::Duration};

use haft_runtime::{
    AnswerReceipt, CallEvent, CallRecord, CallState, Direction, End, HouseWide, Journal, Question, Questions, Scope,
    TenantId, ToolOutput, Turn, Within, WorkspaceId,
};
use haft_store::{CallFilter, QuestionFilter};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use serde_json::json;

use crate::database::is_elsewhere;
use crate::samples::{
    Answering, answered, ended, first, grant, here, house, later, new_store, now, open, opened, outcome, pending,
    question, scope, success,
};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_call_is_read_back_as_it_was_recorded() {
    let (_folder, store) = new_store().await;
    let (first, call) = (opened(CallState::Preparing), opened(CallState::Preparing).call);
    let first = haft_runtime::Entry { call: call.clone(), ..first };
    let opening = first.opening.clone().unwrap();
    store.record(&scope(), first.clone()).await.unwrap();
    let found = Journal::find(&store, &scope(), &call).await.unwrap().unwrap();
    let expected = CallRecord {
        call: call.clone(),
        opening,
        scope: scope(),
        state: CallState::Preparing,
        turn: None,
        outcome: None,
    };
    assert_eq!(found, expected);

    store.record(&scope(), later(&call, CallState::Executing)).await.unwrap();
    let last = ended(&call);
    store.record(&scope(), last.clone()).await.unwrap();
    let found = Journal::find(&store, &scope(), &call).await.unwrap().unwrap();
    let expected = CallRecord {
        state: CallState::Ended,
        turn: last.turn,
        outcome: last.outcome.map(Arc::unwrap_or_clone),
        ..expected
    };
    assert_eq!(found, expected);

    let events = store.events(&scope(), &call).await.unwrap();
    let kinds: Vec<CallEvent> = events.iter().map(|(_, _, event)| event.clone()).collect();
    assert_eq!(kinds[0], first.events[0].1);
    assert_eq!(
        kinds[1..],
        [CallEvent::Started { attempt: 1 }, CallEvent::Completed { execution_time_ms: 7, late: false }]
    );
    assert!(events.is_sorted_by_key(|(cursor, _, _)| *cursor));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_nobody_knows_is_looked_up_without_waiting_for_the_writer() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    let mut other = Connection::open(folder.path().join("data/haft.db")).unwrap();
    let writing = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    store.record_later(&scope(), opened(CallState::Preparing)).await.unwrap();
    let unknown = opened(CallState::Preparing).call;
    let found = tokio::time::timeout(Duration::from_secs(2), Journal::find(&store, &scope(), &unknown)).await;
    assert_eq!(found.expect("it waited for the writer").unwrap(), None);
    drop(writing);
    store.caught_up().await.unwrap();
}

#[tokio::test]
async fn the_whole_output_comes_before_the_one_in_the_envelope() {
    let (_folder, store) = new_store().await;
    let mut short = opened(CallState::Ended);
    short.outcome = Some(success(&short.call, "all of it"));
    let mut long = opened(CallState::Ended);
    long.outcome = Some(success(&long.call, "head … tail"));
    long.whole_output = Some(ToolOutput { content: "head, middle, tail".into(), ..ToolOutput::default() });
    let mut waits = opened(CallState::Waiting);
    waits.outcome = Some(pending(&waits.call));
    for entry in [&short, &long, &waits] {
        store.record(&scope(), entry.clone()).await.unwrap();
    }
    assert_eq!(store.output(&scope(), &short.call).await.unwrap().unwrap().content, "all of it");
    assert_eq!(store.output(&scope(), &long.call).await.unwrap(), long.whole_output);
    assert_eq!(store.output(&scope(), &waits.call).await.unwrap(), None);
}

#[tokio::test]
async fn a_value_that_only_the_envelope_has_is_part_of_the_whole_output() {
    let (_folder, store) = new_store().await;
    let mut long = opened(CallState::Ended);
    long.outcome = Some(success(&long.call, "head … tail"));
    let metadata = json!({"kept": 1, "value_in_envelope": true}).as_object().cloned().unwrap();
    long.whole_output = Some(ToolOutput { content: "head, middle, tail".into(), metadata, ..ToolOutput::default() });
    store.record(&scope(), long.clone()).await.unwrap();
    let End::Success { result } = long.outcome.unwrap().end.clone() else { panic!("no success") };
    let whole = store.output(&scope(), &long.call).await.unwrap().unwrap();
    assert_eq!((whole.content.as_str(), &whole.structured), ("head, middle, tail", &result.structured));
    assert!(!whole.structured.is_null());
    assert_eq!(serde_json::to_value(&whole.metadata).unwrap(), json!({"kept": 1}));
}

#[tokio::test]
async fn waiting_for_the_end_ends_with_it_and_not_with_pending() {
    let (_folder, store) = new_store().await;
    let mut waits = opened(CallState::Waiting);
    waits.outcome = Some(pending(&waits.call));
    let call = waits.call.clone();
    store.record(&scope(), waits).await.unwrap();
    assert_eq!(store.ended(&scope(), &call, Duration::ZERO).await.unwrap(), None);

    let scope = scope();
    let (seen, recorded) = tokio::join!(store.ended(&scope, &call, SOON), store.record(&scope, ended(&call)));
    recorded.unwrap();
    assert_eq!(seen.unwrap().unwrap().end.status(), "success");
}

#[tokio::test]
async fn an_ended_call_stays_ended_and_is_counted_once() {
    let (_folder, store) = new_store().await;
    let first = opened(CallState::Executing);
    let call = first.call.clone();
    store.record(&scope(), first).await.unwrap();
    for entry in [ended(&call), ended(&call), later(&call, CallState::Executing)] {
        store.record(&scope(), entry).await.unwrap();
    }
    assert_eq!(Journal::find(&store, &scope(), &call).await.unwrap().unwrap().state, CallState::Ended);
    let used = store.tools_used(&scope(), &here(), None).await.unwrap();
    assert_eq!((used.len(), used[0].calls, used[0].success, used[0].total_ms), (1, 1, 1, 7));
}

#[tokio::test]
async fn a_question_is_asked_answered_once_and_found_again() {
    let (_folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    let question = question(&call);
    assert_eq!(store.reply(&scope(), &first(&call), &answered("eve")).await.unwrap(), AnswerReceipt::NoQuestion);
    store.ask(&scope(), &question, entry).await.unwrap();
    assert_eq!(store.wait(&scope(), &first(&call), Duration::ZERO).await.unwrap(), None);
    assert_eq!(Questions::find(&store, &scope(), &call).await.unwrap(), Some((question.clone(), None)));
    assert_eq!(Questions::open(&store, &scope(), &here()).await.unwrap(), std::slice::from_ref(&question));
    assert!(store.overdue(&house()).await.unwrap().is_empty());

    let (scope, yes) = (scope(), answered("anna"));
    let id = first(&call);
    let (heard, receipt) = tokio::join!(store.wait(&scope, &id, SOON), store.reply(&scope, &id, &yes));
    assert_eq!(receipt.unwrap(), AnswerReceipt::Taken);
    assert_eq!(heard.unwrap(), Some(yes.clone()));
    let second = store.reply(&scope, &first(&call), &answered("bob")).await.unwrap();
    assert_eq!(second, AnswerReceipt::TooLate(yes.clone()));
    assert_eq!(Questions::find(&store, &scope, &call).await.unwrap(), Some((question, Some(yes))));
    assert!(Questions::open(&store, &scope, &here()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_call_may_put_several_questions_and_each_has_its_own_answer() {
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Executing);
    let call = entry.call.clone();
    let second = Question { number: 2, ..question(&call) };
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    store.reply(&scope(), &first(&call), &answered("anna")).await.unwrap();
    store.ask(&scope(), &second, later(&call, CallState::Waiting)).await.unwrap();
    assert_eq!(Questions::find(&store, &scope(), &call).await.unwrap(), Some((second.clone(), None)));
    assert!(store.answered(&house()).await.unwrap().is_empty(), "the last one is open");
    let late = store.reply(&scope(), &first(&call), &answered("bob")).await.unwrap();
    assert!(matches!(late, AnswerReceipt::TooLate(_)), "{late:?}");
    assert_eq!(Questions::open(&open(&folder).await, &scope(), &here()).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(store.reply(&scope(), &second.id(), &answered("bob")).await.unwrap(), AnswerReceipt::Taken);
    assert_eq!(store.answered(&house()).await.unwrap(), [(scope(), call)]);
}

#[tokio::test]
async fn questions_are_read_in_pages_the_newest_first() {
    let (_folder, store) = new_store().await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        let entry = opened(CallState::Waiting);
        calls.push(entry.call.clone());
        store.ask(&scope(), &question(&entry.call.clone()), entry).await.unwrap();
    }
    calls.sort();
    for call in &calls[..2] {
        store.reply(&scope(), &first(call), &answered("anna")).await.unwrap();
    }
    for (is_answered, wanted) in [(false, [&calls[3], &calls[2]]), (true, [&calls[1], &calls[0]])] {
        let mut filter = QuestionFilter { answered: is_answered, limit: 1, ..QuestionFilter::default() };
        for call in wanted {
            let page = store.question_page(&scope(), &filter).await.unwrap();
            assert_eq!(page.iter().map(|(found, _)| &found.call).collect::<Vec<_>>(), [call]);
            assert_eq!(page[0].1.is_some(), is_answered);
            filter.before = Some(page[0].0.id());
        }
        assert!(store.question_page(&scope(), &filter).await.unwrap().is_empty());
    }
    let forms = QuestionFilter { kind: Some("form".to_owned()), limit: 9, ..QuestionFilter::default() };
    assert!(store.question_page(&scope(), &forms).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_question_and_its_entry_are_written_together_or_not_at_all() {
    let (_folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    let events = store.events(&scope(), &call).await.unwrap().len();
    store.ask(&scope(), &question(&call), later(&call, CallState::Executing)).await.unwrap_err();
    assert_eq!(store.events(&scope(), &call).await.unwrap().len(), events);
    assert_eq!(Journal::find(&store, &scope(), &call).await.unwrap().unwrap().state, CallState::Waiting);
}

#[tokio::test]
async fn a_question_that_nobody_answered_in_time_is_overdue() {
    let (_folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    let mut question = question(&call);
    question.expires_at = now() - SignedDuration::from_secs(1);
    store.ask(&scope(), &question, entry).await.unwrap();
    assert_eq!(store.overdue(&house()).await.unwrap(), [(scope(), first(&call))]);
    let elsewhere = HouseWide::of_house(Within::Only(WorkspaceId::new("elsewhere")));
    assert!(store.overdue(&elsewhere).await.unwrap().is_empty(), "a house that cannot carry it on leaves it alone");
    store.reply(&scope(), &first(&call), &answered("haft")).await.unwrap();
    assert!(store.overdue(&house()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_grant_is_spent_as_often_as_it_says() {
    let (_folder, store) = new_store().await;
    let (twice, always, once) = (grant(Some(2)), grant(None), grant(Some(1)));
    let mut expired = grant(None);
    expired.until = Some(now() - SignedDuration::from_secs(1));
    for grant in [&twice, &always, &once, &expired] {
        store.remember(&scope(), grant).await.unwrap();
    }
    let usable = store.grants(&scope(), "write_file").await.unwrap();
    assert_eq!(usable, [once.clone(), always.clone(), twice.clone()]);
    assert!(store.grants(&scope(), "delete_file").await.unwrap().is_empty());

    let mut spent = Vec::new();
    for grant in [&twice, &twice, &twice, &expired, &always] {
        spent.push(store.spend(&scope(), &grant.id).await.unwrap());
    }
    assert_eq!(spent, [true, true, false, false, true]);
    let used: Vec<u32> = store.grants(&scope(), "write_file").await.unwrap().iter().map(|grant| grant.used).collect();
    assert_eq!(used, [0, 1]);

    assert!(store.revoke(&scope(), &always.id).await.unwrap());
    assert!(!store.revoke(&scope(), &always.id).await.unwrap());
    assert!(!store.spend(&scope(), &always.id).await.unwrap());
    assert_eq!(store.grants(&scope(), "write_file").await.unwrap(), [once]);
}

#[tokio::test]
async fn a_grant_of_one_workspace_covers_no_other() {
    let (_folder, store) = new_store().await;
    let (here, nowhere) = (grant(None), grant(None));
    let without = Scope::of_house(TenantId::local(), None);
    store.remember(&scope(), &here).await.unwrap();
    store.remember(&without, &nowhere).await.unwrap();
    let elsewhere = Scope::local("elsewhere");
    assert!(store.grants(&elsewhere, "write_file").await.unwrap().is_empty());
    assert_eq!(store.grants(&without, "write_file").await.unwrap(), [nowhere], "no workspace is not every workspace");
    assert!(!store.spend(&elsewhere, &here.id).await.unwrap());
    assert!(store.spend(&scope(), &here.id).await.unwrap());
}

#[tokio::test]
async fn a_running_call_learns_that_it_shall_stop() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    let scope = scope();
    for who in [&store, &other] {
        let entry = opened(CallState::Executing);
        let call = entry.call.clone();
        store.record(&scope, entry).await.unwrap();
        let stopped = tokio::time::timeout(SOON, store.stop_wanted(&scope, &call));
        let (stopped, wanted) = tokio::join!(stopped, who.want_stop(&scope, &call));
        stopped.unwrap();
        assert!(wanted.unwrap());
        store.record(&scope, ended(&call)).await.unwrap();
        assert!(!who.want_stop(&scope, &call).await.unwrap());
    }
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let (_folder, store) = new_store().await;
    let mut calls = Vec::new();
    for number in 0..10 {
        let mut entry = opened(if number < 3 { CallState::Waiting } else { CallState::Ended });
        if number % 2 == 0 {
            entry.opening.as_mut().unwrap().tool = "read_file".into();
        }
        if number >= 3 {
            entry.outcome = Some(success(&entry.call, "done"));
        }
        calls.push(entry.call.clone());
        store.record(&scope(), entry).await.unwrap();
    }
    calls.reverse();
    let list = async |filter: CallFilter| -> Vec<_> {
        store.calls(&scope(), &here(), &filter).await.unwrap().into_iter().map(|call| call.id).collect()
    };
    let all = CallFilter::default();
    assert_eq!(list(all.clone()).await, calls);
    assert_eq!(list(CallFilter { limit: 4, ..all.clone() }).await, calls[..4]);
    let next = CallFilter { limit: 4, before: Some(calls[3].clone()), ..all.clone() };
    assert_eq!(list(next).await, calls[4..8]);
    assert_eq!(list(CallFilter { tool: Some("read_file".into()), ..all.clone() }).await.len(), 5);
    assert_eq!(list(CallFilter { state: Some(CallState::Waiting), ..all.clone() }).await, calls[7..]);
    assert_eq!(list(CallFilter { status: Some("success".into()), ..all.clone() }).await, calls[..7]);
    let since = Some(now() + SignedDuration::from_secs(1));
    assert_eq!(list(CallFilter { since, ..all.clone() }).await, []);
    assert_eq!(list(CallFilter { since: Some(Timestamp::UNIX_EPOCH), ..all }).await, calls);

    let row =
        store.calls(&scope(), &here(), &CallFilter { limit: 1, ..CallFilter::default() }).await.unwrap().remove(0);
    assert_eq!((row.status.as_deref(), row.duration_ms, row.asked), (Some("success"), Some(7), false));
    let used = store.tools_used(&scope(), &here(), Some(Timestamp::UNIX_EPOCH)).await.unwrap();
    assert_eq!(used.iter().map(|tool| (tool.calls, tool.success)).collect::<Vec<_>>(), [(3, 3), (4, 4)]);
    assert!(
        store
            .calls(&scope(), &Within::Only(WorkspaceId::new("other")), &CallFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn children_and_turns_lead_to_other_calls() {
    let (_folder, store) = new_store().await;
    let parent = opened(CallState::Ended);
    let call = parent.call.clone();
    store.record(&scope(), parent).await.unwrap();
    let mut children = Vec::new();
    for direction in [Direction::Undo, Direction::Commit] {
        let mut child = opened(CallState::Ended);
        child.opening.as_mut().unwrap().parent = Some(call.clone());
        child.turn = Some(Turn { of: call.clone(), direction, paths: None });
        child.outcome = Some(success(&child.call, "turned"));
        children.push(child.call.clone());
        store.record(&scope(), child).await.unwrap();
    }
    let mut failed = opened(CallState::Ended);
    failed.turn = Some(Turn { of: call.clone(), direction: Direction::Undo, paths: None });
    let error = haft_runtime::ToolError::new(haft_runtime::ErrorCode::Conflict, "changed underneath");
    failed.outcome = Some(outcome(&failed.call, End::Error { error }));
    store.record(&scope(), failed.clone()).await.unwrap();

    assert_eq!(store.children(&scope(), &call).await.unwrap(), children);
    let last = store.last_turn_of(&scope(), &call).await.unwrap().unwrap();
    assert_eq!((last.call, last.turn.unwrap().direction), (children[1].clone(), Direction::Commit));
    let row = store
        .calls(&scope(), &here(), &CallFilter { status: Some("error".into()), ..CallFilter::default() })
        .await
        .unwrap();
    assert_eq!(row[0].code.as_deref(), Some("CONFLICT"));
}

#[tokio::test]
async fn the_health_of_a_store_is_told() {
    let (_folder, store) = new_store().await;
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    let health = store.health().await.unwrap();
    assert_eq!((health.calls, health.schema_version, health.lost_entries), (1, 2, 0));
    assert!(
        health.bytes > 0 && ["SQLite 3.", "PostgreSQL "].iter().any(|name| health.database.starts_with(name)),
        "{health:?}"
    );
}

//! Nothing of one tenant is read, changed or waited for by another, by any method.

use std::time::Duration;

use haft_runtime::{AnswerReceipt, CallState, ClaimResult, Journal, Questions, Scope, TenantId, Turn, Within};
use haft_store::CallFilter;
use jiff::SignedDuration;

use crate::samples::{
    Answering, answered, ended, first, grant, here, house, new_store, now, open, opened, question, scope, success,
};

#[expect(clippy::too_many_lines, reason = "one line for every method of the store")]
#[tokio::test]
async fn two_tenants_see_nothing_of_each_other() {
    let (folder, store) = new_store().await;
    let mine = scope();
    let parent = opened(CallState::Ended);
    let mut done = opened(CallState::Ended);
    done.opening.as_mut().unwrap().parent = Some(parent.call.clone());
    done.turn = Some(Turn::commit(parent.call.clone()));
    done.outcome = Some(success(&done.call, "secret"));
    done.whole_output = Some(haft_runtime::ToolOutput::default());
    let waits = opened(CallState::Waiting);
    let running = opened(CallState::Executing);
    let (done_id, waits_id, running_id) = (done.call.clone(), waits.call.clone(), running.call.clone());
    let parent_id = parent.call.clone();
    let mut question = question(&waits_id);
    question.expires_at = now() - SignedDuration::from_secs(1);
    for entry in [parent, done, running] {
        store.record(&mine, entry).await.unwrap();
    }
    store.ask(&mine, &question, waits).await.unwrap();
    let yes = grant(Some(1));
    store.remember(&mine, &yes).await.unwrap();
    store.close().await.unwrap();

    // The owner is gone, so that claiming and taking over would succeed for the right tenant.
    let store = open(&folder).await;
    for within in [Within::Everything, here()] {
        let theirs = Scope::of_house(TenantId::parse("other").unwrap(), within.only().cloned());
        assert_eq!(Journal::find(&store, &theirs, &done_id).await.unwrap(), None);
        assert_eq!(store.output(&theirs, &done_id).await.unwrap(), None);
        assert_eq!(store.ended(&theirs, &done_id, Duration::ZERO).await.unwrap(), None);
        assert!(Questions::find(&store, &theirs, &waits_id).await.unwrap().is_none());
        assert!(store.wait(&theirs, &first(&waits_id), Duration::ZERO).await.unwrap().is_none());
        assert_eq!(store.reply(&theirs, &first(&waits_id), &answered("eve")).await.unwrap(), AnswerReceipt::NoQuestion);
        assert!(Questions::open(&store, &theirs, &within).await.unwrap().is_empty());
        assert_eq!(store.claim(&theirs, &waits_id).await.unwrap(), ClaimResult::NotClaimed);
        assert!(store.grants(&theirs, "write_file").await.unwrap().is_empty());
        assert!(!store.spend(&theirs, &yes.id).await.unwrap());
        assert!(!store.revoke(&theirs, &yes.id).await.unwrap());
        assert!(store.all_grants(&theirs, &within).await.unwrap().is_empty());
        assert_eq!(store.grant(&theirs, &yes.id).await.unwrap(), None);
        assert!(store.last_calls(&theirs, &within, 10).await.unwrap().is_empty());
        assert_eq!(store.past(&theirs, &done_id).await.unwrap(), None);
        assert!(store.calls(&theirs, &within, &CallFilter::default()).await.unwrap().is_empty());
        assert!(store.events(&theirs, &done_id).await.unwrap().is_empty());
        assert!(store.children(&theirs, &parent_id).await.unwrap().is_empty());
        assert!(store.relatives(&theirs, &parent_id).await.unwrap().is_empty());
        assert!(store.holding(&theirs, &parent_id).await.unwrap().is_none());
        let ages = now() + SignedDuration::from_hours(1);
        assert!(store.old_calls(&theirs, ages, None, 10).await.unwrap().is_empty());
        assert!(store.kept_outputs(&theirs, None, 10).await.unwrap().is_empty());
        store.forget_calls(&theirs, &[done_id.clone(), parent_id.clone()]).await.unwrap();
        store.forget_outputs(&theirs, std::slice::from_ref(&done_id)).await.unwrap();
        store.forget_counters(&theirs, ages + SignedDuration::from_hours(48)).await.unwrap();
        let mut follower = store.follow(&theirs, &within, &CallFilter::default()).await.unwrap();
        tokio::time::timeout(Duration::from_millis(60), follower.next()).await.err().unwrap();
        assert!(store.last_turn_of(&theirs, &parent_id).await.unwrap().is_none());
        assert!(store.tools_used(&theirs, &within, None).await.unwrap().is_empty());
        assert!(!store.want_stop(&theirs, &running_id).await.unwrap());
        assert!(!store.owner_is_alive(&theirs, &waits_id).await.unwrap());
        store.record(&theirs, ended(&running_id)).await.unwrap_err();
        let stopped = tokio::time::timeout(Duration::from_millis(60), store.stop_wanted(&theirs, &running_id)).await;
        stopped.unwrap_err();
    }

    // And everything is still there for its own tenant.
    assert_eq!(store.claim(&mine, &waits_id).await.unwrap(), ClaimResult::Claimed);
    assert_eq!(store.reply(&mine, &first(&waits_id), &answered("anna")).await.unwrap(), AnswerReceipt::Taken);
    assert!(store.spend(&mine, &yes.id).await.unwrap());
    assert_eq!(store.all_grants(&mine, &here()).await.unwrap().len(), 1);
    assert_eq!(store.last_calls(&mine, &here(), 10).await.unwrap().len(), 4);
    let taken: Vec<_> = store.abandoned(&house()).await.unwrap().into_iter().map(|call| call.call).collect();
    assert_eq!(taken, [running_id]);
    assert_eq!(store.calls(&mine, &Within::Everything, &CallFilter::default()).await.unwrap().len(), 4);
    assert_eq!(store.kept_outputs(&mine, None, 10).await.unwrap().len(), 1);
    assert_eq!(store.tools_used(&mine, &here(), None).await.unwrap()[0].calls, 2);
}

//! A copy of everything in another database.

use haft_runtime::{CallState, ClaimResult, Journal, Questions, ToolOutput};
use haft_store::{CallFilter, StoreError};

use crate::samples::{ended, grant, here, house, new_store, opened, question, scope, success};

#[tokio::test]
async fn everything_is_in_the_copy_and_counted_on_both_sides() {
    let (_folder, from) = new_store().await;
    let (_other, to) = new_store().await;
    let waits = opened(CallState::Waiting);
    let waiting = waits.call.clone();
    from.ask(&scope(), &question(&waiting), waits).await.unwrap();
    // More than one page of calls.
    for _ in 0..450 {
        let mut done = opened(CallState::Ended);
        done.outcome = Some(success(&done.call, "done"));
        from.record_later(&scope(), done).await.unwrap();
    }
    let mut long = opened(CallState::Ended);
    long.outcome = Some(success(&long.call, "head … tail"));
    long.whole_output = Some(ToolOutput { content: "all of it\0".into(), ..ToolOutput::default() });
    from.record(&scope(), long.clone()).await.unwrap();
    from.remember(&scope(), &grant(Some(3))).await.unwrap();

    let copied = from.copy_to(&house(), &to, |_, _| {}).await.unwrap();
    assert!(copied.iter().all(|table| table.from == table.to), "{copied:?}");
    let counted: Vec<_> = copied.iter().map(|table| (table.table, table.to)).collect();
    assert!(counted.contains(&("calls", 451)) && counted.contains(&("outputs", 1)), "{counted:?}");

    let all = CallFilter { limit: 1000, ..CallFilter::default() };
    assert_eq!(to.calls(&scope(), &here(), &all).await.unwrap(), from.calls(&scope(), &here(), &all).await.unwrap());
    assert_eq!(to.events(&scope(), &waiting).await.unwrap(), from.events(&scope(), &waiting).await.unwrap());
    assert_eq!(to.output(&scope(), &long.call).await.unwrap(), long.whole_output);
    assert_eq!(to.all_grants(&scope(), &here()).await.unwrap(), from.all_grants(&scope(), &here()).await.unwrap());
    assert_eq!(
        to.tools_used(&scope(), &here(), None).await.unwrap(),
        from.tools_used(&scope(), &here(), None).await.unwrap()
    );
    assert_eq!(Questions::open(&to, &scope(), &here()).await.unwrap().len(), 1);

    // The numbers go on where they were, and the call that waits is carried on there.
    from.close().await.unwrap();
    assert_eq!(to.claim(&scope(), &waiting).await.unwrap(), ClaimResult::Claimed);
    to.record(&scope(), ended(&waiting)).await.unwrap();
    let events = to.events(&scope(), &waiting).await.unwrap();
    assert_eq!(events.last().unwrap().0, 453);
}

#[tokio::test]
async fn a_copy_is_not_mixed_with_what_is_there_nor_made_while_somebody_works() {
    let (_folder, from) = new_store().await;
    let (_other, to) = new_store().await;
    let done = opened(CallState::Ended);
    to.record(&scope(), done).await.unwrap();
    let refused = from.copy_to(&house(), &to, |_, _| {}).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotEmpty(_)), "{refused:?}");
    to.clear(&house()).await.unwrap();
    from.copy_to(&house(), &to, |_, _| {}).await.unwrap();

    let running = opened(CallState::Executing);
    from.record(&scope(), running.clone()).await.unwrap();
    let refused = from.copy_to(&house(), &to, |_, _| {}).await.unwrap_err();
    assert!(matches!(&refused, StoreError::InUse(call) if *call == running.call.to_string()), "{refused:?}");
}

//! Grants that are given with an answer, and the calls that they are judged by.

use haft_runtime::{
    About, Answer, AnswerReceipt, Answered, CallEvent, CallState, CallerId, CallerKind, Change, ChangeKind, ChangeList,
    Evidence, Grant, Isolation, Questions, Source, ToolOutput, Turn, Within, WorkspaceId,
};
use haft_store::GrantFilter;
use jiff::SignedDuration;

use crate::samples::{Answering, anna, answered, first, grant, here, new_store, now, open, opened, question, scope};

fn always(grant: &Grant) -> Answered {
    let answer = Answer::Always { grant: Box::new(grant.clone()) };
    Answered { answer, by: anna().who(), source: Source::Cli, at: now() }
}

#[tokio::test]
async fn an_answer_and_its_grant_are_one() {
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    let (given, late) = (grant(Some(2)), grant(None));
    assert_eq!(store.reply(&scope(), &first(&call), &always(&given)).await.unwrap(), AnswerReceipt::Taken);
    let earlier = AnswerReceipt::TooLate(always(&given));
    let AnswerReceipt::TooLate(told) = store.reply(&scope(), &first(&call), &always(&late)).await.unwrap() else {
        panic!("not {earlier:?}");
    };
    assert_eq!(told.answer, always(&given).answer, "the answer tells what was remembered");
    let other = open(&folder).await;
    assert_eq!(other.all_grants(&scope(), &here()).await.unwrap(), [given], "what came too late is not remembered");
}

#[tokio::test]
async fn grants_are_listed_by_whom_they_concern_page_by_page() {
    let (_folder, store) = new_store().await;
    let person = |id: &str| CallerId { kind: CallerKind::Person, id: id.into() };
    let (mine, given) = (person("ann"), person("bob"));
    let for_me = Grant { caller: Some(mine.clone()), given_by: Some(given.clone()), ..grant(None) };
    let by_me = Grant { caller: Some(given.clone()), given_by: Some(mine.clone()), ..grant(Some(2)) };
    let others = Grant { caller: Some(given.clone()), given_by: Some(given.clone()), ..grant(None) };
    let over = Grant { until: Some(now() - SignedDuration::from_secs(1)), caller: Some(mine.clone()), ..grant(None) };
    let revoked = Grant { tool: "deploy".into(), caller: Some(mine.clone()), ..grant(None) };
    for one in [&for_me, &by_me, &others, &over, &revoked] {
        store.remember(&scope(), one).await.unwrap();
    }
    assert!(store.revoke(&scope(), &revoked.id).await.unwrap());
    let all = GrantFilter { of: None, tool: None, only_usable: false, before: None, limit: 50 };
    let ids = async |filter: &GrantFilter| {
        let page = store.grant_page(&scope(), filter).await.unwrap();
        page.into_iter().map(|row| row.grant.id).collect::<Vec<_>>()
    };
    let usable = GrantFilter { only_usable: true, ..all.clone() };
    assert_eq!(ids(&usable).await, [others.id.clone(), by_me.id.clone(), for_me.id.clone()]);
    let own = GrantFilter { of: Some(mine), ..usable.clone() };
    assert_eq!(ids(&own).await, [by_me.id.clone(), for_me.id.clone()]);
    let next = GrantFilter { before: Some(by_me.id.clone()), ..own };
    assert_eq!(ids(&next).await, std::slice::from_ref(&for_me.id));
    assert_eq!(ids(&GrantFilter { tool: Some("deploy".into()), ..all.clone() }).await, [revoked.id]);
    assert_eq!(ids(&GrantFilter { limit: 2, ..all }).await.len(), 2);
    let row = store.grant_row(&scope(), &for_me.id).await.unwrap().unwrap();
    assert_eq!((row.grant, row.workspace.as_ref()), (for_me, scope().workspace()));
    assert_eq!(store.usable_grants_anywhere(&scope(), "write_file").await.unwrap().len(), 3);
    assert!(store.usable_grants_anywhere(&scope(), "deploy").await.unwrap().is_empty());
}

#[tokio::test]
async fn when_the_grant_cannot_be_kept_there_is_no_answer() {
    let (_folder, store) = new_store().await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    let twice = grant(None);
    store.remember(&scope(), &twice).await.unwrap();
    store.reply(&scope(), &first(&call), &always(&twice)).await.unwrap_err();
    assert_eq!(store.reply(&scope(), &first(&call), &answered("bob")).await.unwrap(), AnswerReceipt::Taken);
}

#[tokio::test]
async fn the_last_calls_come_with_their_evidence() {
    let (_folder, store) = new_store().await;
    let mut entry = opened(CallState::Waiting);
    let (call, turn) = (entry.call.clone(), Turn::commit(entry.call.clone()));
    let changes = ChangeList(vec![Change { size: 3, added: 1, ..Change::staged("a", ChangeKind::Created) }]);
    entry.events.push((now(), CallEvent::Staged { changes: changes.clone(), turn: turn.clone() }));
    let mut asked = question(&call);
    let isolation = Some(Isolation::Landlock);
    let (output, staged) = (ToolOutput::default(), changes.clone());
    asked.about = About::Approval(Evidence::Staged { output, changes: staged, turn: turn.clone(), isolation });
    store.ask(&scope(), &asked, entry).await.unwrap();
    let other = opened(CallState::Ended);
    haft_runtime::Journal::record(&store, &scope(), other.clone()).await.unwrap();

    let last = store.last_calls(&scope(), &here(), 10).await.unwrap();
    assert_eq!(last.iter().map(|past| past.record.call.clone()).collect::<Vec<_>>(), [other.call, call.clone()]);
    assert_eq!((last[0].asked, last[0].isolation, &last[0].staged), (false, None, &None));
    assert_eq!((last[1].asked, last[1].isolation, &last[1].staged), (true, isolation, &Some((changes, turn))));
    assert_eq!(store.past(&scope(), &call).await.unwrap().as_ref(), last.get(1));
    assert_eq!(store.last_calls(&scope(), &here(), 1).await.unwrap().len(), 1);
    assert!(store.last_calls(&scope(), &Within::Only(WorkspaceId::new("elsewhere")), 10).await.unwrap().is_empty());
    assert_eq!(store.last_calls(&scope(), &Within::Everything, 10).await.unwrap().len(), 2);
}

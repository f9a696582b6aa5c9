//! Notices: each listener once, whoever of several nodes is first, and nothing is left when something is added meanwhile.

use std::time::Duration;

use haft_runtime::{CallId, CallState, Question, Questions};
use haft_store::{DueNotice, JobFilter, LinkChoice, NoticeListener, NoticesOf, Store};
use jiff::SignedDuration;

use crate::samples::{Answering, answered, first, house, new_store, now, open, opened, question, scope};

const LONG: Duration = Duration::from_secs(600);

fn listeners() -> Vec<NoticeListener> {
    let listener = |person: &str| NoticeListener { channel: "mail", person: person.to_owned(), escalated: false };
    vec![listener("ann"), listener("bob")]
}

async fn asked(store: &Store) -> Question {
    let entry = opened(CallState::Waiting);
    let question = question(&entry.call);
    store.ask(&scope(), &question, entry).await.unwrap();
    question
}

async fn due(store: &Store) -> Vec<DueNotice> {
    let later = now() + SignedDuration::from_mins(1);
    store.due_notices(&house(), later, 10).await.unwrap()
}

async fn claim(store: &Store) -> Vec<haft_store::ClaimedJob> {
    // Also by the clock of a database that is a little behind this one.
    let claimed = async {
        loop {
            match store.claim_jobs(&house(), JobFilter { node: "a", kinds: &["mail"] }, 5, LONG).await.unwrap() {
                none if none.is_empty() => tokio::task::yield_now().await,
                some => return some,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), claimed).await.unwrap()
}

#[tokio::test]
async fn of_two_nodes_one_tells_and_what_is_answered_is_told_to_nobody() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    let (one, two) = (asked(&store).await, asked(&store).await);
    let found = due(&store).await;
    assert_eq!(found.len(), 2);
    assert_eq!(store.next_notice(&house()).await.unwrap(), Some(found[0].at));
    let (listeners, scope) = (listeners(), scope());
    let told = [&store, &other].map(|store| store.tell_listeners(&scope, &found[0], (&listeners, None)));
    let told = futures_util::future::join_all(told).await;
    assert_eq!(told.iter().filter(|told| told.as_ref().is_ok_and(|told| *told)).count(), 1, "{told:?}");
    store.reply(&scope, &first(&two.call), &answered("anna")).await.unwrap();
    assert!(due(&store).await.is_empty(), "the one was told, and the other is answered");
    assert!(!store.tell_listeners(&scope, &found[1], (&listeners, None)).await.unwrap());
    let rows = store.open_notices(&scope, "mail", 10).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| (row.person.as_str(), row.open)).collect::<Vec<_>>(),
        [("ann", true), ("bob", true)]
    );
    assert_eq!(rows[0].question, first(&one.call));
    let (of_ann, last) = (("mail", "ann"), first(&one.call));
    store.batch_notices(&scope, of_ann, ("b1", &last)).await.unwrap();
    store.notices_sent(&scope, of_ann, "b1").await.unwrap();
    let of_all = NoticesOf { channel: "mail", person: None };
    assert!(!store.notices_failed(&scope, of_all, ("no", 2)).await.unwrap());
    assert!(store.notices_failed(&scope, of_all, ("no", 2)).await.unwrap(), "the second try was the last");
    assert_eq!(store.notice_count(&scope, "mail").await.unwrap(), 0);
    let channel = store.notice_channel(&scope, "mail").await.unwrap();
    assert!(channel.sent_at.is_some() && channel.failed.unwrap().1 == "no" && channel.given_up == 1);
}

#[tokio::test]
async fn a_job_to_which_something_is_added_is_not_finished() {
    let (_folder, store) = new_store().await;
    asked(&store).await;
    let found = due(&store).await;
    store.tell_listeners(&scope(), &found[0], (&listeners(), None)).await.unwrap();
    let job = claim(&store).await.remove(0);
    asked(&store).await;
    let found = due(&store).await;
    store.tell_listeners(&scope(), &found[0], (&listeners(), None)).await.unwrap();
    assert!(!store.finish_job(&house(), &job).await.unwrap(), "there is more to do");
    assert!(store.put_off_job(&house(), &job, store.now(), 0).await.unwrap());
    let job = claim(&store).await.remove(0);
    assert!(store.finish_job(&house(), &job).await.unwrap());
}

#[tokio::test]
async fn a_question_is_passed_on_once_and_its_new_people_are_told() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    let (was, scope) = (asked(&store).await, scope());
    let found = due(&store).await;
    store.tell_listeners(&scope, &found[0], (&[], None)).await.unwrap();
    let now = now();
    let passed_on =
        Question { expires_at: now + SignedDuration::from_hours(48), escalated_at: Some(now), ..was.clone() };
    let both = [&store, &other].map(|store| store.escalate_question(&scope, &was, &passed_on));
    let both = futures_util::future::join_all(both).await;
    assert_eq!(both.iter().filter(|done| done.as_ref().is_ok_and(|done| *done)).count(), 1, "{both:?}");
    let (found, _) = Questions::find(&store, &scope, &was.call).await.unwrap().unwrap();
    assert_eq!(found.escalated_at, passed_on.escalated_at);
    assert_eq!(due(&store).await.len(), 1);
    store.reply(&scope, &first(&was.call), &answered("anna")).await.unwrap();
    assert!(!store.escalate_question(&scope, &found, &passed_on).await.unwrap(), "it is answered");
}

#[tokio::test]
async fn a_choice_is_used_once_and_only_the_last_one() {
    let (_folder, store) = new_store().await;
    let (question, scope) = (first(&CallId::new()), scope());
    let key = (&question, "ann");
    let choice = |nonce, body| LinkChoice { nonce, body, expires_at: now() + SignedDuration::from_mins(5) };
    store.keep_choice(&scope, key, choice("n1", "no")).await.unwrap();
    store.keep_choice(&scope, key, choice("n2", "yes")).await.unwrap();
    assert_eq!(store.take_choice(&scope, key, "n1").await.unwrap(), None);
    assert_eq!(store.take_choice(&scope, (&question, "bob"), "n2").await.unwrap(), None);
    assert_eq!(store.take_choice(&scope, key, "n2").await.unwrap().as_deref(), Some("yes"));
    assert_eq!(store.take_choice(&scope, key, "n2").await.unwrap(), None);
    let over = LinkChoice { expires_at: now() - SignedDuration::from_mins(5), ..choice("n3", "yes") };
    store.keep_choice(&scope, key, over).await.unwrap();
    assert_eq!(store.take_choice(&scope, key, "n3").await.unwrap(), None);
    store.forget_expired_choices(&house()).await.unwrap();
}

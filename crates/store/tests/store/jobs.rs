//! Jobs: one node does each, a dead node is followed, and its late word counts no more.

use std::time::Duration;

use haft_runtime::TenantId;
use haft_store::{ClaimedJob, JobFilter, JobOwner, JobPlace, NewJob, Store};
use jiff::{SignedDuration, Timestamp};

use crate::samples::{house, new_store, now, open, scope};

const LONG: Duration = Duration::from_secs(600);
const AT_ONCE: Duration = Duration::ZERO;

fn job(name: &str, due: Timestamp) -> NewJob {
    NewJob { kind: "clean", name: name.to_owned(), payload: "{}".to_owned(), due, place: JobPlace::AnyNode }
}

/// Due, also by the clock of a database that is a little behind this one.
fn due() -> Timestamp {
    now().checked_sub(SignedDuration::from_mins(1)).unwrap()
}

fn of_a() -> JobFilter<'static> {
    JobFilter { node: "a", kinds: &["clean"] }
}

async fn claim(store: &Store, lease: Duration) -> Vec<ClaimedJob> {
    store.claim_jobs(&house(), of_a(), 10, lease).await.unwrap()
}

/// What comes next, also when the clock of this store is a little behind that of the one before.
async fn claim_soon(store: &Store) -> Vec<ClaimedJob> {
    let claimed = async {
        loop {
            match claim(store, LONG).await {
                none if none.is_empty() => tokio::task::yield_now().await,
                some => return some,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), claimed).await.unwrap()
}

async fn add(store: &Store, job: &NewJob) -> bool {
    store.add_job(&house(), &JobOwner::Tenant(scope_of_tenant()), job).await.unwrap()
}

/// The tenant alone: a job has no workspace.
fn scope_of_tenant() -> haft_runtime::Scope {
    haft_runtime::Scope::of_house(scope().tenant().clone(), None)
}

#[tokio::test]
async fn of_two_claimers_one_gets_the_job() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    for n in 0..8 {
        assert!(add(&store, &job(&n.to_string(), due())).await);
        assert!(!add(&other, &job(&n.to_string(), due())).await, "there is one of each name");
    }
    let (mine, theirs) = tokio::join!(claim(&store, LONG), claim(&other, LONG));
    let mut names: Vec<String> = mine.iter().chain(&theirs).map(|job| job.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert!(claim(&store, LONG).await.is_empty() && claim(&other, LONG).await.is_empty());
    for (node, jobs) in [(&store, &mine), (&other, &theirs)] {
        for job in jobs {
            assert_eq!((job.attempts, &job.of), (1, &JobOwner::Tenant(scope_of_tenant())));
            assert!(node.finish_job(&house(), job).await.unwrap());
        }
    }
    assert_eq!(store.next_job(&house(), of_a()).await.unwrap(), None);
}

#[tokio::test]
async fn a_dead_owner_is_followed_and_its_late_word_is_refused() {
    let (folder, dead) = new_store().await;
    let next = open(&folder).await;
    add(&dead, &job("", due())).await;
    // A lease that is over at once stands for a node that has died.
    let [late] = claim(&dead, AT_ONCE).await.try_into().unwrap();
    let [taken] = claim_soon(&next).await.try_into().unwrap();
    assert_eq!((taken.attempts, &taken.id), (2, &late.id));
    assert!(!dead.finish_job(&house(), &late).await.unwrap());
    assert!(!dead.put_off_job(&house(), &late, now(), 0).await.unwrap());
    assert_eq!(dead.renew_job(&house(), &late, LONG).await.unwrap(), None);
    let renewed = next.renew_job(&house(), &taken, LONG).await.unwrap().unwrap();
    assert!(!next.finish_job(&house(), &taken).await.unwrap(), "the lease is another one now");
    assert!(next.finish_job(&house(), &renewed).await.unwrap());
}

#[tokio::test]
async fn a_job_comes_when_it_is_due_and_where_it_can_be_done() {
    let (_folder, store) = new_store().await;
    let later = now().checked_add(SignedDuration::from_hours(1)).unwrap();
    add(&store, &job("later", later)).await;
    assert!(claim(&store, LONG).await.is_empty());
    assert_eq!(store.next_job(&house(), of_a()).await.unwrap(), Some(later));
    let of_b = NewJob { place: JobPlace::Node("b".to_owned()), ..job("b's", due()) };
    store.add_job(&house(), &JobOwner::AllTenants, &of_b).await.unwrap();
    store.add_job(&house(), &JobOwner::AllTenants, &NewJob { kind: "unknown", ..job("", due()) }).await.unwrap();
    assert!(claim(&store, LONG).await.is_empty(), "one is for another node, one of a kind that is not known here");
    assert_eq!(store.next_job(&house(), of_a()).await.unwrap(), Some(later));
    store.hasten_jobs(&house(), JobFilter { node: "a", kinds: &["other"] }).await.unwrap();
    assert!(claim(&store, LONG).await.is_empty());
    let on_b = store.claim_jobs(&house(), JobFilter { node: "b", kinds: &["clean"] }, 10, LONG).await.unwrap();
    assert_eq!(
        on_b.iter().map(|job| (&job.of, job.name.as_str())).collect::<Vec<_>>(),
        [(&JobOwner::AllTenants, "b's")]
    );
    assert!(store.put_off_job(&house(), &on_b[0], later, 3).await.unwrap());
    let next = store.next_job(&house(), JobFilter { node: "b", kinds: &["clean"] }).await.unwrap();
    assert_eq!(next, Some(later));
    store.hasten_jobs(&house(), of_a()).await.unwrap();
    let sooner = claim(&store, LONG).await;
    assert_eq!(sooner.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["later"], "only those of this node");
}

#[tokio::test]
async fn every_tenant_gets_its_job_once() {
    let (_folder, store) = new_store().await;
    for slug in ["acme", "bolt"] {
        store.add_tenant(&house(), (&TenantId::parse(slug).unwrap(), slug, slug)).await.unwrap();
    }
    for _ in 0..2 {
        store.add_job_to_each_tenant(&house(), "clean", due()).await.unwrap();
    }
    let claimed = claim(&store, LONG).await;
    let tenants: Vec<&str> = claimed
        .iter()
        .filter_map(|job| match &job.of {
            JobOwner::Tenant(scope) => Some(scope.tenant().as_str()),
            JobOwner::AllTenants => None,
        })
        .collect();
    assert_eq!((claimed.len(), tenants), (2, vec!["acme", "bolt"]));
}

#[tokio::test]
async fn whoever_waits_for_work_hears_of_a_new_job() {
    let (_folder, store) = new_store().await;
    let added = async { assert!(add(&store, &job("", due())).await) };
    let wide = house();
    let heard = tokio::time::timeout(Duration::from_secs(30), store.work_added(&wide));
    let (heard, ()) = tokio::join!(heard, added);
    heard.unwrap();
}

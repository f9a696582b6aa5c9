//! The audit log: one row for each act, in one chain, whoever writes at the same time; and quotas that hold in a race.

use futures_util::future::join_all;
use haft_runtime::{CallerId, CallerKind, CallerRef, Scope, Source, TenantId};
use haft_store::{Actor, AuditAction, AuditEntry, AuditFilter, NewApiKey, QuotaKind, Store, acting_as};
use jiff::{SignedDuration, Timestamp};

use crate::samples::{house, new_store, open};

async fn tenant(store: &Store, slug: &str) -> Scope {
    let id = TenantId::parse(slug).unwrap();
    assert!(store.add_tenant(&house(), (&id, slug, slug)).await.unwrap());
    store.tenant_by_slug(&house(), slug).await.unwrap().unwrap().scope
}

fn key(id: &str) -> NewApiKey {
    let (name, secret, scopes) = ("k".into(), "s3cr3t-hash".into(), "tools:read".into());
    NewApiKey { id: id.into(), name, secret, scopes, made_by: None, expires_at: None }
}

fn ann() -> Actor {
    let id = CallerId { kind: CallerKind::Person, id: "ann".into() };
    let by = Some(CallerRef { id, name: "Ann".into() });
    Actor { by, source: Source::Web, via: Some("page".into()), address: Some("192.0.2.7".into()) }
}

fn all() -> AuditFilter {
    AuditFilter { limit: 1000, ..AuditFilter::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_act_is_one_row_by_whoever_did_it_and_none_without_an_act() {
    let (_folder, store) = new_store().await;
    let (acme, bolt) = (tenant(&store, "acme").await, tenant(&store, "bolt").await);
    acting_as(ann(), async {
        store.add_api_key(&acme, &key("k1")).await.unwrap();
        store.set_secret(&acme, ("TOKEN", "api.example.org"), b"the sealed value".to_vec()).await.unwrap();
        assert!(store.change_tenant_setting(&acme, ("policy", None), "{\"version\":1}").await.unwrap());
        assert!(
            store.change_tenant_setting(&acme, ("policy", Some("{\"version\":1}")), "{\"version\":2}").await.unwrap()
        );
        assert!(!store.change_tenant_setting(&acme, ("policy", None), "{}").await.unwrap(), "nothing is done");
        assert!(!store.remove_api_key(&acme, "k2").await.unwrap(), "there is none");
        assert!(store.remove_api_key(&acme, "k1").await.unwrap());
    })
    .await;
    let rows = store.audit(&acme, &all()).await.unwrap();
    let acts: Vec<&str> = rows.iter().rev().map(|row| row.action.word()).collect();
    let expected = ["tenant.added", "key.added", "secret.set", "setting.changed", "setting.changed", "key.removed"];
    assert_eq!(acts, expected);
    let [.., made, of_house] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((of_house.by.as_str(), of_house.source.as_str()), ("house:haft", "house"));
    assert_eq!((made.by.as_str(), made.by_name.as_str(), made.on.as_str()), ("person:ann", "Ann", "key:k1"));
    assert_eq!((made.via.as_deref(), made.address.as_deref()), (Some("page"), Some("192.0.2.7")));
    let changed = r#"{"before":{"version":1},"after":{"version":2}}"#;
    assert_eq!(rows[1].detail, changed);
    let text = format!("{rows:?}");
    assert!(!text.contains("s3cr3t") && !text.contains("sealed value"), "no secret, not even its hash: {text}");
    assert_eq!(store.audit(&bolt, &all()).await.unwrap().len(), 1, "another tenant has its own log");

    let (log, acme) = (&store, &acme);
    let only = |filter: AuditFilter| async move { log.audit(acme, &filter).await.unwrap().len() };
    assert_eq!(only(AuditFilter { action: Some(AuditAction::SettingChanged), ..all() }).await, 2);
    assert_eq!(only(AuditFilter { by: Some("person:ann".into()), ..all() }).await, 5);
    assert_eq!(only(AuditFilter { on: Some("key:k1".into()), ..all() }).await, 2);
    assert_eq!(only(AuditFilter { since: Some(Timestamp::now() + SignedDuration::from_hours(1)), ..all() }).await, 0);
    assert_eq!(only(AuditFilter { before: Some(3), ..all() }).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_holds_however_many_write_at_once() {
    let (folder, store) = new_store().await;
    let acme = tenant(&store, "acme").await;
    let other = open(&folder).await;
    let adding = (0..40).map(|number| {
        let (store, acme) = (if number % 2 == 0 { &store } else { &other }, &acme);
        async move { store.add_api_key(acme, &key(&format!("k{number:02}"))).await.unwrap() }
    });
    assert!(join_all(adding).await.into_iter().all(|added| added));
    let chain = store.check_audit(&house(), "acme").await.unwrap();
    assert_eq!((chain.first, chain.last, chain.broken), (1, 41, None));
}

#[tokio::test]
async fn a_log_outlives_its_tenant_and_forgets_only_its_beginning() {
    let (_folder, store) = new_store().await;
    let acme = tenant(&store, "acme").await;
    for number in 0..5 {
        store.add_api_key(&acme, &key(&format!("k{number}"))).await.unwrap();
    }
    let (past, future) = (Timestamp::UNIX_EPOCH, Timestamp::now() + SignedDuration::from_hours(1));
    assert_eq!(store.old_audit(&house(), "acme", past).await.unwrap(), None);
    let through = store.old_audit(&house(), "acme", future).await.unwrap();
    assert_eq!(through, Some(5), "the last one stays, and the chain goes on from it");
    store.forget_audit(&acme, 5).await.unwrap();
    assert!(store.remove_tenant(&house(), &acme).await.unwrap());
    let rows = store.audit_of(&house(), "acme", &all()).await.unwrap();
    let acts: Vec<(i64, &str)> = rows.iter().rev().map(|row| (row.seq, row.action.word())).collect();
    assert_eq!(acts, [(6, "key.added"), (7, "audit.forgotten"), (8, "tenant.removed")]);
    let chain = store.check_audit(&house(), "acme").await.unwrap();
    assert_eq!((chain.first, chain.last, chain.broken), (6, 8, None));
    assert!(store.audit_logs(&house()).await.unwrap().contains(&"acme".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_take_the_last_place_of_a_quota_one_gets_it() {
    let (folder, store) = new_store().await;
    let (acme, bolt) = (tenant(&store, "acme").await, tenant(&store, "bolt").await);
    let other = open(&folder).await;
    store.set_quota(&acme, QuotaKind::Keys, Some(3)).await.unwrap();
    store.set_quota(&acme, QuotaKind::CallsPerDay, Some(10)).await.unwrap();
    let adding = (0..20).map(|number| {
        let (store, acme) = (if number % 2 == 0 { &store } else { &other }, &acme);
        async move { store.add_api_key(acme, &key(&format!("k{number:02}"))).await.unwrap() }
    });
    assert_eq!(join_all(adding).await.into_iter().filter(|added| *added).count(), 3);
    let taking = (0..30).map(|number| {
        let (store, acme) = (if number % 2 == 0 { &store } else { &other }, &acme);
        async move { store.take_call(acme).await.unwrap() }
    });
    assert_eq!(join_all(taking).await.into_iter().filter(|taken| *taken).count(), 10);
    let used = store.quota_use(&acme).await.unwrap();
    let of =
        |kind: QuotaKind| used.iter().find(|quota| quota.kind == kind).map(|quota| (quota.most, quota.used)).unwrap();
    assert_eq!(of(QuotaKind::Keys), (Some(3), 3));
    assert_eq!(of(QuotaKind::CallsPerDay), (Some(10), 10));
    assert_eq!(of(QuotaKind::People), (None, 0));
    assert!(store.add_api_key(&bolt, &key("free")).await.unwrap(), "another tenant has none");
    store.set_quota(&acme, QuotaKind::Keys, None).await.unwrap();
    assert!(store.add_api_key(&acme, &key("more")).await.unwrap(), "it was lifted");
    let refused = store.audit(&acme, &AuditFilter { action: Some(AuditAction::KeyAdded), ..all() }).await.unwrap();
    assert_eq!(refused.len(), 4, "what was refused is no act");
}

#[tokio::test]
async fn an_act_that_changes_nothing_here_is_written_too() {
    let (_folder, store) = new_store().await;
    let local = TenantId::local();
    let nobody = Actor { by: None, source: Source::Web, via: None, address: Some("192.0.2.9".into()) };
    acting_as(nobody, async {
        let act = AuditEntry::in_tenant(AuditAction::SignInFailed, &local, ("person", "unknown"));
        store.note_act(&house(), act).await.unwrap();
    })
    .await;
    let rows = store.audit_of(&house(), local.as_str(), &all()).await.unwrap();
    assert_eq!((rows[0].by.as_str(), rows[0].action), ("", AuditAction::SignInFailed));
}

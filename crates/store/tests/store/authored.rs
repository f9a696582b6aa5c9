//! Tools that people write, version by version, and the secrets that they use.

use haft_runtime::{Scope, TenantId};
use haft_store::{NewToolRow, ToolRowKind};

use crate::samples::{house, new_store};

const CUSTOM: ToolRowKind = ToolRowKind::Custom;

fn of(tenant: &str) -> Scope {
    Scope::of_house(TenantId::parse(tenant).unwrap(), None)
}

fn saved(body: &str) -> NewToolRow {
    NewToolRow {
        slug: "echo".into(),
        kind: ToolRowKind::Custom,
        enabled: true,
        body: body.into(),
        hash: format!("hash of {body}"),
        saved_by: "anna".into(),
    }
}

#[tokio::test]
async fn every_save_is_a_version_and_an_old_one_can_be_read() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (of("acme"), of("bolt"));
    for id in ["acme", "bolt"] {
        assert!(store.add_tenant(&house(), (&TenantId::parse(id).unwrap(), id, id)).await.unwrap());
    }
    let before = store.tenant_version(&mine).await.unwrap();
    assert!(store.save_tool(&mine, &saved("one"), 0).await.unwrap());
    assert!(!store.save_tool(&mine, &saved("other"), 0).await.unwrap(), "the name is taken");
    assert!(store.save_tool(&mine, &saved("two"), 1).await.unwrap());
    assert!(!store.save_tool(&mine, &saved("late"), 1).await.unwrap(), "somebody was quicker");
    assert!(store.save_tool(&mine, &saved("one"), 2).await.unwrap());
    assert_eq!(store.tenant_version(&mine).await.unwrap(), before + 3, "what changed nothing is told to nobody");

    let row = store.tool_row(&mine, CUSTOM, "echo").await.unwrap().unwrap();
    assert_eq!((row.version, row.body.as_str(), row.saved_by.as_str()), (3, "one", "anna"));
    let versions = store.tool_versions(&mine, CUSTOM, "echo").await.unwrap();
    assert_eq!(versions.iter().map(|one| one.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(versions[0].hash, versions[2].hash);
    assert_eq!(store.tool_content(&mine, (CUSTOM, "echo"), 2).await.unwrap().as_deref(), Some("two"));
    assert_eq!(store.tool_content(&mine, (CUSTOM, "echo"), 4).await.unwrap(), None);

    assert!(store.tools_of_tenant(&theirs, &house()).await.unwrap().rows.is_empty());
    assert!(store.tool_versions(&theirs, CUSTOM, "echo").await.unwrap().is_empty());
    assert_eq!(store.tool_content(&theirs, (CUSTOM, "echo"), 1).await.unwrap(), None);
    assert!(!store.remove_tool(&theirs, CUSTOM, "echo").await.unwrap());
    assert!(store.remove_tool(&mine, CUSTOM, "echo").await.unwrap());
    assert_eq!(store.tool_row(&mine, CUSTOM, "echo").await.unwrap(), None);
    assert!(store.save_tool(&mine, &saved("new"), 0).await.unwrap(), "the name is free again");
    assert_eq!(store.tool_versions(&mine, CUSTOM, "echo").await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_holds_for_all_tenants_is_news_to_each_of_them() {
    let (_folder, store) = new_store().await;
    let (mine, theirs, all) = (of("acme"), of("bolt"), house().all_tenants());
    for id in ["acme", "bolt"] {
        assert!(store.add_tenant(&house(), (&TenantId::parse(id).unwrap(), id, id)).await.unwrap());
    }
    let versions = async || (store.tenant_version(&mine).await.unwrap(), store.tenant_version(&theirs).await.unwrap());
    let before = versions().await;
    let off = NewToolRow { kind: ToolRowKind::Override, enabled: false, ..saved("{}") };
    assert!(store.save_tool(&all, &off, 0).await.unwrap());
    assert_eq!(versions().await, (before.0 + 1, before.1 + 1));
    assert!(store.save_tool(&mine, &NewToolRow { enabled: true, ..off.clone() }, 0).await.unwrap());
    assert!(store.save_tool(&mine, &saved("own"), 0).await.unwrap(), "a tool and a change of one are two");
    assert_eq!(versions().await, (before.0 + 3, before.1 + 1));

    let (found, other) = (store.tools_of_tenant(&mine, &house()).await, store.tools_of_tenant(&theirs, &house()).await);
    let (found, other) = (found.unwrap(), other.unwrap());
    let rows: Vec<_> = found.rows.iter().map(|row| (row.kind, row.enabled, row.body.as_str())).collect();
    assert_eq!(rows, [(ToolRowKind::Override, true, "{}"), (ToolRowKind::Custom, true, "own")]);
    assert_eq!((found.version, found.tenant.as_deref()), (before.0 + 3, Some("acme")));
    assert_eq!((other.rows.len(), &other.for_all), (0, &found.for_all));
    assert_eq!((found.for_all.len(), found.for_all[0].enabled), (1, false));
    let nobody = store.tools_of_tenant(&of("nobody"), &house()).await.unwrap();
    assert_eq!((nobody.tenant, nobody.version), (None, 0));
    assert!(store.remove_tool(&all, ToolRowKind::Override, "echo").await.unwrap());
    assert_eq!(versions().await, (before.0 + 4, before.1 + 2));
}

#[tokio::test]
async fn a_setting_is_changed_by_whoever_saw_it_last() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (of("acme"), of("bolt"));
    for id in ["acme", "bolt"] {
        assert!(store.add_tenant(&house(), (&TenantId::parse(id).unwrap(), id, id)).await.unwrap());
    }
    let before = store.tenant_version(&mine).await.unwrap();
    assert!(store.change_tenant_setting(&mine, ("policy", None), "one").await.unwrap());
    assert!(!store.change_tenant_setting(&mine, ("policy", None), "late").await.unwrap());
    assert!(!store.change_tenant_setting(&mine, ("policy", Some("other")), "late").await.unwrap());
    assert!(store.change_tenant_setting(&mine, ("policy", Some("one")), "two").await.unwrap());
    assert_eq!(store.tenant_setting(&mine, "policy").await.unwrap().as_deref(), Some("two"));
    assert_eq!(store.tenant_setting(&theirs, "policy").await.unwrap(), None);
    assert_eq!(store.tenant_version(&mine).await.unwrap(), before + 2);
}

#[tokio::test]
async fn a_secret_is_bound_to_one_host_once() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (of("acme"), of("bolt"));
    store.set_secret(&mine, ("TOKEN", ""), vec![1, 2]).await.unwrap();
    assert!(store.secret(&theirs, "TOKEN").await.unwrap().is_none());
    assert!(!store.bind_secret(&theirs, "TOKEN", "evil.example").await.unwrap());
    assert!(store.bind_secret(&mine, "TOKEN", "api.example").await.unwrap());
    assert!(!store.bind_secret(&mine, "TOKEN", "evil.example").await.unwrap());
    let found = store.secret(&mine, "TOKEN").await.unwrap().unwrap();
    assert_eq!((found.hosts.as_str(), found.sealed), ("api.example", vec![1, 2]));
    store.set_secret(&mine, ("TOKEN", "b.example"), vec![3]).await.unwrap();
    assert_eq!(store.secrets(&mine).await.unwrap().len(), 1);
    assert!(!store.remove_secret(&theirs, "TOKEN").await.unwrap());
    assert!(store.remove_secret(&mine, "TOKEN").await.unwrap());
    assert!(store.secrets(&mine).await.unwrap().is_empty());
}

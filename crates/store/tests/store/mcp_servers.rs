//! Upstream MCP servers of tenants, what is known of them, and what is set for a tenant.

use haft_runtime::{Scope, TenantId};
use haft_store::{NewMcpServer, PinNews};

use crate::samples::{house, new_store};

fn of(tenant: &str) -> Scope {
    Scope::of_house(TenantId::parse(tenant).unwrap(), None)
}

fn server(body: &str) -> NewMcpServer {
    NewMcpServer { name: "files".into(), body: body.into(), saved_by: "anna".into() }
}

#[tokio::test]
async fn a_server_belongs_to_one_tenant_and_nobody_writes_over_what_they_have_not_read() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (of("acme"), of("bolt"));
    for id in ["acme", "bolt"] {
        assert!(store.add_tenant(&house(), (&TenantId::parse(id).unwrap(), id, id)).await.unwrap());
    }
    let before = store.tenant_version(&mine).await.unwrap();
    assert!(store.add_mcp_server(&mine, &server("one")).await.unwrap());
    assert!(!store.add_mcp_server(&mine, &server("other")).await.unwrap(), "the name is taken");
    assert!(store.add_mcp_server(&theirs, &server("theirs")).await.unwrap(), "but only here");
    let first = store.mcp_server(&mine, "files").await.unwrap().unwrap();
    assert_eq!((first.body.as_str(), first.pins.as_deref(), first.saved_by.as_str()), ("one", None, "anna"));

    assert!(store.save_mcp_server(&mine, &server("two"), first.revision).await.unwrap());
    assert!(!store.save_mcp_server(&mine, &server("late"), first.revision).await.unwrap(), "somebody was quicker");
    let over = ("files", first.revision + 1);
    assert!(!store.save_mcp_pins(&mine, ("files", first.revision), "{}", PinNews::Tools).await.unwrap());
    assert!(store.save_mcp_pins(&mine, over, "{}", PinNews::Tools).await.unwrap());
    assert_eq!(store.tenant_version(&mine).await.unwrap(), before + 3, "what changed nothing is told to nobody");
    assert!(store.save_mcp_pins(&mine, ("files", over.1 + 1), "{1}", PinNews::State).await.unwrap());
    assert_eq!(store.tenant_version(&mine).await.unwrap(), before + 3, "nor is what says nothing of tools");
    let found = store.mcp_server(&mine, "files").await.unwrap().unwrap();
    assert_eq!((found.body.as_str(), found.pins.as_deref()), ("two", Some("{1}")));
    let listed = store.mcp_servers(&mine).await.unwrap();
    assert_eq!((listed.len(), listed[0].pins.as_deref(), listed[0].revision), (1, None, found.revision));

    assert!(store.remove_mcp_server(&mine, "files").await.unwrap());
    assert!(!store.remove_mcp_server(&mine, "files").await.unwrap());
    assert_eq!(store.mcp_server(&theirs, "files").await.unwrap().unwrap().body, "theirs");
    assert!(store.add_mcp_server(&mine, &server("again")).await.unwrap(), "the name is free again");
    let again = store.mcp_server(&mine, "files").await.unwrap().unwrap();
    assert!(again.revision > found.revision && again.pins.is_none(), "{again:?}");
}

#[tokio::test]
async fn a_setting_of_a_tenant_is_changed_by_whoever_knows_what_it_says() {
    let (_folder, store) = new_store().await;
    let (mine, theirs) = (of("acme"), of("bolt"));
    assert!(store.add_tenant(&house(), (mine.tenant(), "acme", "acme")).await.unwrap());
    let before = store.tenant_version(&mine).await.unwrap();
    assert_eq!(store.tenant_setting(&mine, "web.allow").await.unwrap(), None);
    assert!(store.change_tenant_setting(&mine, ("web.allow", None), "a").await.unwrap());
    assert!(!store.change_tenant_setting(&mine, ("web.allow", None), "b").await.unwrap());
    assert!(!store.change_tenant_setting(&mine, ("web.allow", Some("b")), "c").await.unwrap());
    assert!(store.change_tenant_setting(&mine, ("web.allow", Some("a")), "c").await.unwrap());
    assert_eq!(store.tenant_setting(&mine, "web.allow").await.unwrap().as_deref(), Some("c"));
    assert_eq!(store.tenant_setting(&theirs, "web.allow").await.unwrap(), None);
    assert_eq!(store.tenant_version(&mine).await.unwrap(), before + 2);
}

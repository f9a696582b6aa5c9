//! What layers come to, for whom, and for how long.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{Layer, LayerSource, Layers};
use crate::{
    AnyTool, Caller, Catalog, Registry, RegistryError, Scope, Shown, Source, TenantId, registry::usable,
    search::tests::tool,
};

fn named(name: &str) -> Arc<dyn AnyTool> {
    tool(name, "Does something.", &json!({}), Shown::Always)
}

fn layer(names: &[&str]) -> Arc<Layer> {
    let (tools, faults) = usable(names.iter().map(|name| named(name)).collect());
    assert!(faults.is_empty(), "{faults:?}");
    Arc::new(Layer::of(tools).0)
}

/// Each tenant has its own layer.
struct OfTenants(Mutex<Vec<(TenantId, Arc<Layer>)>>);

impl LayerSource for OfTenants {
    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        let all = self.0.lock().unwrap();
        let own = all.iter().find(|(tenant, _)| tenant == caller.scope.tenant());
        own.map(|(_, layer)| layer.clone()).unwrap_or_default()
    }
}

fn of(tenant: &str) -> Caller {
    Caller::owner("ann", Scope::of_house(TenantId::parse(tenant).unwrap(), None), Source::Cli)
}

#[tokio::test]
async fn each_sees_the_own_tools_beside_those_of_code() {
    let code = Arc::new(Registry::with([named("read")]).unwrap());
    let own = |tenant: &str, names: &[&str]| (TenantId::parse(tenant).unwrap(), layer(names));
    let tenants = Arc::new(OfTenants(Mutex::new(vec![own("a", &["ship"]), own("b", &["bill", "read"])])));
    let layers = Layers::new(vec![code.clone(), tenants.clone()]);
    let (a, b) = (of("a"), of("b"));
    let names = |caller: &Caller| layers.tools(caller).names().into_iter().collect::<Vec<_>>();
    assert_eq!((names(&a), names(&b)), (vec!["read".into(), "ship".into()], vec!["bill".into(), "read".into()]));
    assert!(layers.find(&a, "bill").await.is_err() && layers.find(&b, "bill").await.is_ok());
    assert_eq!(layers.tools(&b).faults(), [RegistryError::Duplicate { name: "read".into() }], "code comes first");

    let before = (layers.tools(&a), layers.tools(&b));
    assert!(Arc::ptr_eq(&before.0, &layers.tools(&a)), "the same until something changes");
    tenants.0.lock().unwrap()[0].1 = layer(&["ship", "track"]);
    assert!(layers.find(&a, "track").await.is_ok());
    assert!(Arc::ptr_eq(&before.1, &layers.tools(&b)), "nobody else's change");
    code.register(named("write")).unwrap();
    assert!(layers.find(&a, "write").await.is_ok() && layers.find(&b, "write").await.is_ok());
}

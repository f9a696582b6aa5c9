//! Tools that are code as one tenant has them: without those that were switched off, and with what was changed of the rest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_runtime::{Caller, Layer, LayerSource, RegisteredTool, TenantId, ToolError};

use super::{
    AuthoredTools,
    layer::{MANY_TENANTS, no_tools},
    overrides::Overrides,
};

/// A layer of tools that are code, for each tenant as its rows say.
pub struct PatchedTools {
    code: Arc<dyn LayerSource>,
    rows: Arc<AuthoredTools>,
    patched: Mutex<HashMap<TenantId, PatchedLayer>>,
}

/// What a layer and some overrides came to.
struct PatchedLayer {
    code: Arc<Layer>,
    overrides: Arc<Overrides>,
    layer: Arc<Layer>,
}

impl PatchedTools {
    /// These tools, as these rows say.
    pub fn new(code: Arc<dyn LayerSource>, rows: Arc<AuthoredTools>) -> Self {
        Self { code, rows, patched: Mutex::default() }
    }
}

impl LayerSource for PatchedTools {
    fn look<'a>(&'a self, caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.rows.refresh(&caller.scope).await?;
            self.code.look(caller, name).await
        })
    }

    fn layer(&self, caller: &Caller) -> Arc<Layer> {
        let code = self.code.layer(caller);
        // Where nobody knows what was switched off, nothing is on.
        let Some((tenant, overrides)) = self.rows.overrides(&caller.scope) else { return no_tools() };
        if code.is_empty() || (overrides.is_empty() && !code.is_for_some_only()) {
            return code;
        }
        let mut patched = self.patched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = patched.get(caller.scope.tenant())
            && Arc::ptr_eq(&known.code, &code)
            && Arc::ptr_eq(&known.overrides, &overrides)
        {
            return Arc::clone(&known.layer);
        }
        let layer = Arc::new(code.edited(|tool| edited(tool, tenant.as_deref(), &overrides)));
        if patched.len() >= MANY_TENANTS {
            patched.clear();
        }
        let known = PatchedLayer { code, overrides, layer: Arc::clone(&layer) };
        patched.insert(caller.scope.tenant().clone(), known);
        layer
    }

    fn missing(&self, caller: &Caller, name: &str) -> Option<ToolError> {
        self.code.missing(caller, name)
    }
}

/// A tool as a tenant has it; `None` where it has none.
fn edited(tool: &Arc<RegisteredTool>, tenant: Option<&str>, overrides: &Overrides) -> Option<Arc<RegisteredTool>> {
    if !tool.is_for(tenant) {
        return None;
    }
    let Some(changed) = overrides.get(&tool.spec().name) else { return Some(Arc::clone(tool)) };
    let patched = || Arc::new(tool.described_by(changed.all.applied_to(tool.spec())));
    changed.is_enabled().then(patched)
}

//! Where a tool comes from and whether it is there, for lists and pages; and tools that are only tried.

use std::{collections::BTreeMap, sync::Arc};

use haft_runtime::{Caller, ErrorCode, RegisteredTool, Scope, ToolError, usable};
use haft_store::ToolRowKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{AuthoredTool, AuthoredTools};
use crate::{Permission, platform::mistake};

/// The names of upstream tools begin so.
const UPSTREAM: &str = "mcp__";

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolOrigin {
    /// It is part of the program.
    Code,
    /// The tenant's people wrote it.
    Tenant,
    /// An upstream MCP server has it.
    Upstream,
    /// A folder of this machine's own user brings it.
    Project,
}

/// What is known of a tool beside what it says itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStanding {
    /// Where it comes from.
    pub origin: ToolOrigin,
    /// What the tenant's own row is: `tenant_custom` or `system_override`; `system` where it has none.
    pub kind: &'static str,
    /// Whether it can be used.
    pub enabled: bool,
    /// Whether calls are shown in the space where they happen, where that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
    /// How a result is shown, where that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_sections: Option<Value>,
}

impl AuthoredTools {
    /// What is known of a tool, as of the last look.
    pub fn standing(&self, scope: &Scope, name: &str) -> ToolStanding {
        let standing =
            |origin, kind, enabled| ToolStanding { origin, kind, enabled, visible: None, output_sections: None };
        if self.code(name).is_some() {
            let known = self.overrides(scope);
            let Some(changed) = known.as_ref().and_then(|(_, overrides)| overrides.get(name)) else {
                return standing(ToolOrigin::Code, "system", known.is_some());
            };
            let kind = if changed.own.is_some() { ToolRowKind::Override.word() } else { "system" };
            let (visible, output_sections) = (changed.all.visible, changed.all.output_sections.clone());
            return ToolStanding { visible, output_sections, ..standing(ToolOrigin::Code, kind, changed.is_enabled()) };
        }
        let (on, off) = self.own(scope);
        if on.get(name).is_some() || off.get(name).is_some() {
            return standing(ToolOrigin::Tenant, ToolRowKind::Custom.word(), on.get(name).is_some());
        }
        let origin = if name.starts_with(UPSTREAM) { ToolOrigin::Upstream } else { ToolOrigin::Project };
        standing(origin, "system", true)
    }

    /// The tools that are switched off for a tenant, by name, after the one of this name.
    pub async fn switched_off(
        &self,
        scope: &Scope,
        after: Option<&str>,
    ) -> Result<Vec<Arc<RegisteredTool>>, ToolError> {
        self.refresh(scope).await?;
        let (_, off) = self.own(scope);
        let mut all: BTreeMap<String, Arc<RegisteredTool>> =
            off.after(after).map(|tool| (tool.spec().name.clone(), Arc::clone(tool))).collect();
        for code in self.all_code() {
            let is_off = |tool: &&Arc<RegisteredTool>| !self.standing(scope, &tool.spec().name).enabled;
            for tool in code.after(after).filter(is_off).filter_map(|tool| self.as_changed(scope, tool)) {
                all.insert(tool.spec().name.clone(), tool);
            }
        }
        Ok(all.into_values().collect())
    }

    /// A tool that is not in a caller's catalogue although their tenant could have it: switched off, or for workspaces only.
    pub async fn out_of_sight(&self, scope: &Scope, name: &str) -> Result<Option<Arc<RegisteredTool>>, ToolError> {
        self.refresh(scope).await?;
        if let Some(code) = self.code(name) {
            return Ok(self.as_changed(scope, &code));
        }
        Ok(self.own(scope).1.get(name).cloned())
    }

    /// A tool that is code as the tenant has it, or would if it were on.
    fn as_changed(&self, scope: &Scope, tool: &Arc<RegisteredTool>) -> Option<Arc<RegisteredTool>> {
        let (tenant, overrides) = self.overrides(scope)?;
        if !tool.is_for(tenant.as_deref()) {
            return None;
        }
        Some(match overrides.get(&tool.spec().name) {
            Some(changed) => Arc::new(tool.described_by(changed.all.applied_to(tool.spec()))),
            None => Arc::clone(tool),
        })
    }

    /// A tool that is tried as it is written and saved nowhere.
    pub async fn draft(&self, caller: &Caller, slug: &str, written: Value) -> Result<Arc<RegisteredTool>, ToolError> {
        if self.code(slug).is_some() {
            let message = format!("`{slug}` is part of the program; a draft needs a slug of its own");
            return Err(ToolError::new(ErrorCode::AlreadyExists, message));
        }
        let mut written = written;
        if let Value::Object(fields) = &mut written {
            fields.entry("slug").or_insert_with(|| slug.into());
        }
        let tool = AuthoredTool::read(written)?;
        if tool.slug != slug {
            return Err(mistake(format!("the draft is called `{}`, the address says `{slug}`", tool.slug)));
        }
        self.refresh(&caller.scope).await?;
        let (on, off) = self.own(&caller.scope);
        let is_new = on.get(slug).is_none() && off.get(slug).is_none();
        let needed = if is_new { Permission::ToolsCreate } else { Permission::ToolsUpdate }.word();
        if !caller.permissions.allow(needed) {
            let message = format!("{} may not try a draft: that needs `{needed}`", caller.name);
            return Err(ToolError::new(ErrorCode::Forbidden, message));
        }
        if let Some(execution) = &tool.execution {
            let (host, names) = execution.sends()?;
            self.platform.refuse_unbound_secrets(caller, &names, &host).await?;
        }
        let client = self.web.client(&caller.scope).await?;
        let (mut tools, faults) = usable(vec![self.made(&tool, &client)]);
        tools.pop().ok_or_else(|| mistake(faults.first().map_or_else(String::new, ToString::to_string)))
    }
}

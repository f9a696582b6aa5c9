//! What a tenant, or the operator for all tenants, changes of a tool that is code.

use std::{collections::BTreeMap, time::Duration};

use haft_runtime::{Asks, Caller, ErrorCode, ToolError, ToolSpec};
use haft_store::ToolRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::definition::{PermissionPolicy, check_permission, check_sections, check_time};
use crate::{Permission, platform::mistake};

/// What is changed of a tool that is code; what is absent stays as it is. What it takes and does is no part of this.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolOverride {
    /// Whether there shall be such a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The name that people read.
    #[serde(default, alias = "name", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_policy: Option<PermissionPolicy>,
    /// What a caller needs to use it, beside using tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_permission: Option<String>,
    /// Whether calls are shown in the space where they happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// How a result is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sections: Option<Value>,
}

impl ToolOverride {
    /// The same with some fields changed; `null` takes one back.
    pub(super) fn changed(&self, fields: &Map<String, Value>) -> Result<Self, ToolError> {
        let mut whole = json!(self);
        for (name, value) in fields {
            // Whoever sends a title by its other name means the same field.
            let name = if name == "name" { "title" } else { name };
            whole[name] = value.clone();
        }
        let unfit = |err: serde_json::Error| mistake(format!("this cannot be changed of a tool that is code: {err}"));
        let changed: Self = serde_json::from_value(whole).map_err(unfit)?;
        changed.check()?;
        Ok(changed)
    }

    fn check(&self) -> Result<(), ToolError> {
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(mistake(format!("`{name}` is empty; `null` brings the tool's own back")));
            }
        }
        check_time("timeout", self.timeout)?;
        check_permission(self.required_permission.as_deref())?;
        check_sections(self.output_sections.as_ref())
    }

    /// What both say together: this one where it says something.
    fn over(&self, other: &Self) -> Self {
        let Self { title, description, permission_policy, required_permission, .. } = self.clone();
        Self {
            // A no of either is a no.
            enabled: if other.enabled == Some(false) { other.enabled } else { self.enabled.or(other.enabled) },
            title: title.or_else(|| other.title.clone()),
            description: description.or_else(|| other.description.clone()),
            permission_policy: permission_policy.or(other.permission_policy),
            required_permission: required_permission.or_else(|| other.required_permission.clone()),
            visible: self.visible.or(other.visible),
            timeout: self.timeout.or(other.timeout),
            output_sections: self.output_sections.clone().or_else(|| other.output_sections.clone()),
        }
    }

    /// The tool as it is with this.
    pub(super) fn applied_to(&self, code: &ToolSpec) -> ToolSpec {
        let mut spec = code.clone();
        if let Some(title) = &self.title {
            spec.title.clone_from(title);
        }
        if let Some(description) = &self.description {
            spec.description.clone_from(description);
        }
        if let Some(permission) = &self.required_permission {
            spec.permission.clone_from(permission);
        }
        if let Some(timeout) = self.timeout.and_then(|timeout| u64::try_from(timeout).ok()) {
            spec.timeout = Duration::from_millis(timeout);
        }
        spec.asks = match (self.permission_policy, code.asks) {
            (Some(PermissionPolicy::AlwaysAsk), _) => Asks::Always,
            // What such a tool does to files still decides.
            (Some(PermissionPolicy::Auto), Asks::Always) => Asks::ByEffect,
            (Some(PermissionPolicy::Auto) | None, asks) => asks,
        };
        spec
    }
}

/// What holds of a tool that is code, for one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OverrideInForce {
    /// What is changed of it, by whomever.
    pub(super) all: ToolOverride,
    /// What the tenant itself changes of it.
    pub(super) own: Option<ToolOverride>,
}

impl OverrideInForce {
    pub(super) fn is_enabled(&self) -> bool {
        self.all.enabled != Some(false)
    }
}

/// What is changed of all tools that are code, for one tenant.
#[derive(Debug, Default)]
pub(super) struct Overrides(BTreeMap<String, OverrideInForce>);

impl Overrides {
    /// From the rows that hold for all tenants, and the tenant's own.
    pub(super) fn of<'a>(for_all: impl Iterator<Item = &'a ToolRow>, own: impl Iterator<Item = &'a ToolRow>) -> Self {
        let mut overrides: BTreeMap<String, OverrideInForce> = BTreeMap::new();
        for row in for_all {
            overrides.entry(row.slug.clone()).or_default().all = known(row);
        }
        for row in own {
            let (own, before) = (known(row), overrides.entry(row.slug.clone()).or_default());
            *before = OverrideInForce { all: own.over(&before.all), own: Some(own) };
        }
        Self(overrides)
    }

    pub(super) fn get(&self, tool: &str) -> Option<&OverrideInForce> {
        self.0.get(tool)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a row says. One that cannot be read may have said no.
fn known(row: &ToolRow) -> ToolOverride {
    read(row).unwrap_or_else(|error| {
        tracing::warn!(slug = row.slug, error = error.message, "a tool is switched off");
        ToolOverride { enabled: Some(false), ..ToolOverride::default() }
    })
}

pub(super) fn read(row: &ToolRow) -> Result<ToolOverride, ToolError> {
    let damaged = |err| {
        let message = format!("what is changed of `{}` cannot be read: {err}", row.slug);
        ToolError::new(ErrorCode::Internal, message)
    };
    serde_json::from_str(&row.body).map_err(damaged)
}

/// Refuses what would ask less, or somebody else, than before, unless the caller may decide that.
pub(super) fn refuse_loosening(caller: &Caller, before: &ToolSpec, after: &ToolSpec) -> Result<(), ToolError> {
    let needed = Permission::ToolsPolicy.word();
    let asks_less = before.asks == Asks::Always && after.asks != Asks::Always;
    let is_for_others = before.permission != after.permission;
    if !(asks_less || is_for_others) || caller.permissions.allow(needed) {
        return Ok(());
    }
    let what = if asks_less { "have it asked for less" } else { "change who may use it" };
    let message = format!("{} may not {what}: `{}` needs `{needed}` for that", caller.name, after.name);
    Err(ToolError::new(ErrorCode::Forbidden, message))
}

/// What a caller who may loosen nothing has said: that a tool shall not always be asked for says nothing, so that it takes
/// nothing back that is said later for all tenants.
pub(super) fn without_loosening(caller: &Caller, before: &ToolOverride, mut after: ToolOverride) -> ToolOverride {
    let is_new = before.permission_policy != Some(PermissionPolicy::Auto);
    let may_loosen = caller.permissions.allow(Permission::ToolsPolicy.word());
    if after.permission_policy == Some(PermissionPolicy::Auto) && is_new && !may_loosen {
        after.permission_policy = None;
    }
    after
}

/// What a tenant's override and those for all tenants come to.
pub(super) fn in_force(own: &ToolOverride, for_all: &ToolOverride) -> ToolOverride {
    own.over(for_all)
}

//! Tenants: who adds them, and what they are called.

use haft_runtime::{ErrorCode, Scope, TenantId, ToolError};
use haft_store::TenantRecord;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Platform,
    platform::{mistake, not_found},
};

/// A tenant as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantView {
    /// What it is found by.
    pub id: String,
    /// What it is called in addresses and on the command line.
    pub slug: String,
    /// The name that people read.
    pub name: String,
}

impl From<&TenantRecord> for TenantView {
    fn from(record: &TenantRecord) -> Self {
        let id = record.scope.tenant().to_string();
        Self { id, slug: record.slug.clone(), name: record.name.clone() }
    }
}

impl Platform {
    /// Adds a tenant.
    pub async fn add_tenant(&self, slug: &str, name: Option<&str>) -> Result<TenantView, ToolError> {
        let fits = slug.len() <= 64 && slug.starts_with(|first: char| first.is_ascii_lowercase());
        let plain = slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !fits || !plain {
            return Err(mistake(format!("`{slug}` is no slug: a small letter, then small letters, digits and `-`")));
        }
        let id = format!("tn_{}", uuid::Uuid::now_v7().simple());
        let id = TenantId::parse(&id).ok_or_else(|| mistake("no id could be made"))?;
        let name = name.unwrap_or(slug);
        if !self.store.add_tenant(&self.house, (&id, slug, name)).await? {
            return Err(ToolError::new(ErrorCode::AlreadyExists, format!("there is a tenant `{slug}` already")));
        }
        Ok(TenantView { id: id.to_string(), slug: slug.to_owned(), name: name.to_owned() })
    }

    /// Sees to it that there is the tenant of this machine's own user.
    pub async fn have_local_tenant(&self) -> Result<(), ToolError> {
        let local = TenantId::local();
        self.store.add_tenant(&self.house, (&local, local.as_str(), "This machine")).await?;
        Ok(())
    }

    /// Every tenant.
    pub async fn tenants(&self) -> Result<Vec<TenantView>, ToolError> {
        Ok(self.store.tenants(&self.house).await?.iter().map(TenantView::from).collect())
    }

    /// The tenant with this slug.
    pub async fn tenant(&self, slug: &str) -> Result<TenantRecord, ToolError> {
        let found = self.store.tenant_by_slug(&self.house, slug).await?;
        found.ok_or_else(|| not_found(&format!("tenant `{slug}`")))
    }

    /// What the tenant of a scope is called.
    pub async fn tenant_of(&self, scope: &Scope) -> Result<TenantView, ToolError> {
        let found = self.store.tenant_of(scope).await?;
        found.as_ref().map(TenantView::from).ok_or_else(|| not_found("such tenant"))
    }

    /// Removes a tenant with everything that it has.
    pub async fn remove_tenant(&self, slug: &str) -> Result<(), ToolError> {
        let tenant = self.tenant(slug).await?;
        if *tenant.scope.tenant() == TenantId::local() {
            return Err(mistake("the tenant of this machine's own user cannot be removed"));
        }
        self.store.remove_tenant(&self.house, &tenant.scope).await?;
        Ok(())
    }
}

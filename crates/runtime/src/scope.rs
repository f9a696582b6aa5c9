//! Which part of the world a call or a query belongs to, and what may look beyond it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tenant of the owner of this machine's own workspaces.
const LOCAL: &str = "local";
/// Reserved for rows that hold for all tenants.
pub const ALL_TENANTS: &str = "00000000-0000-0000-0000-000000000000";

/// A tenant. The local owner's is `local`, an ordinary one. The nil UUID is no tenant: it is reserved for rows that hold
/// for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantId(String);

impl TenantId {
    /// The tenant of the local owner.
    pub fn local() -> Self {
        Self(LOCAL.to_owned())
    }

    /// The id that a text is, when it can be one.
    pub fn parse(text: &str) -> Option<Self> {
        (!text.is_empty() && text != ALL_TENANTS).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for all tenants.
    pub fn is_all(&self) -> bool {
        self.0 == ALL_TENANTS
    }
}

impl TryFrom<String> for TenantId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no tenant"))
    }
}

impl From<TenantId> for String {
    fn from(tenant: TenantId) -> Self {
        tenant.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A workspace of a tenant. Where the owner works in a folder, that is the folder's path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkspaceId(String);

impl WorkspaceId {
    /// The workspace of this name.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tenant, and within it the workspace, that a call or a query belongs to. Every store method takes one.
///
/// Only identity and the house make one, or it is read from a record: never from the text of a request. `cargo xtask tidy`
/// lists the files that may.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    tenant: TenantId,
    workspace: Option<WorkspaceId>,
}

impl Scope {
    /// For identity and the house: where somebody is at home.
    pub fn of_house(tenant: TenantId, workspace: Option<WorkspaceId>) -> Self {
        Self { tenant, workspace }
    }

    /// For identity and the house: a workspace of the local owner.
    pub fn local(workspace: impl Into<String>) -> Self {
        Self::of_house(TenantId::local(), Some(WorkspaceId::new(workspace)))
    }

    /// For whatever reads records: where a call, a question or a grant belongs.
    pub fn of_record(tenant: TenantId, workspace: Option<WorkspaceId>) -> Self {
        Self { tenant, workspace }
    }

    /// Whose data.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Which workspace; `None` means that there is none.
    pub fn workspace(&self) -> Option<&WorkspaceId> {
        self.workspace.as_ref()
    }

    /// The same tenant, in the workspace of a record that was read with this scope.
    pub(crate) fn beside(&self, workspace: Option<&WorkspaceId>) -> Self {
        Self { tenant: self.tenant.clone(), workspace: workspace.cloned() }
    }
}

/// How much of a tenant a list covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Within {
    /// All workspaces, and what belongs to none.
    Everything,
    /// One workspace.
    Only(WorkspaceId),
}

impl Within {
    /// The one workspace, if it is one.
    pub fn only(&self) -> Option<&WorkspaceId> {
        match self {
            Self::Everything => None,
            Self::Only(workspace) => Some(workspace),
        }
    }

    /// Whether something of this workspace is covered.
    pub fn covers(&self, workspace: Option<&WorkspaceId>) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(only) => workspace == Some(only),
        }
    }
}

/// The right to work across all tenants: ending what a dead process left behind, and what nobody answered in time. Only the
/// house makes one.
#[derive(Clone, Debug)]
pub struct HouseWide {
    carries: Within,
}

impl HouseWide {
    /// For the house: it can carry on the calls of these workspaces.
    pub fn of_house(carries: Within) -> Self {
        Self { carries }
    }

    /// Where the rows lie that hold for all tenants.
    pub fn all_tenants(&self) -> Scope {
        Scope { tenant: TenantId(ALL_TENANTS.to_owned()), workspace: None }
    }

    /// The workspaces whose waiting calls this process can carry on.
    pub fn carries(&self) -> &Within {
        &self.carries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nil_uuid_is_no_tenant() {
        assert_eq!(TenantId::parse(ALL_TENANTS), None);
        assert_eq!(TenantId::parse(""), None);
        assert_eq!(TenantId::parse("local"), Some(TenantId::local()));
        serde_json::from_str::<TenantId>(&format!("\"{ALL_TENANTS}\"")).unwrap_err();
        assert!(HouseWide::of_house(Within::Everything).all_tenants().tenant().is_all());
        assert!(!TenantId::local().is_all());
    }

    #[test]
    fn no_workspace_is_not_every_workspace() {
        let (here, there) = (WorkspaceId::new("here"), WorkspaceId::new("there"));
        let only = Within::Only(here.clone());
        assert!(only.covers(Some(&here)) && !only.covers(Some(&there)) && !only.covers(None));
        assert!(Within::Everything.covers(None) && Within::Everything.covers(Some(&there)));
    }
}

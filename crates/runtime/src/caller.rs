//! Who asks, and which part of the world a call or a query belongs to.

use serde::{Deserialize, Serialize};

/// A tenant. The owner of a solo house is the tenant `local`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TenantId(pub String);

/// The tenant, and within it the workspace, that a call or a query belongs to. Every store method takes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Whose data.
    pub tenant: TenantId,
    /// Which workspace; `None` means every workspace of the tenant.
    pub workspace: Option<String>,
}

impl Scope {
    /// A workspace of the local owner.
    pub fn local(workspace: impl Into<String>) -> Self {
        Self { tenant: TenantId("local".to_owned()), workspace: Some(workspace.into()) }
    }

    /// The same tenant without a choice of workspace.
    #[must_use]
    pub fn all_workspaces(&self) -> Self {
        Self { tenant: self.tenant.clone(), workspace: None }
    }
}

/// Through which door a call or an answer came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The command line.
    Cli,
    /// An MCP client.
    Mcp,
    /// An approver, who gave another input than was asked for.
    Edit,
    /// haft itself.
    House,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name people see.
    pub name: String,
    /// Where the caller is at home.
    pub scope: Scope,
    /// The door the caller came in by.
    pub source: Source,
}

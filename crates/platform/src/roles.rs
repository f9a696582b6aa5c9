//! What each role and each scope of a key may do.

use std::collections::BTreeSet;

use haft_runtime::Permissions;
use serde::Serialize;

use crate::Permission::{self, *};

/// What somebody is in a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Owner,
    /// Everything but removing the tenant or its owner, which only the operator can.
    Admin,
    /// Works here.
    Member,
    /// Looks on.
    Viewer,
    /// A member that is no person.
    Agent,
}

impl Role {
    /// Every role there is.
    pub const ALL: &[Self] = &[Self::Owner, Self::Admin, Self::Member, Self::Viewer, Self::Agent];

    /// The role as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Viewer => "viewer",
            Self::Agent => "agent",
        }
    }

    /// The role that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.word() == word)
    }

    /// What it may do.
    pub fn permissions(self) -> BTreeSet<Permission> {
        let all = || Permission::ALL.iter().copied();
        match self {
            Self::Owner | Self::Admin => all().collect(),
            Self::Member => MEMBER.iter().chain(DATA).copied().collect(),
            Self::Viewer => all().filter(|permission| permission.only_reads()).collect(),
            Self::Agent => {
                let not = [ApprovalsRead, ApprovalsDecide, KeysOwnManage, GrantsOwnManage];
                Self::Member.permissions().into_iter().filter(|permission| !not.contains(permission)).collect()
            }
        }
    }
}

/// A role as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleView {
    /// What it is called.
    pub role: &'static str,
    /// What it may do.
    pub permissions: Vec<&'static str>,
}

impl From<Role> for RoleView {
    fn from(role: Role) -> Self {
        Self { role: role.word(), permissions: role.permissions().into_iter().map(Permission::word).collect() }
    }
}

/// What a member may do beside working with data.
const MEMBER: &[Permission] = &[
    ToolsRead,
    ToolsExecute,
    CallsOwnRead,
    CallsTeamRead,
    AgentsRead,
    AgentsRun,
    AgentsDelegate,
    SpacesRead,
    SpacesCreate,
    SpacesPost,
    ApprovalsRead,
    ApprovalsDecide,
    KeysOwnManage,
    GrantsOwnManage,
    WorkspaceRead,
    WorkspaceWrite,
    WorkspaceExecute,
    SecretsUse,
];

/// What a member may do with a tenant's data.
const DATA: &[Permission] = &[
    EntitiesRead,
    EntitiesCreate,
    EntitiesUpdate,
    EntityTypesRead,
    DocumentsRead,
    DocumentsWrite,
    TasksRead,
    TasksCreate,
    TasksRetry,
    ViewsRead,
    ViewsUpdate,
    ContextRead,
    ContextWrite,
    GoalsRead,
    GoalsRun,
    MediaRead,
    MediaWrite,
    MediaGenerate,
    ConnectionsRead,
    ConnectionsUse,
];

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyScope {
    /// See tools and the own calls.
    ToolsRead,
    /// Use tools.
    ToolsExecute,
    /// Write tools.
    ToolsWrite,
    /// Answer what is asked.
    ApprovalsDecide,
    /// Hear of everybody's calls.
    EventsRead,
    /// See agents.
    AgentsRead,
    /// Make and change agents, and have them work.
    AgentsWrite,
    /// Read spaces.
    SpacesRead,
    /// Make spaces and write in them.
    SpacesWrite,
    /// Add and remove upstream MCP servers.
    McpManage,
}

impl KeyScope {
    /// Every scope there is.
    pub const ALL: &[Self] = &[
        Self::ToolsRead,
        Self::ToolsExecute,
        Self::ToolsWrite,
        Self::ApprovalsDecide,
        Self::EventsRead,
        Self::AgentsRead,
        Self::AgentsWrite,
        Self::SpacesRead,
        Self::SpacesWrite,
        Self::McpManage,
    ];

    /// The scope as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::ToolsRead => "tools:read",
            Self::ToolsExecute => "tools:execute",
            Self::ToolsWrite => "tools:write",
            Self::ApprovalsDecide => "approvals:decide",
            Self::EventsRead => "events:read",
            Self::AgentsRead => "agents:read",
            Self::AgentsWrite => "agents:write",
            Self::SpacesRead => "spaces:read",
            Self::SpacesWrite => "spaces:write",
            Self::McpManage => "mcp:manage",
        }
    }

    /// What it lets a program do, for the person who is asked.
    pub fn what(self) -> &'static str {
        match self {
            Self::ToolsRead => "see the tools, and the calls that it made",
            Self::ToolsExecute => "use tools; what changes something is asked about as always",
            Self::ToolsWrite => "write and change tools",
            Self::ApprovalsDecide => "answer questions in your name, also about its own calls",
            Self::EventsRead => "see the calls of everybody here",
            Self::AgentsRead => "see agents",
            Self::AgentsWrite => "make and change agents, and have them work",
            Self::SpacesRead => "read spaces",
            Self::SpacesWrite => "make spaces and write in them",
            Self::McpManage => "add and remove MCP servers",
        }
    }

    /// The scope that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scope| scope.word() == word)
    }

    /// What it may do.
    pub fn permissions(self) -> Vec<Permission> {
        match self {
            Self::ToolsRead => vec![ToolsRead, CallsOwnRead],
            Self::ToolsExecute => {
                let own = [ToolsRead, CallsOwnRead, ToolsExecute, WorkspaceRead, WorkspaceWrite, WorkspaceExecute];
                own.into_iter().chain(DATA.iter().copied()).collect()
            }
            Self::ToolsWrite => vec![ToolsRead, ToolsCreate, ToolsUpdate, ToolsDelete, SecretsUse],
            Self::ApprovalsDecide => vec![ApprovalsRead, ApprovalsDecide],
            Self::EventsRead => vec![CallsOwnRead, CallsTeamRead],
            Self::AgentsRead => vec![AgentsRead],
            Self::AgentsWrite => {
                vec![AgentsRead, AgentsCreate, AgentsUpdate, AgentsDelete, AgentsRun, AgentsDelegate]
            }
            Self::SpacesRead => vec![SpacesRead],
            Self::SpacesWrite => vec![SpacesRead, SpacesCreate, SpacesUpdate, SpacesPost],
            Self::McpManage => vec![ToolsRead, McpManage, SecretsUse],
        }
    }
}

/// The permissions as the runtime holds them.
pub(crate) fn granted(permissions: &BTreeSet<Permission>) -> Permissions {
    Permissions::only(permissions.iter().map(|permission| permission.word().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_role_may_nothing_that_a_larger_one_may_not() {
        let member = Role::Member.permissions();
        assert!(Role::Owner.permissions().is_superset(&member));
        assert!(member.is_superset(&Role::Agent.permissions()));
        assert!(!member.contains(&PeopleManage) && !member.contains(&SecretsWrite));
        assert!(Role::Viewer.permissions().iter().all(|permission| permission.only_reads()));
        assert!(!Role::Agent.permissions().contains(&ApprovalsDecide));
    }

    #[test]
    fn words_of_roles_and_scopes_are_read_as_they_are_written() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.word()), Some(*role));
        }
        for scope in KeyScope::ALL {
            assert_eq!(KeyScope::parse(scope.word()), Some(*scope));
        }
    }

    #[test]
    fn a_key_that_only_looks_may_not_call() {
        assert!(!KeyScope::ToolsRead.permissions().contains(&ToolsExecute));
        assert!(!KeyScope::ToolsExecute.permissions().contains(&ApprovalsDecide));
    }
}

//! Everything that somebody may be allowed to do, as words.

/// Names each permission once, with its word.
macro_rules! permissions {
    ($($name:ident = $word:literal, $what:literal;)*) => {
        /// One thing that somebody may be allowed to do. On the wire it is `resource.scope.action`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Permission {
            $(#[doc = $what] $name,)*
        }

        impl Permission {
            /// Every permission there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The permission as it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word),*
                }
            }
        }
    };
}

permissions! {
    ToolsRead = "tools.tenant.read", "See tools.";
    ToolsExecute = "tools.tenant.execute", "Use tools.";
    ToolsCreate = "tools.tenant.create", "Write a tool.";
    ToolsUpdate = "tools.tenant.update", "Change a tool.";
    ToolsDelete = "tools.tenant.delete", "Delete a tool.";
    ToolsPolicy = "tools.tenant.policy", "Let a tool run with fewer questions.";
    CallsOwnRead = "calls.own.read", "See the own calls.";
    CallsTeamRead = "calls.team.read", "See everybody's calls.";
    ApprovalsRead = "approvals.team.read", "See what is asked.";
    ApprovalsDecide = "approvals.team.decide", "Answer what is asked.";
    WorkspaceRead = "workspace.read", "Read in workspaces.";
    WorkspaceWrite = "workspace.write", "Change files in workspaces.";
    WorkspaceExecute = "workspace.execute", "Run commands in workspaces.";
    WorkspacesManage = "workspaces.tenant.manage", "Add and remove workspaces.";
    EntitiesRead = "entities.team.read", "See records.";
    EntitiesCreate = "entities.team.create", "Make records.";
    EntitiesUpdate = "entities.team.update", "Change records.";
    EntitiesDelete = "entities.team.delete", "Delete records.";
    EntityTypesRead = "entity_types.team.read", "See the types of records.";
    EntityTypesUpdate = "entity_types.team.update", "Change the types of records.";
    DocumentsRead = "documents.team.read", "Read documents.";
    DocumentsWrite = "documents.team.write", "Write documents.";
    AgentsRead = "agents.team.read", "See agents.";
    AgentsCreate = "agents.team.create", "Make agents.";
    AgentsUpdate = "agents.team.update", "Change agents.";
    AgentsDelete = "agents.team.delete", "Delete agents.";
    AgentsRun = "agents.team.run", "Have agents work.";
    AgentsDelegate = "agents.team.delegate", "Hand work to agents.";
    SpacesRead = "spaces.team.read", "Read spaces.";
    SpacesCreate = "spaces.team.create", "Make spaces.";
    SpacesUpdate = "spaces.team.update", "Change spaces.";
    SpacesPost = "spaces.team.post", "Write in spaces.";
    TasksRead = "tasks.team.read", "See tasks.";
    TasksCreate = "tasks.team.create", "Make tasks.";
    TasksRetry = "tasks.team.retry", "Try tasks again.";
    ViewsRead = "views.team.read", "See views.";
    ViewsUpdate = "views.team.update", "Change views.";
    ViewsPublish = "views.team.publish", "Publish views.";
    ContextRead = "context.team.read", "Read the shared context.";
    ContextWrite = "context.team.write", "Change the shared context.";
    GoalsRead = "goals.team.read", "See goals.";
    GoalsRun = "goals.team.run", "Work on goals.";
    MediaRead = "media.team.read", "See media.";
    MediaWrite = "media.team.write", "Upload media.";
    MediaGenerate = "media.team.generate", "Generate media.";
    ConnectionsRead = "connections.team.read", "See connections.";
    ConnectionsCreate = "connections.team.create", "Make connections.";
    ConnectionsUse = "connections.team.use", "Use connections.";
    McpManage = "mcp.tenant.manage", "Add and remove upstream MCP servers.";
    KeysOwnManage = "keys.own.manage", "Make and remove own keys.";
    KeysTenantManage = "keys.tenant.manage", "Make and remove everybody's keys.";
    PeopleManage = "people.tenant.manage", "Add and remove people, change their roles.";
    SecretsWrite = "secrets.tenant.write", "Set secrets.";
    SecretsUse = "secrets.tenant.use", "Name secrets in tools.";
    GrantsOwnManage = "grants.own.manage", "See and revoke own grants.";
    GrantsTeamManage = "grants.team.manage", "See and revoke everybody's grants.";
    PolicyUpdate = "policy.tenant.update", "Change the rules.";
    SettingsUpdate = "settings.tenant.update", "Change settings.";
    AuditRead = "audit.tenant.read", "Read the audit log.";
}

impl Permission {
    /// The permission that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|permission| permission.word() == word)
    }

    /// Whether it only lets somebody look.
    pub(crate) fn only_reads(self) -> bool {
        self.word().ends_with(".read")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn every_word_is_written_once_and_read_again() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.word()), Some(*permission));
            let parts = permission.word().split('.').count();
            assert!(parts == 3 || permission.word().starts_with("workspace."), "{}", permission.word());
        }
        assert_eq!(Permission::parse("tools.tenant.raed"), None);
    }
}

//! Every administrative act that there is, as a word.

use serde::{Deserialize, Serialize};

/// Names each act once, with its word.
macro_rules! actions {
    ($($name:ident = $word:literal, $what:literal;)*) => {
        /// One kind of administrative act.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum AuditAction {
            $(#[doc = $what] #[serde(rename = $word)] $name,)*
        }

        impl AuditAction {
            /// Every act there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The act as it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word),*
                }
            }

            /// What happens, in a few words.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what),*
                }
            }
        }
    };
}

actions! {
    TenantAdded = "tenant.added", "A tenant was added.";
    TenantRemoved = "tenant.removed", "A tenant was removed with everything that it had.";
    PersonAdded = "person.added", "Somebody was taken into the tenant.";
    PersonRenamed = "person.renamed", "Somebody has another name.";
    PersonRemoved = "person.removed", "Somebody was taken out of the tenant, with their keys and sign-ins.";
    RoleChanged = "role.changed", "Somebody has another role.";
    PasswordSet = "password.set", "Somebody set their password.";
    AccountLinked = "account.linked", "Somebody signs in with an account of a provider from now on.";
    AccountUnlinked = "account.unlinked", "The accounts that somebody signed in with were forgotten.";
    LinkMade = "link.made", "A link was made by which somebody signs in once.";
    SignInBegan = "sign_in.began", "Somebody signed in.";
    SignInFailed = "sign_in.failed", "A sign-in was refused.";
    SignInMoved = "sign_in.moved", "Somebody who is signed in looks at another tenant.";
    SignInEnded = "sign_in.ended", "Somebody signed out.";
    KeyAdded = "key.added", "A key was made.";
    KeyRotated = "key.rotated", "A key got another secret.";
    KeyRemoved = "key.removed", "A key was removed.";
    WorkspaceAdded = "workspace.added", "A workspace was added.";
    WorkspaceMoved = "workspace.moved", "A workspace was given to another node.";
    WorkspaceRemoved = "workspace.removed", "A workspace was taken off the list.";
    ToolSaved = "tool.saved", "A tool, or what the tenant changes of one, was saved.";
    ToolRemoved = "tool.removed", "A tool, or what the tenant changed of one, was removed.";
    SecretSet = "secret.set", "A secret was set.";
    SecretBound = "secret.bound", "A secret was bound to the first host that it is sent to.";
    SecretRemoved = "secret.removed", "A secret was removed.";
    ServerAdded = "server.added", "An MCP server was added.";
    ServerChanged = "server.changed", "The entry of an MCP server was changed.";
    ServerAccepted = "server.accepted", "Other tools of an MCP server are accepted or held than before.";
    ServerRemoved = "server.removed", "An MCP server was removed.";
    ServerLoggedIn = "server.logged_in", "Somebody logged in at an MCP server, for themselves or for the tenant.";
    ServerLoggedOut = "server.logged_out", "A login at an MCP server was given up.";
    SettingChanged = "setting.changed", "A setting, the policy, or the approval rules were changed.";
    QuotaSet = "quota.set", "A quota of the tenant was set or lifted.";
    GrantGiven = "grant.given", "A yes was given that is remembered.";
    GrantRevoked = "grant.revoked", "A remembered yes was taken back.";
    ProgramLetIn = "program.let_in", "Somebody let a program in by OAuth.";
    ProgramEnded = "program.ended", "A program that was let in by OAuth was shut out.";
    AuditForgotten = "audit.forgotten", "Rows of this log were deleted because their time was over.";
}

impl AuditAction {
    /// The act that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.word() == word)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn every_word_is_written_once_and_read_again() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::parse(action.word()), Some(*action));
            assert_eq!(serde_json::to_string(action).unwrap(), format!("\"{}\"", action.word()));
            assert_eq!(action.word().split('.').count(), 2, "{}", action.word());
        }
        assert_eq!(AuditAction::parse("key.aded"), None);
    }
}

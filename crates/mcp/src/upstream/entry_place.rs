//! Where the entry of a server stands, and what whoever keeps it can do about the server.

use std::path::Path;

/// Where the entry of a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPlace {
    /// In the settings of a user, who has a command line.
    Settings,
    /// In a list that is kept over HTTP.
    List,
}

impl EntryPlace {
    /// How a difference is looked at and accepted.
    pub(super) fn to_accept(&self, server: &str) -> String {
        match self {
            Self::Settings => format!(
                "a person can look at the difference with `haft mcp-servers diff {server}` and accept it with `haft \
                 mcp-servers accept {server}`"
            ),
            Self::List => format!(
                "`GET /api/servers/{server}` shows the difference, and `POST /api/servers/{server}/accept` accepts it"
            ),
        }
    }

    /// What shows how a server is.
    pub(super) fn to_look(&self, server: &str) -> String {
        match self {
            Self::Settings => "`haft mcp-servers`".to_owned(),
            Self::List => format!("`GET /api/servers/{server}`"),
        }
    }

    /// What starts a server anew.
    pub(super) fn to_restart(&self, server: &str) -> String {
        match self {
            Self::Settings => format!("`haft mcp-servers restart {server}`"),
            Self::List => format!("`POST /api/servers/{server}/refresh`"),
        }
    }

    /// How somebody logs in at a server.
    pub(super) fn to_log_in(&self, server: &str) -> String {
        match self {
            Self::Settings => format!("run `haft mcp-servers login {server}`"),
            Self::List => format!(
                "`POST /api/servers/{server}/login` answers with a link, which a person opens where they are signed in"
            ),
        }
    }

    /// How a server is given a token.
    pub(super) fn to_send_a_token(&self, server: &str) -> String {
        let restart = self.to_restart(server);
        match self {
            Self::Settings => format!(
                "give its entry the header `Authorization` with the value `secret:NAME`, and put `Bearer` and your token \
                 into the secret NAME; then {restart} tries it"
            ),
            Self::List => format!(
                "give it the header `Authorization` with the value `Bearer {{{{secret:NAME}}}}`, and set the secret NAME \
                 to the token; then {restart} tries it"
            ),
        }
    }

    /// How a server is given the network.
    pub(super) fn to_have_network(&self, server: &str) -> String {
        let says = "it has no network; if that is what it wants,";
        match self {
            Self::Settings => format!("{says} add to your haft.toml:\n[mcp.servers.{server}]\nnetwork = true"),
            Self::List => format!("{says} the operator can add it again with `--network`"),
        }
    }

    /// How a server is let write into its folder.
    pub(super) fn to_write(&self, server: &str) -> String {
        match self {
            Self::Settings => format!(
                "this server may only read the workspace; to let it write there, add to your haft.toml:\n\
                 [mcp.servers.{server}]\nworkspace = \"write\""
            ),
            Self::List => {
                "this server may only read its folder; the operator can add it again with `--write`".to_owned()
            }
        }
    }

    /// How a file becomes visible in the fence.
    pub(super) fn to_show(&self, folder: &Path) -> String {
        let says = "that file exists, but the sandbox hides it;";
        match self {
            Self::Settings => {
                format!("{says} to show it, add to your haft.toml:\n[sandbox]\nread = [{folder:?}]")
            }
            Self::List => format!("{says} the operator can show it with `sandbox.read`"),
        }
    }
}

//! Upstream MCP servers: the user's own in `haft.toml` and `mcp.json`, and those of a trusted workspace in `.mcp.json`.

mod entry;
mod revealed;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_runtime::Effect;
use serde_json::Value;

pub(crate) use entry::name_fault;
use entry::{Entry, Keys};
pub(crate) use revealed::Revealed;

/// The user's list of servers in the common shape, beside `haft.toml`.
pub(crate) const USER_LIST: &str = "mcp.json";
/// The same of a workspace, which needs trust.
pub(crate) const WORKSPACE_LIST: &str = ".mcp.json";

/// The servers as they were written down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpSettings {
    settings: BTreeMap<String, Entry>,
    user_list: BTreeMap<String, Entry>,
    workspace_list: BTreeMap<String, Entry>,
}

/// One server as it is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// What it is called in names of tools.
    pub name: String,
    /// Who wants it.
    pub from: Wanted,
    /// How it is reached.
    pub reached: Reached,
    /// Whether it is used.
    pub enabled: bool,
    /// The only tools that are used; `None` for all.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools that are not used.
    pub denied_tools: BTreeSet<String>,
    /// The user's variables that a workspace's entry gets.
    pub variables: BTreeSet<String>,
    /// How far tools reach.
    pub effects: BTreeMap<String, Effect>,
    /// How long one call may take.
    pub timeout: Duration,
    /// Whether what it says of its tools' effects is believed.
    pub trusted: bool,
    /// Whether it reaches the network.
    pub network: bool,
    /// Whether it writes into the workspace itself.
    pub writes: bool,
    /// Processor time of each of its processes.
    pub cpu: Duration,
    /// Bytes of memory of all its processes.
    pub memory: u64,
    /// Open files of each of its processes.
    pub open_files: u64,
}

/// Who wants a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The user, in all workspaces.
    ByTheUser,
    /// The workspace, which the user has trusted.
    ByTheWorkspace,
}

/// How a server is reached, as it is written down: what it names may be secrets and variables.
#[derive(Clone, Debug, PartialEq)]
pub enum Reached {
    /// It is started here.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its variables.
        env: BTreeMap<String, String>,
        /// The folder of the workspace that it starts in.
        cwd: String,
    },
    /// It runs elsewhere.
    Url {
        /// Where.
        url: String,
        /// What is sent with every request.
        headers: BTreeMap<String, String>,
    },
}

impl Reached {
    /// Whether it is this very program.
    fn is_haft(&self) -> bool {
        let Self::Command { command, .. } = self else { return false };
        let program = command.first().and_then(|program| Path::new(program).file_name());
        program.is_some_and(|program| program == "haft") && command.get(1).is_some_and(|word| word == "mcp")
    }

    /// What people are shown. Variables and headers may hold secrets, and are not.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Command { command, .. } => command.join(" "),
            Self::Url { url, .. } => url.clone(),
        }
    }
}

impl McpSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        if key != "mcp.servers" {
            return Ok(false);
        }
        let table: toml::Value = value.parse().context("it is not a table of servers")?;
        let table = serde_json::to_value(table).context("it is not a table of servers")?;
        self.settings = entries(&table, Keys::OfHaft)?;
        Ok(true)
    }

    /// Takes in the user's list, if there is one.
    pub fn take_user_list(&mut self, file: &Path) -> Result<()> {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(err).with_context(|| format!("cannot read {}", file.display())),
        };
        self.user_list = list(&bytes, Keys::OfTheUser).with_context(|| file.display().to_string())?;
        Ok(())
    }

    /// Takes in the list of a trusted workspace. It says what is started, and nothing of what that may do.
    pub(crate) fn take_workspace_list(&mut self, bytes: &[u8]) -> Result<()> {
        self.workspace_list = list(bytes, Keys::Common)?;
        Ok(())
    }

    /// Every server but haft itself, which clients find in the same lists. Where two have one name the user's counts; an entry in `haft.toml` without `command` and `url` adds
    /// to the server of its name.
    pub(crate) fn servers(&self) -> Vec<McpServer> {
        let names: BTreeSet<&String> =
            self.settings.keys().chain(self.user_list.keys()).chain(self.workspace_list.keys()).collect();
        names.into_iter().filter_map(|name| self.server(name)).filter(|server| !server.reached.is_haft()).collect()
    }

    fn server(&self, name: &str) -> Option<McpServer> {
        let added = self.settings.get(name).cloned().unwrap_or_default();
        if added.is_whole() {
            return added.meant(name, Wanted::ByTheUser);
        }
        if let Some(of_user) = self.user_list.get(name) {
            return added.over(of_user).meant(name, Wanted::ByTheUser);
        }
        let of_workspace = self.workspace_list.get(name)?;
        added.over(of_workspace).meant(name, Wanted::ByTheWorkspace)
    }
}

/// `{"mcpServers": …}`, as other programs write it.
fn list(bytes: &[u8], keys: Keys) -> Result<BTreeMap<String, Entry>> {
    let value: Value = serde_json::from_slice(bytes).context("it is not JSON")?;
    let servers = value.get("mcpServers").context("it has no `mcpServers`")?;
    entries(servers, keys)
}

fn entries(value: &Value, keys: Keys) -> Result<BTreeMap<String, Entry>> {
    let servers = value.as_object().context("it is not a table of servers")?;
    let mut entries = BTreeMap::new();
    for (name, server) in servers {
        if let Some(fault) = name_fault(name) {
            bail!("`{name}` is no name for a server: {fault}");
        }
        let entry = Entry::read(server, keys).with_context(|| format!("`{name}`"))?;
        if keys != Keys::OfHaft && !entry.is_whole() {
            bail!("`{name}` has neither `command` nor `url`");
        }
        entries.insert(name.clone(), entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{McpSettings, Reached, Wanted};

    #[test]
    fn a_server_is_read_from_each_place_and_the_users_counts() {
        let mut settings = McpSettings::default();
        settings
            .take_workspace_list(
                br#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "alwaysAllow": ["x"],
                    "network": true, "trusted": true}, "files": {"type": "stdio", "command": "x"},
                    "haft": {"command": "/usr/local/bin/haft", "args": ["mcp"]}}}"#,
            )
            .unwrap();
        assert_eq!(settings.servers().len(), 2, "haft itself is none of them");
        let git = &settings.servers()[1];
        assert_eq!((git.reached.shown().as_str(), git.from), ("uvx mcp-server-git", Wanted::ByTheWorkspace));
        assert!(!git.network && !git.trusted, "a workspace does not say what a server may do");
        settings.take("mcp.servers", "{ git = { network = true, timeout = '5s', effects = { a = 'read' } } }").unwrap();
        let git = &settings.servers()[1];
        assert!(git.network && git.timeout == Duration::from_secs(5) && git.from == Wanted::ByTheWorkspace);
        settings.take("mcp.servers", "{ files = { command = 'mine', args = ['a'] } }").unwrap();
        let files = &settings.servers()[0];
        assert_eq!((files.reached.shown().as_str(), files.from), ("mine a", Wanted::ByTheUser));
        assert_eq!((files.cpu.as_secs(), files.memory, files.open_files), (3600, 1_000_000_000, 256));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let mut settings = McpSettings::default();
        for (value, expected) in [
            ("[]", "table of servers"),
            ("{ x = 1 }", "table with `command` or `url`"),
            ("{ 'a b' = { command = 'x' } }", "no name for a server"),
            ("{ a__b = { command = 'x' } }", "no name for a server"),
            ("{ x = { command = './x' } }", "full path"),
            ("{ x = { command = '' } }", "`command` is empty"),
            ("{ x = { command = 'x', url = 'http://x' } }", "both"),
            ("{ x = { command = 'x', netwrk = true } }", "did you mean `network`"),
            ("{ x = { command = 'x', network = 'yes' } }", "true or false"),
            ("{ x = { command = 'x', timeout = 'soon' } }", "length of time"),
            ("{ x = { command = 'x', effects = { a = 'huge' } } }", "read, write, execute or destructive"),
            ("{ x = { command = 'x', workspace = 'all' } }", "`read` or `write`"),
        ] {
            let said = format!("{:#}", settings.take("mcp.servers", value).unwrap_err());
            assert!(said.contains(expected), "{value}: {said}");
        }
        assert_eq!(settings, McpSettings::default());
        for (list, expected) in [
            (&b"{"[..], "not JSON"),
            (b"{}", "no `mcpServers`"),
            (br#"{"mcpServers": {"x": {"args": []}}}"#, "neither `command` nor `url`"),
            (br#"{"mcpServers": {"x": {"command": "x", "env": {"A": "secret:B"}}}}"#, "only your own files"),
        ] {
            let said = format!("{:#}", settings.take_workspace_list(list).unwrap_err());
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_server_elsewhere_has_headers() {
        let mut settings = McpSettings::default();
        let value = "{ x = { url = 'https://x.org/mcp', headers = { Authorization = 'secret:X' } } }";
        settings.take("mcp.servers", value).unwrap();
        let Reached::Url { url, headers } = &settings.servers()[0].reached else { panic!("it has a URL") };
        assert_eq!((url.as_str(), headers["Authorization"].as_str()), ("https://x.org/mcp", "secret:X"));
    }
}

//! Upstream MCP servers: the user's own in `haft.toml` and `mcp.json`, and those of a trusted workspace in `.mcp.json`.

mod entry;
mod list;
mod revealed;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use haft_runtime::{Effect, nearest};
use serde::Deserialize;
use serde_json::Value;

use entry::{Keys, McpServerEntry};
pub(crate) use entry::{is_url, name_fault};
use list::Whose;
pub(crate) use list::written_as;
pub(crate) use revealed::ResolvedSecrets;

use crate::edits;

/// The user's list of servers in the common shape, beside `haft.toml`.
pub(crate) const USER_LIST: &str = "mcp.json";
/// The same of a workspace, which needs trust.
pub(crate) const WORKSPACE_LIST: &str = ".mcp.json";

/// What a server that is started here may take where nothing else is said: processor time of each process, bytes of memory
/// of all, and open files of each.
pub(crate) const CPU: Duration = Duration::from_secs(3600);
pub(crate) const MEMORY: u64 = 1_000_000_000;
pub(crate) const OPEN_FILES: u64 = 256;

/// The servers as they were written down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpSettings {
    settings: BTreeMap<String, McpServerEntry>,
    user_list: BTreeMap<String, McpServerEntry>,
    workspace_list: BTreeMap<String, McpServerEntry>,
}

/// One server as it is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// What it is called in names of tools.
    pub name: String,
    /// Who wants it.
    pub from: ServerOrigin,
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
    /// How the user logs in there.
    pub oauth: McpLogin,
    /// Keys of its entry that nobody obeys.
    pub ignored: Vec<String>,
}

/// How the user logs in at a server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpLogin {
    /// The client that was registered for haft by hand.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Its secret, as `secret:NAME`.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// The scopes to ask for; what the server wants without them.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// Who wants a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
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
    /// Nobody knows: its entry cannot be understood.
    Unknown {
        /// What is wrong with the entry, and what to do about it.
        why: String,
    },
}

impl Reached {
    /// Whether it is haft itself: the program that runs now, whatever it is called, or one called `haft`. It is never
    /// started as a server, so that a program of a workspace gains nothing by the name. Another program is known
    /// neither by a name that is like it nor by `mcp` alone: it could be a server that somebody wants.
    fn is_haft(&self) -> bool {
        let Self::Command { command, .. } = self else { return false };
        let [program, word, ..] = command.as_slice() else { return false };
        let program = Path::new(program);
        let is_called_so = program.file_name().is_some_and(|name| name == "haft");
        let runs_now = || std::env::current_exe().is_ok_and(|running| running == program);
        word == "mcp" && (is_called_so || runs_now())
    }

    /// What people are shown. Variables and headers may hold secrets, and are not.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Command { command, .. } => command.join(" "),
            Self::Url { url, .. } => url.clone(),
            Self::Unknown { .. } => String::new(),
        }
    }
}

impl McpServer {
    /// What its entry says and nobody obeys, in a sentence.
    pub(crate) fn ignored_keys(&self) -> Option<String> {
        let named = self.ignored.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        (!named.is_empty())
            .then(|| format!("the entry of the MCP server `{}` has {named}, which haft ignores", self.name))
    }

    /// Whether it stands for a whole list that cannot be read. Whoever opens a house is told of that.
    pub(crate) fn is_list(&self) -> bool {
        [USER_LIST, WORKSPACE_LIST].contains(&self.name.as_str())
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
        self.settings = entries(&table)?;
        Ok(true)
    }

    /// Takes in the user's list, if there is one. What of it cannot be understood costs no more than itself.
    pub fn take_user_list(&mut self, file: &Path) {
        if let Some(text) = edits::read(file).transpose() {
            self.user_list = list::read(text, Whose::User);
        }
    }

    /// Takes in the list of a trusted workspace. It says what is started, and nothing of what that may do.
    pub(crate) fn take_workspace_list(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| anyhow!("it is not UTF-8"));
        self.workspace_list = list::read(text, Whose::Workspace);
    }

    /// Whether `haft.toml` says something of a server.
    pub(crate) fn is_in_settings(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Whether the user's list alone says how a server is reached.
    pub(crate) fn is_in_user_list(&self, name: &str) -> bool {
        self.user_list.contains_key(name) && !self.settings.get(name).is_some_and(McpServerEntry::is_whole)
    }

    /// Whether an entry in `haft.toml` adds to a server that no list has. Its name may be a mistake, and what it
    /// forbids is then allowed.
    pub(crate) fn adds_to_none(&self, name: &str) -> bool {
        let added = self.settings.get(name).is_some_and(|entry| !entry.is_whole());
        added && !self.user_list.contains_key(name) && !self.workspace_list.contains_key(name)
    }

    /// Leaves out the entries that add to servers elsewhere, such as those of other workspaces.
    pub(crate) fn leave_out(&mut self, is_elsewhere: impl Fn(&str) -> bool) {
        let lost: Vec<String> = self.settings.keys().filter(|name| self.adds_to_none(name)).cloned().collect();
        lost.iter().filter(|name| is_elsewhere(name)).for_each(|name| drop(self.settings.remove(name)));
    }

    /// One sentence for each entry that adds to a server that no list has.
    pub(crate) fn lost_additions(&self) -> Vec<String> {
        let lost = self.settings.keys().filter(|name| self.adds_to_none(name));
        lost.map(|name| self.nothing_to_add_to(name)).collect()
    }

    /// One sentence for each list that cannot be read at all.
    pub(crate) fn unread_lists(&self) -> Vec<String> {
        let why = |server: McpServer| match server.reached {
            Reached::Unknown { why } => Some(why),
            Reached::Command { .. } | Reached::Url { .. } => None,
        };
        self.servers().into_iter().filter(McpServer::is_list).filter_map(why).collect()
    }

    /// Every server but haft itself, which clients find in the same lists. Where two have one name the user's counts;
    /// an entry in `haft.toml` without `command` and `url` adds to the server of its name, and has failed where there
    /// is none.
    pub(crate) fn servers(&self) -> Vec<McpServer> {
        let names: BTreeSet<&String> =
            self.settings.keys().chain(self.user_list.keys()).chain(self.workspace_list.keys()).collect();
        names.into_iter().filter_map(|name| self.server(name)).filter(|server| !server.reached.is_haft()).collect()
    }

    fn server(&self, name: &str) -> Option<McpServer> {
        let added = self.settings.get(name).cloned().unwrap_or_default();
        if added.is_whole() {
            return added.meant(name, ServerOrigin::ByTheUser);
        }
        if let Some(of_user) = self.user_list.get(name) {
            return added.over(of_user).meant(name, ServerOrigin::ByTheUser);
        }
        match self.workspace_list.get(name) {
            Some(of_workspace) => added.over(of_workspace).meant(name, ServerOrigin::ByTheWorkspace),
            None => {
                McpServerEntry::refused(self.nothing_to_add_to(name), &Value::Null).meant(name, ServerOrigin::ByTheUser)
            }
        }
    }

    fn nothing_to_add_to(&self, name: &str) -> String {
        let whole = self.settings.iter().filter(|(_, entry)| entry.is_whole()).map(|(name, _)| name);
        let servers = whole.chain(self.user_list.keys()).chain(self.workspace_list.keys());
        let near = nearest(name, servers.map(String::as_str));
        let hint = near.first().map_or_else(
            || "add `command` or `url`, or remove the entry".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        format!("the entry `{name}` in your haft.toml is ignored: no list has a server of that name; {hint}")
    }
}

/// What would be wrong with an entry of the user's list.
pub(crate) fn check(entry: &Value) -> Result<()> {
    McpServerEntry::read_whole(entry, Keys::OfTheUser).map(drop)
}

/// Whether a list of a workspace names nothing but haft itself, which clients find there.
pub(crate) fn names_only_haft(bytes: &[u8]) -> bool {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(bytes);
    settings.servers().is_empty()
}

/// The servers of `haft.toml`.
fn entries(value: &Value) -> Result<BTreeMap<String, McpServerEntry>> {
    let servers = value.as_object().context("it is not a table of servers")?;
    let mut entries = BTreeMap::new();
    for (name, server) in servers {
        if let Some(fault) = name_fault(name) {
            bail!("`{name}` cannot be the name of a server: {fault}");
        }
        let entry = McpServerEntry::read(server, Keys::OfHaft).with_context(|| format!("`{name}`"))?;
        entries.insert(name.clone(), entry);
    }
    Ok(entries)
}

//! What an upstream MCP server of a tenant is, and why something is none.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use haft_runtime::ToolError;
use haft_sandbox::web::{Url, header::HeaderName, is_forbidden};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::login::ServerLogin;
use crate::{
    authored::placeholder,
    platform::mistake,
    secrets::{host_of, is_secret_name},
};

/// The longest name, so that the tools of a server have room for theirs.
const LONGEST_NAME: usize = 32;
/// The longest that everything somebody says of a server may be.
const LONGEST: usize = 64 << 10;
/// How long a server may be silent in the middle of a call where nothing else is said, and at most.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);
/// Headers that the protocol sets itself.
const OF_THE_PROTOCOL: [&str; 5] =
    ["accept", "content-type", "last-event-id", "mcp-protocol-version", "mcp-session-id"];
/// What a secret of a command begins with.
const SECRET: &str = "secret:";
/// What only the operator can give a server.
const OF_COMMANDS: [&str; 5] = ["command", "args", "env", "cwd", "network"];

/// An upstream MCP server that is reached over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpServerFields {
    /// Small letters, digits and `-`; its tools are called `mcp__NAME__TOOL`.
    pub name: String,
    /// Always `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What is sent with every request; `{{secret:NAME}}` stands for a secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How people log in there, where it wants to know who asks.
    #[serde(default, skip_serializing_if = "ServerLogin::is_usual")]
    pub oauth: ServerLogin,
    /// The only tools that are used; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools that are not used.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub denied_tools: BTreeSet<String>,
    /// How long it may be silent in the middle of a call, in milliseconds: 30000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Whether it is used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether what it says of the effects of its tools is believed.
    #[serde(default)]
    pub trusted: bool,
}

fn yes() -> bool {
    true
}

/// A server as it was saved, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerDefinition {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub reach: ServerReach,
    /// The only tools that are used; `None` for all.
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools that are not used.
    pub denied_tools: BTreeSet<String>,
    /// How long it may be silent in the middle of a call, in milliseconds.
    pub timeout: Option<i64>,
    /// Whether it is used.
    pub enabled: bool,
    /// Whether what it says of the effects of its tools is believed.
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerReach {
    /// At an address.
    Http {
        /// Where.
        url: String,
        /// What is sent with every request.
        headers: BTreeMap<String, String>,
        /// How people log in there.
        #[serde(default)]
        oauth: ServerLogin,
    },
    /// It is started here, as the operator says.
    Stdio(StdioCommand),
}

/// What the operator has started for a tenant, and what that may see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StdioCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its variables; `secret:NAME` stands for a secret of the tenant.
    pub env: BTreeMap<String, String>,
    /// Whether it reaches the network, which is then all of it.
    pub network: bool,
    /// The folder of the host that it works in, where it has one.
    pub map: Option<String>,
    /// Whether it writes into that folder.
    pub writes: bool,
}

impl ServerDefinition {
    /// Reads and checks what somebody wrote of a server that is reached over HTTP.
    pub fn read(written: &Value) -> Result<Self, ToolError> {
        let Value::Object(fields) = written else { return Err(mistake("a server is an object")) };
        Self::with(fields, None)
    }

    /// A server that the operator has started for a tenant.
    pub fn started(name: &str, command: &StdioCommand) -> Result<Self, ToolError> {
        Self::with(&fields_of(&json!({"name": name})), Some(command))
    }

    /// The same server with some fields changed; `null` takes one away. It keeps its name, and what it is started by.
    pub fn changed(&self, fields: &Map<String, Value>) -> Result<Self, ToolError> {
        if fields.get("name").is_some_and(|name| *name != json!(self.name)) {
            return Err(mistake("`name` cannot be changed; add another server"));
        }
        let mut whole = fields_of(&json!(self.fields()));
        whole.extend(fields.clone());
        match &self.reach {
            ServerReach::Http { .. } => Self::with(&whole, None),
            ServerReach::Stdio(command) => Self::with(&whole, Some(command)),
        }
    }

    fn with(fields: &Map<String, Value>, command: Option<&StdioCommand>) -> Result<Self, ToolError> {
        let wants_a_command = fields.keys().any(|name| OF_COMMANDS.contains(&name.as_str()));
        if wants_a_command || fields.get("transport").is_some_and(|transport| transport == "stdio") {
            let message = "a server that is started here is added by the operator, with `haft admin mcp add NAME --tenant \
                           TENANT -- COMMAND`; give `url` for one that is reached over HTTP";
            return Err(mistake(message));
        }
        let fields: Map<_, _> = fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let unreadable = |err: serde_json::Error| mistake(format!("this is no server: {err}"));
        let fields: HttpServerFields = serde_json::from_value(Value::Object(fields)).map_err(unreadable)?;
        let reach = match (command, fields.url) {
            (None, Some(url)) => ServerReach::Http { url, headers: fields.headers, oauth: fields.oauth },
            (None, None) => return Err(mistake("`url` is missing: it says where the server is")),
            (Some(command), None) if fields.headers.is_empty() && fields.oauth.is_usual() => {
                ServerReach::Stdio(command.clone())
            }
            (Some(_), _) => {
                return Err(mistake("this server is started here, so it has no `url`, no `headers` and no `oauth`"));
            }
        };
        if fields.transport.is_some_and(|transport| transport != "http") {
            return Err(mistake("`transport` is `http`"));
        }
        let server = Self {
            name: fields.name,
            reach,
            allowed_tools: fields.allowed_tools,
            denied_tools: fields.denied_tools,
            timeout: fields.timeout,
            enabled: fields.enabled,
            trusted: fields.trusted,
        };
        server.check()?;
        Ok(server)
    }

    fn check(&self) -> Result<(), ToolError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.bytes().all(plain) {
            return Err(mistake(format!("`name` is 1 to {LONGEST_NAME} small letters, digits and `-`")));
        }
        let longest = i64::try_from(LONGEST_TIMEOUT.as_millis()).unwrap_or(i64::MAX);
        if self.timeout.is_some_and(|timeout| timeout <= 0 || timeout > longest) {
            return Err(mistake(format!("`timeout` is a number of milliseconds from 1 to {longest}")));
        }
        if json!(self).to_string().len() > LONGEST {
            return Err(mistake(format!("a server has at most {} KiB", LONGEST >> 10)));
        }
        match &self.reach {
            ServerReach::Http { url, headers, oauth } => check_http(url, headers).and_then(|()| oauth.check()),
            ServerReach::Stdio(command) => command.check(),
        }
    }

    /// What somebody may have written to get it.
    pub fn fields(&self) -> HttpServerFields {
        let (url, headers, oauth) = match &self.reach {
            ServerReach::Http { url, headers, oauth } => (Some(url.clone()), headers.clone(), oauth.clone()),
            ServerReach::Stdio(_) => Default::default(),
        };
        HttpServerFields {
            name: self.name.clone(),
            transport: None,
            url,
            headers,
            oauth,
            allowed_tools: self.allowed_tools.clone(),
            denied_tools: self.denied_tools.clone(),
            timeout: self.timeout,
            enabled: self.enabled,
            trusted: self.trusted,
        }
    }

    /// How long it may be silent in the middle of a call.
    pub fn timeout(&self) -> Duration {
        self.timeout.and_then(|timeout| u64::try_from(timeout).ok()).map_or(USUAL_TIMEOUT, Duration::from_millis)
    }

    /// Whether a tool of it is used.
    pub fn uses(&self, tool: &str) -> bool {
        self.allowed_tools.as_ref().is_none_or(|allowed| allowed.contains(tool)) && !self.denied_tools.contains(tool)
    }

    /// Whom its secrets are for, and their names. A process is called `mcp:NAME`: no host has such a name.
    pub(super) fn sends(&self) -> Result<(String, Vec<String>), ToolError> {
        Ok(match &self.reach {
            ServerReach::Http { url, headers, .. } => {
                let mut names = Vec::new();
                for value in headers.values() {
                    names.extend(placeholder::names(value)?.into_iter().map(str::to_owned));
                }
                (host_of(&parsed(url)?), names)
            }
            ServerReach::Stdio(command) => {
                let names = command.env.values().filter_map(|value| value.strip_prefix(SECRET).map(str::to_owned));
                (format!("mcp:{}", self.name), names.collect())
            }
        })
    }
}

impl StdioCommand {
    /// A variable with everything in its place.
    pub(super) fn filled(value: &str, secret: impl Fn(&str) -> String) -> String {
        value.strip_prefix(SECRET).map_or_else(|| value.to_owned(), secret)
    }

    fn check(&self) -> Result<(), ToolError> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(mistake("name the program that is started"));
        }
        for (name, value) in &self.env {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !plain || name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
                return Err(mistake(format!("`{name}` is no name of a variable")));
            }
            if value.strip_prefix(SECRET).is_some_and(|name| !is_secret_name(name)) {
                return Err(mistake(format!(
                    "`{name}`: write `{SECRET}NAME`, with a letter, then letters, digits and `_`"
                )));
            }
        }
        Ok(())
    }
}

fn check_http(url: &str, headers: &BTreeMap<String, String>) -> Result<(), ToolError> {
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    if !is_web || host_of(&parsed(url)?).is_empty() {
        return Err(mistake("`url` must begin with http:// or https:// and name a host"));
    }
    if url.contains("{{") {
        return Err(mistake("`url`: a secret may stand in a header only"));
    }
    for (name, value) in headers {
        let known = name.parse::<HeaderName>().ok().filter(|name| !is_forbidden(name));
        let known = known.filter(|name| !OF_THE_PROTOCOL.contains(&name.as_str()));
        known.ok_or_else(|| mistake(format!("`headers`: `{name}` cannot be set")))?;
        if value.contains(char::is_control) {
            return Err(mistake(format!("`headers`: the value of `{name}` is none that can be sent")));
        }
        placeholder::names(value)?;
    }
    Ok(())
}

fn parsed(url: &str) -> Result<Url, ToolError> {
    Url::parse(url).map_err(|err| mistake(format!("`url` is no URL: {err}")))
}

fn fields_of(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

//! One entry of a list of servers, as far as it says something.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_runtime::{Effect, nearest};
use serde::Deserialize;
use serde_json::Value;

use super::{CPU, MEMORY, McpLogin, McpServer, OPEN_FILES, Reached, ServerOrigin};
use crate::settings::{
    values::{argv, duration, number, size},
    web::{SECRET, checked_url},
};

const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "disabled",
    "allowed_tools",
    "denied_tools",
    "timeout",
    "variables",
    "effects",
    "trusted",
    "network",
    "workspace",
    "cpu",
    "memory",
    "open_files",
    "oauth",
];
/// What other programs call a key in their lists.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("url", "serverUrl"),
    ("allowed_tools", "allowedTools"),
    ("allowed_tools", "includeTools"),
    ("allowed_tools", "enabledTools"),
    ("allowed_tools", "enabled_tools"),
    ("allowed_tools", "include_tools"),
    ("allowed_tools", "tools"),
    ("denied_tools", "deniedTools"),
    ("denied_tools", "disabledTools"),
    ("denied_tools", "disabled_tools"),
    ("denied_tools", "excludeTools"),
    ("denied_tools", "exclude_tools"),
];
/// What says nothing that haft could obey, or is asked by haft in its own way.
const OF_OTHERS: &[&str] = &[
    "alwaysAllow",
    "autoApprove",
    "autoStart",
    "description",
    "enabled",
    "gallery",
    "icon",
    "name",
    "trust",
    "version",
];
/// What the lists of other programs say, too, and mean the same by.
const COMMON: usize = 10;
/// What lists call the way in which a server is talked with.
const TRANSPORTS: &[&str] = &["transport", "type"];
/// In the lists of some programs a bare number of this size or more is milliseconds; nobody gives a call so many seconds.
const MILLISECONDS: f64 = 1000.0;
/// The longest name of a server, so that its tools have room for theirs.
const LONGEST_NAME: usize = 32;

/// Which keys are obeyed, and whether others are a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Those of `haft.toml`; any other is a mistake.
    OfHaft,
    /// The common ones and `network`, which `haft mcp-servers add` writes; others are for other programs.
    OfTheUser,
    /// The common ones, and no secrets.
    Common,
}

impl Keys {
    fn obeys(self, key: &str) -> bool {
        match self {
            Self::OfHaft => KEYS.contains(&key),
            Self::OfTheUser => KEYS[..COMMON].contains(&key) || key == "network",
            Self::Common => KEYS[..COMMON].contains(&key),
        }
    }
}

/// Why something is no name for a server.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let fits = plain && !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains("__");
    if !fits {
        return Some("use 1 to 32 letters, digits, `-` and single `_`");
    }
    // The tool `x` of `a_` would be called as the tool `_x` of `a` is.
    name.ends_with('_').then_some("it ends in `_`, and a tool's name may begin with one")
}

/// The name that a server of a pasted list gets: what may not be in one becomes `-`, runs become one, what is too long is
/// cut, and so are `-` and `_` at its ends. `None` when nothing is left.
pub(super) fn fitting_name(written: &str) -> Option<String> {
    if name_fault(written).is_none() {
        return Some(written.to_owned());
    }
    let mut name = String::new();
    for letter in written.chars() {
        let letter = if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
        if !(matches!(letter, '_' | '-') && name.ends_with(letter)) {
            name.push(letter);
        }
    }
    let is_edge = |letter: char| matches!(letter, '_' | '-');
    let kept: String = name.trim_matches(is_edge).chars().take(LONGEST_NAME).collect();
    Some(kept.trim_end_matches(is_edge).to_owned()).filter(|name| !name.is_empty())
}

/// What an entry says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct McpServerEntry {
    reached: Option<Reached>,
    disabled: Option<bool>,
    allowed_tools: Option<BTreeSet<String>>,
    denied_tools: Option<BTreeSet<String>>,
    variables: Option<BTreeSet<String>>,
    effects: Option<BTreeMap<String, Effect>>,
    timeout: Option<Duration>,
    trusted: Option<bool>,
    network: Option<bool>,
    writes: Option<bool>,
    cpu: Option<Duration>,
    memory: Option<u64>,
    open_files: Option<u64>,
    oauth: Option<McpLogin>,
    /// What it says in a pasted list, and nobody obeys.
    ignored: Vec<String>,
}

impl McpServerEntry {
    pub(super) fn read(value: &Value, keys: Keys) -> Result<Self> {
        let all = value.as_object().context("a server is a table with `command` or `url`")?;
        if let Some(other) = all.keys().find(|key| keys == Keys::OfHaft && !keys.obeys(key)) {
            let near = nearest(other, KEYS.iter().copied());
            let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            bail!("a server has no setting `{other}`{hint}");
        }
        // Some programs write `null` for what they do not say.
        let said = |key: &str| all.get(key).filter(|value| !value.is_null());
        let part = |key: &str| {
            let others = OTHER_NAMES.iter().filter(|(own, _)| *own == key && keys != Keys::OfHaft);
            let own = said(key).filter(|_| keys.obeys(key));
            own.or_else(|| others.filter_map(|(_, other)| said(other)).next())
        };
        for transport in TRANSPORTS.iter().filter_map(|key| said(key)) {
            refuse_unspoken(transport)?;
        }
        Ok(Self {
            reached: reached(&part, keys)?,
            disabled: match (read(part("disabled"), "disabled", switch)?, said("enabled").and_then(Value::as_bool)) {
                (None, Some(enabled)) => Some(!enabled),
                (disabled, _) => disabled,
            },
            allowed_tools: read(part("allowed_tools"), "allowed_tools", texts)?.filter(|tools| !tools.contains("*")),
            denied_tools: read(part("denied_tools"), "denied_tools", texts)?,
            variables: read(part("variables"), "variables", texts)?,
            effects: read(part("effects"), "effects", effects)?,
            timeout: read(part("timeout"), "timeout", |value| time_limit(value, keys))?,
            trusted: read(part("trusted"), "trusted", switch)?,
            network: read(part("network"), "network", switch)?,
            writes: read(part("workspace"), "workspace", writes)?,
            cpu: read(part("cpu"), "cpu", |value| duration(&written(value)))?,
            memory: read(part("memory"), "memory", |value| size(&written(value)))?,
            open_files: read(part("open_files"), "open_files", |value| number(&written(value)))?,
            oauth: read(part("oauth"), "oauth", |value| {
                McpLogin::deserialize(value).context("it has `client_id`, `client_secret` and `scopes`")
            })?,
            ignored: all.keys().filter(|key| !keys.obeys(key) && !is_known(key)).cloned().collect(),
        })
    }

    /// The same for an entry that has nothing to add to.
    pub(super) fn read_whole(value: &Value, keys: Keys) -> Result<Self> {
        let entry = Self::read(value, keys)?;
        if !entry.is_whole() {
            bail!("it has neither `command` nor `url`");
        }
        Ok(entry)
    }

    /// One that cannot be understood, and why.
    pub(super) fn refused(why: String, value: &Value) -> Self {
        let disabled = value.get("disabled").and_then(Value::as_bool);
        Self { reached: Some(Reached::Unknown { why }), disabled, ..Self::default() }
    }

    /// Whether it says how the server is reached.
    pub(super) fn is_whole(&self) -> bool {
        self.reached.is_some()
    }

    /// What this says, and where it says nothing, what the other does.
    pub(super) fn over(self, other: &Self) -> Self {
        let under = other.clone();
        Self {
            reached: self.reached.or(under.reached),
            disabled: self.disabled.or(under.disabled),
            allowed_tools: self.allowed_tools.or(under.allowed_tools),
            denied_tools: self.denied_tools.or(under.denied_tools),
            variables: self.variables.or(under.variables),
            effects: self.effects.or(under.effects),
            timeout: self.timeout.or(under.timeout),
            trusted: self.trusted.or(under.trusted),
            network: self.network.or(under.network),
            writes: self.writes.or(under.writes),
            cpu: self.cpu.or(under.cpu),
            memory: self.memory.or(under.memory),
            open_files: self.open_files.or(under.open_files),
            oauth: self.oauth.or(under.oauth),
            ignored: under.ignored.into_iter().chain(self.ignored).collect(),
        }
    }

    /// The same with what holds where nothing is said; `None` when nobody said how it is reached.
    pub(super) fn meant(self, name: &str, from: ServerOrigin) -> Option<McpServer> {
        Some(McpServer {
            name: name.to_owned(),
            from,
            reached: self.reached?,
            enabled: !self.disabled.unwrap_or(false),
            allowed_tools: self.allowed_tools,
            denied_tools: self.denied_tools.unwrap_or_default(),
            variables: self.variables.unwrap_or_default(),
            effects: self.effects.unwrap_or_default(),
            timeout: self.timeout.unwrap_or(Duration::from_secs(30)),
            trusted: self.trusted.unwrap_or(false),
            network: self.network.unwrap_or(false),
            writes: self.writes.unwrap_or(false),
            cpu: self.cpu.unwrap_or(CPU),
            memory: self.memory.unwrap_or(MEMORY),
            open_files: self.open_files.unwrap_or(OPEN_FILES),
            oauth: self.oauth.unwrap_or_default(),
            ignored: self.ignored,
        })
    }
}

/// Whether a key of a pasted list is one that haft understands, or leaves to others on purpose.
fn is_known(key: &str) -> bool {
    OTHER_NAMES.iter().any(|(_, other)| *other == key) || TRANSPORTS.contains(&key) || OF_OTHERS.contains(&key)
}

fn reached<'a>(part: &impl Fn(&str) -> Option<&'a Value>, keys: Keys) -> Result<Option<Reached>> {
    let pairs = |key: &str| -> Result<BTreeMap<String, String>> {
        let pairs: BTreeMap<String, String> = read(part(key), key, pairs)?.unwrap_or_default();
        if keys == Keys::Common && pairs.values().any(|value| value.starts_with(SECRET)) {
            bail!("`{key}` uses `secret:`, which only your own files may do");
        }
        Ok(pairs)
    };
    match (part("command"), part("url")) {
        (Some(_), Some(_)) => bail!("it has both `command` and `url`; keep one"),
        (None, None) => Ok(None),
        (None, Some(url)) => {
            let url = url.as_str().filter(|url| !url.is_empty()).context("`url` is not a URL")?;
            if !names_variables(url) {
                checked_url(url)?;
            }
            Ok(Some(Reached::Url { url: url.to_owned(), headers: pairs("headers")? }))
        }
        (Some(program), None) => {
            let args = read(part("args"), "args", arguments)?;
            let program =
                program.as_str().context("`command` must be text: the program alone; its arguments go into `args`")?;
            if program.trim().is_empty() {
                bail!("`command` is empty; name the program");
            }
            if is_url(program) {
                bail!("`command` is a URL; write it as `url`");
            }
            let command: Vec<String> = [program.to_owned()].into_iter().chain(args.unwrap_or_default()).collect();
            if keys != Keys::Common && !names_variables(program) {
                argv(&toml::Value::from(command.clone()).to_string())?;
            }
            let cwd = part("cwd").map(|cwd| cwd.as_str().context("`cwd` is not text")).transpose()?;
            Ok(Some(Reached::Command { command, env: pairs("env")?, cwd: cwd.unwrap_or(".").to_owned() }))
        }
    }
}

/// Whether what should be a program is a URL.
pub(crate) fn is_url(program: &str) -> bool {
    program.starts_with("http://") || program.starts_with("https://")
}

/// Whether more is known of a text once its variables are in their places, which is when the server is started.
fn names_variables(text: &str) -> bool {
    text.contains("${")
}

fn read<T>(value: Option<&Value>, key: &str, read: impl Fn(&Value) -> Result<T>) -> Result<Option<T>> {
    value.map(|value| read(value).with_context(|| format!("`{key}`"))).transpose()
}

/// The old transport has an address of its own, at which no other request is understood.
fn refuse_unspoken(transport: &Value) -> Result<()> {
    match transport.as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "sse" => bail!(
            "it uses the old SSE transport, which haft does not support; use the server's address for streamable \
             HTTP (often `/mcp` instead of `/sse`) and write `http` for `sse`"
        ),
        "ws" | "websocket" => bail!("it uses WebSockets, which MCP does not have; haft supports `stdio` and `http`"),
        _ => Ok(()),
    }
}

/// How long one call may take.
fn time_limit(value: &Value, keys: Keys) -> Result<Duration> {
    match value.as_f64().filter(|_| keys != Keys::OfHaft) {
        Some(number) if number >= MILLISECONDS => duration(&format!("{number}ms")),
        Some(number) if number > 0.0 => duration(&format!("{number}s")),
        Some(_) => bail!("`{value}` is too short; no call could be answered in time"),
        None => duration(&written(value)),
    }
}

fn switch(value: &Value) -> Result<bool> {
    value.as_bool().with_context(|| format!("`{value}` must be true or false"))
}

fn texts(value: &Value) -> Result<BTreeSet<String>> {
    BTreeSet::deserialize(value).context("it is not an array of text")
}

fn arguments(value: &Value) -> Result<Vec<String>> {
    let all = value.as_array().context("it is not an array of text")?;
    all.iter().map(|one| text(one).context("it is not an array of text")).collect()
}

fn pairs(value: &Value) -> Result<BTreeMap<String, String>> {
    let all = value.as_object().context("it is not a table of text")?;
    let said = all.iter().filter(|(_, value)| !value.is_null());
    said.map(|(name, value)| {
        Ok((name.clone(), text(value).with_context(|| format!("`{name}` must be text, a number, true or false"))?))
    })
    .collect()
}

/// Text, or what has one: people write a port as a number.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn effects(value: &Value) -> Result<BTreeMap<String, Effect>> {
    BTreeMap::deserialize(value).context("each tool must be read, write, execute or destructive")
}

fn writes(value: &Value) -> Result<bool> {
    match value.as_str() {
        Some("write") => Ok(true),
        Some("read") => Ok(false),
        Some(_) | None => bail!("it must be `read` or `write`"),
    }
}

/// A value as the readers of other settings take it.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

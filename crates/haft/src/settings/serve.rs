//! Where the gateway listens, and who may reach it there.

use std::{net::SocketAddr, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use haft_platform::{MediaLimits, is_node_name};
use sha2::{Digest, Sha256};

use super::{
    limits::LimitSettings,
    values::{duration, size, switch},
};

/// Where the server of tenants listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// The address.
    pub listen: SocketAddr,
    /// The address that people use, where something stands before haft that speaks TLS.
    pub public_url: Option<String>,
    /// Whether others than this machine may be served without TLS.
    pub insecure: bool,
    /// How long a connection with a tenant's MCP server stays open while nobody uses it.
    pub mcp_idle: Duration,
    /// What this machine is called among several that serve one database.
    pub node: String,
    /// How the log is written.
    pub log: LogFormat,
    /// After how long without anybody a server in the background ends; `None` for never.
    pub idle: Option<Duration>,
    /// The most that may be uploaded.
    pub media: MediaLimits,
    /// The most that a workspace may hold which haft keeps.
    pub workspace_quota: u64,
    /// How much is taken from whom.
    pub limits: LimitSettings,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object for each line.
    Json,
}

impl LogFormat {
    fn parse(text: &str) -> Result<Self> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => bail!("`{text}` is no format of a log; write `text` or `json`"),
        }
    }
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7373)),
            public_url: None,
            insecure: false,
            mcp_idle: Duration::from_secs(300),
            node: host_name(),
            log: LogFormat::default(),
            idle: Some(Duration::from_secs(30 * 60)),
            media: MediaLimits { each: 64 << 20, of_tenant: 10 << 30 },
            workspace_quota: 10 << 30,
            limits: LimitSettings::default(),
        }
    }
}

impl ServeSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "serve.listen" => self.listen = listen(value)?,
            "serve.public_url" => self.public_url = public_url(value)?,
            "serve.insecure" => self.insecure = switch(value)?,
            "serve.mcp_idle" => self.mcp_idle = duration(value)?,
            "serve.node" if value.is_empty() => {}
            "serve.node" => self.node = node(value)?,
            "serve.log" => self.log = LogFormat::parse(value)?,
            "serve.idle" => self.idle = if value == "off" { None } else { Some(duration(value)?) },
            "serve.media_limit" => self.media.each = size(value)?,
            "serve.media_quota" => self.media.of_tenant = size(value)?,
            "serve.workspace_quota" => self.workspace_quota = size(value)?,
            other => return self.limits.take(other, value),
        }
        Ok(true)
    }
}

/// The name of this machine.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if is_node_name(&name) { name } else { "node".to_owned() }
}

/// A name for the node of one data folder among several on this machine: what it stages lies in that folder.
pub(super) fn node_of(data: &Path) -> String {
    let digest = Sha256::digest(data.as_os_str().as_bytes());
    let short: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{short}", host_name())
}

fn node(text: &str) -> Result<String> {
    match text {
        name if is_node_name(name) => Ok(name.to_owned()),
        other => bail!("`{other}` is no name of a node; use letters, digits, `-`, `_` and `.`"),
    }
}

/// An address with its port.
pub(crate) fn listen(text: &str) -> Result<SocketAddr> {
    text.parse().ok().with_context(|| format!("`{text}` is no address to listen at; write it like 127.0.0.1:7373"))
}

/// The address that people use.
pub(crate) fn public_url(text: &str) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
        bail!("`{text}` is no address of a page; write it like https://haft.example.org");
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

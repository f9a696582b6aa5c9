//! Every setting, read in this one place: defaults, then the user's file, then what a trusted workspace tightens, then
//! the environment, then flags.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

use std::{
    collections::BTreeMap,
    env::VarError,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_runtime::{AutoApprove, Rule, nearest};
use haft_store::Durability;
use haft_tools::LanguageServers;

mod auth;
mod client;
mod key;
mod limits;
mod lsp;
mod mail;
pub(crate) mod mcp;
mod page;
mod sandbox;
mod serve;
mod telemetry;
mod values;
mod web;
mod workspace;

pub use auth::{AuthSettings, OidcEntry};
pub use client::ClientSettings;
use key::key;
pub use key::{SetBy, SettingKey};
pub use mail::MailSettings;
pub use mcp::{McpServer, McpSettings};
pub(crate) use page::{commented, listed};
pub use sandbox::SandboxSettings;
pub use serve::{LogFormat, ServeSettings};
pub(crate) use serve::{listen as listen_address, public_url as public_address};
pub(crate) use telemetry::SpanCollector;
pub use telemetry::TelemetrySettings;
pub use values::{duration, mode};
pub use web::WebSettings;
pub(crate) use workspace::{Obeyed, WorkspaceSetting};

use crate::{
    retention::Retention,
    rules::{self, BuiltinRules, Profile},
    trust, upstreams,
};
use values::{argv, database, flattened, size, switch, sync, written};

/// Every setting there is. A new one is a line here, a field of `Settings` and an arm of `take`.
pub const KEYS: &[SettingKey] = &[
    key(
        "approvals.mode",
        "\"safe\"",
        "what runs without asking: `none`, `safe` (what only reads) or `all`",
        SetBy::Workspace(|new, old| new.mode <= old.mode),
    ),
    key(
        "approvals.profile",
        "\"strict\"",
        "built-in rules: `strict` has none, `dynamic` allows new files without asking",
        SetBy::Workspace(|new, old| new.profile <= old.profile),
    ),
    key(
        "approvals.derived",
        "true",
        "built-in rule: build output and caches are committed without asking, such as what a test run leaves",
        SetBy::Workspace(|new, old| new.derived <= old.derived),
    ),
    key(
        "approvals.expire",
        "\"24h\"",
        "how long a question stays open",
        SetBy::Workspace(|new, old| new.expire <= old.expire),
    ),
    key(
        "auth.oidc",
        "{}",
        "providers of OpenID Connect that people sign in with at `haft serve`: `[auth.oidc.NAME]` with `issuer`, `client_id`, \
         `client_secret = \"secret:NAME\"`, and where wanted `label`, `scopes`, `private` and `join`; \
         [serve.md](serve.md) explains them",
        SetBy::UserFile,
    ),
    key(
        "auth.password",
        "true",
        "whether people sign in by password at `haft serve`; it can be switched off where `auth.oidc` has a provider",
        SetBy::User,
    ),
    key(
        "limits.work",
        "\"10m\"",
        "the longest that any call may work",
        SetBy::Workspace(|new, old| new.longest_work <= old.longest_work),
    ),
    key(
        "limits.idle",
        "\"off\"",
        "how long a call may be silent before it is stopped",
        SetBy::Workspace(|new, old| new.idle.unwrap_or(Duration::MAX) <= old.idle.unwrap_or(Duration::MAX)),
    ),
    key(
        "lsp.memory",
        "\"4GB\"",
        "the most memory that a language server and all it starts may use",
        SetBy::Workspace(|new, old| new.lsp.memory <= old.lsp.memory),
    ),
    key(
        "lsp.ready",
        "\"45s\"",
        "how long a call waits for a language server that is still indexing (a `haft call` waits until its time-out)",
        SetBy::Workspace(|new, old| new.lsp.ready <= old.lsp.ready),
    ),
    key(
        "lsp.timeout",
        "\"30s\"",
        "how long a language server may take to answer one question before it is ended as dead",
        SetBy::Workspace(|new, old| new.lsp.timeout <= old.lsp.timeout),
    ),
    key(
        "lsp.idle",
        "\"10m\"",
        "after how long without a question a language server is ended",
        SetBy::Workspace(|new, old| new.lsp.idle <= old.lsp.idle),
    ),
    key(
        "lsp.servers",
        "{}",
        "your own language servers: `[lsp.servers.LANGUAGE]` with `command`, `extensions`, and where needed \
         `init_options` and `settings`; those for Rust, Python, TypeScript, C, C++ and Go are found without it",
        SetBy::UserFile,
    ),
    key(
        "mail.host",
        "\"\"",
        "the mail server by which `haft serve` tells people of questions; empty for no mail",
        SetBy::User,
    ),
    key("mail.port", "0", "its port; 0 for the usual one: 587, with `tls` 465, with `none` 25", SetBy::User),
    key(
        "mail.tls",
        "\"starttls\"",
        "how the connection with it is secured: `starttls`, `tls` (from the beginning) or `none`",
        SetBy::User,
    ),
    key("mail.user", "\"\"", "the name that it knows haft by; empty for none", SetBy::User),
    key(
        "mail.password",
        "\"\"",
        "the password as `secret:NAME`: the file `secrets/NAME` in haft's data folder, or the variable `NAME`",
        SetBy::User,
    ),
    key("mail.from", "\"\"", "whom mail comes from, such as `haft <haft@example.org>`", SetBy::User),
    key("mail.timeout", "\"20s\"", "how long one mail may take before it is tried again later", SetBy::User),
    key(
        "mcp.client_may_approve",
        "\"safe\"",
        "what you may approve in an MCP client: `none`, `safe` (all but deletions and flagged changes) or `all`",
        SetBy::Workspace(|new, old| new.client.may_approve <= old.client.may_approve),
    ),
    key(
        "mcp.pins",
        "[]",
        "tools of upstream MCP servers that models are always shown, such as `mcp__github__*`; when their \
         definitions cost more than 10,000 tokens, the others are only found by `find_tools`",
        SetBy::User,
    ),
    key(
        "mcp.servers",
        "{}",
        "upstream MCP servers, whose tools become yours: `[mcp.servers.NAME]` with `command` and `args`, or `url`; \
         `haft help servers` lists the rest",
        SetBy::UserFile,
    ),
    key(
        "notify.command",
        "[]",
        "a program and its arguments, started when a question opens; it finds `HAFT_CALL`, `HAFT_TOOL`, \
         `HAFT_TENANT` and `HAFT_WORKSPACE` in its environment and is stopped after five seconds",
        SetBy::UserFile,
    ),
    key(
        "notify.grace",
        "\"10s\"",
        "how long a question is open before `haft serve` tells people by mail or webhook; one that is answered by then \
         sends nothing",
        SetBy::User,
    ),
    key(
        "notify.every",
        "\"1m\"",
        "the shortest time between two mails to one person, or two calls of a webhook; what opens meanwhile goes together",
        SetBy::User,
    ),
    key(
        "notify.retry",
        "\"30s\"",
        "how long after a mail or webhook failed it is tried again; each further time takes twice as long, and after six \
         it is given up",
        SetBy::User,
    ),
    key("retention.journal", "\"90d\"", "how long ended calls are remembered", SetBy::User),
    key("retention.outputs", "\"30d\"", "how long the whole of a long result is kept", SetBy::User),
    key("retention.audit", "\"400d\"", "how long the audit log keeps each administrative act", SetBy::User),
    key(
        "retention.changes",
        "\"30d\"",
        "how long a call can be undone, and changes that it left staged can be committed",
        SetBy::User,
    ),
    key(
        "retention.quota",
        "\"2GB\"",
        "the most that changes and outputs may take before the oldest go earlier; or `off`",
        SetBy::User,
    ),
    key(
        "retention.unasked",
        "\"7d\"",
        "how long a commit that nobody was asked about can be undone, whatever the quota",
        SetBy::User,
    ),
    key(
        "sandbox.minimum.asked",
        "\"landlock\"",
        "the weakest isolation in which a command may run after a yes: `none`, `limits`, `landlock` or `namespaces`",
        SetBy::Workspace(|new, old| new.sandbox.minimum_asked >= old.sandbox.minimum_asked),
    ),
    key(
        "sandbox.minimum.unasked",
        "\"namespaces\"",
        "the weakest isolation in which a command may run without a question",
        SetBy::Workspace(|new, old| new.sandbox.minimum_unasked >= old.sandbox.minimum_unasked),
    ),
    key(
        "sandbox.memory",
        "\"4GB\"",
        "the most memory that a command and all it starts may use",
        SetBy::Workspace(|new, old| new.sandbox.memory <= old.sandbox.memory),
    ),
    key(
        "sandbox.processes",
        "1024",
        "the most processes and threads that a command may have at once",
        SetBy::Workspace(|new, old| new.sandbox.processes <= old.sandbox.processes),
    ),
    key(
        "sandbox.cpu",
        "\"1h\"",
        "the most processor time that a single process of a command may use",
        SetBy::Workspace(|new, old| new.sandbox.cpu <= old.sandbox.cpu),
    ),
    key(
        "sandbox.disk",
        "\"16GB\"",
        "the most that one run may write",
        SetBy::Workspace(|new, old| new.sandbox.disk <= old.sandbox.disk),
    ),
    key(
        "sandbox.read",
        "[]",
        "more folders that commands may read; toolchains on your `PATH` are found without it",
        SetBy::UserFile,
    ),
    key(
        "sandbox.write",
        "[]",
        "folders outside the workspace that project tools may write to, where their manifests name them",
        SetBy::UserFile,
    ),
    key(
        "sandbox.hide",
        "[]",
        "more names of files and folders that hold secrets, beside the usual ones, such as `tokens.txt` or `*.tfstate`: \
         neither tools nor commands see them, unless the commit that is checked out has the same bytes",
        SetBy::UserFile,
    ),
    key(
        "sandbox.show",
        "[]",
        "full paths of files and folders that tools and commands see whatever their names are, such as \
         `/home/me/project/test.pem`",
        SetBy::UserFile,
    ),
    key("serve.listen", "\"127.0.0.1:7373\"", "the address at which `haft serve` listens", SetBy::User),
    key(
        "serve.public_url",
        "\"\"",
        "the address that people use for `haft serve`, where a proxy before it speaks TLS, such as \
         `https://haft.example.org`",
        SetBy::User,
    ),
    key("serve.insecure", "false", "whether `haft serve` may be reached from other machines without TLS", SetBy::User),
    key(
        "serve.mcp_idle",
        "\"5m\"",
        "after how long without a call an MCP server of a tenant is ended, or its connection closed",
        SetBy::User,
    ),
    key(
        "serve.node",
        "\"\"",
        "the name of this node among several that serve one PostgreSQL database; empty means the name of the host, followed \
         by a few letters for the data folder if `HAFT_DATA_DIR` is set",
        SetBy::User,
    ),
    key(
        "serve.log",
        "\"text\"",
        "how `haft serve` writes the log that `HAFT_LOG` asks for: `text`, or `json` for one object in each line",
        SetBy::User,
    ),
    key(
        "serve.idle",
        "\"30m\"",
        "after how long without a page, a stream or an open question a server that `haft open` started ends; or `off`",
        SetBy::User,
    ),
    key("serve.media_limit", "\"64MiB\"", "the most that one upload to `haft serve` may have", SetBy::User),
    key("serve.media_quota", "\"10GiB\"", "the most that all uploads of one tenant may have", SetBy::User),
    key(
        "serve.workspace_quota",
        "\"10GiB\"",
        "the most that one workspace may hold, if its folder is haft's own; a change beyond that is not committed",
        SetBy::User,
    ),
    key(
        "serve.rate_per_caller",
        "\"auto\"",
        "the most requests that `haft serve` answers one caller, such as `20/s burst 80`, or `off`; `auto` is `100/s burst \
         400`, and `off` if only this machine can connect",
        SetBy::User,
    ),
    key(
        "serve.rate_per_tenant",
        "\"auto\"",
        "the same for all callers of a tenant together; `auto` is `500/s burst 2000`, and `off` as above",
        SetBy::User,
    ),
    key(
        "serve.rate_per_address",
        "\"auto\"",
        "the same for each address that asks without a valid key or sign-in; `auto` is `5/s burst 50`, and `off` as above",
        SetBy::User,
    ),
    key("serve.connections", "10000", "how many connections `haft serve` has open at a time", SetBy::User),
    key(
        "serve.proxies",
        "[]",
        "addresses and networks of the proxies before `haft serve`, such as `10.0.0.1` or `10.0.0.0/8`: only their \
         `X-Forwarded-For` and `Forwarded` count",
        SetBy::User,
    ),
    key(
        "shell.timeout",
        "\"2m\"",
        "how long a command may run when its call does not say",
        SetBy::Workspace(|new, old| new.shell_timeout <= old.shell_timeout),
    ),
    key(
        "store.sync",
        "\"normal\"",
        "`normal` survives `kill -9`, `full` survives a power cut too",
        SetBy::Workspace(|new, old| new.sync == old.sync || new.sync == Durability::Full),
    ),
    key(
        "store.url",
        "\"\"",
        "the PostgreSQL database that holds the journal, as `postgres://user:password@host:5432/name`; empty for `haft.db` in the data folder",
        SetBy::User,
    ),
    key(
        "telemetry.endpoint",
        "\"\"",
        "the OpenTelemetry collector that `haft serve` sends spans to, such as `http://127.0.0.1:4318`; empty for none, \
         or what `OTEL_EXPORTER_OTLP_ENDPOINT` says",
        SetBy::User,
    ),
    key(
        "telemetry.headers",
        "\"\"",
        "headers for the collector, as `secret:NAME`; the secret is `name=value`, several with commas between",
        SetBy::User,
    ),
    key(
        "telemetry.service",
        "\"\"",
        "what haft is called in spans; empty for `OTEL_SERVICE_NAME`, or else `haft`",
        SetBy::User,
    ),
    key("telemetry.sample", "1.0", "the share of traces that is kept, from 0 to 1", SetBy::User),
    key("telemetry.content", "false", "whether spans hold the inputs and results of calls, 8 KiB of each", SetBy::User),
    key(
        "web.allowlist",
        "[]",
        "hosts that `web_fetch` reads from unasked, such as `docs.rs`, `*.example.org` or `example.org/docs`",
        SetBy::Workspace(|new, old| new.web.allowlist.iter().all(|listed| old.web.allowlist.contains(listed))),
    ),
    key(
        "web.allow",
        "[]",
        "hosts and ranges that may be reached although they are not public, such as `127.0.0.1:8080` or `10.1.0.0/16`",
        SetBy::User,
    ),
    key(
        "web.ports",
        "[80, 443, 8080, 8443]",
        "the ports that may be reached; `web.allow` may name others",
        SetBy::Workspace(|new, old| new.web.ports.iter().all(|port| old.web.ports.contains(port))),
    ),
    key(
        "web.connect",
        "\"2s\"",
        "how long a host may take to be looked up, to take a connection and to secure it",
        SetBy::Workspace(|new, old| new.web.connect <= old.web.connect),
    ),
    key(
        "web.silence",
        "\"2s\"",
        "how long a host may be silent in the middle of an answer, or before it",
        SetBy::Workspace(|new, old| new.web.silence <= old.web.silence),
    ),
    key(
        "web.timeout",
        "\"30s\"",
        "how long a fetch may take when its call does not say",
        SetBy::Workspace(|new, old| new.web.timeout <= old.web.timeout),
    ),
    key(
        "web.search.provider",
        "\"none\"",
        "who `web_search` asks: `exa`, `brave`, `searxng` or `none`",
        SetBy::Workspace(|new, old| new.web.provider == old.web.provider || new.web.provider.is_none()),
    ),
    key(
        "web.search.url",
        "\"\"",
        "the provider's address; needed for SearXNG, or if a service like Exa or Brave is at an address of its own",
        SetBy::User,
    ),
    key(
        "web.search.key",
        "\"\"",
        "the provider's key as `secret:NAME`: the file `secrets/NAME` in haft's data folder, or the variable `NAME`",
        SetBy::User,
    ),
];

/// What the user's own file is called.
const FILE: &str = "haft.toml";

/// The variable with the filter of the log.
pub(crate) const LOG: &str = "HAFT_LOG";

/// The variable with the address of the server that commands go to.
const SERVER: &str = "HAFT_SERVER";

/// The server that commands go to where no flag names one.
pub(crate) fn server() -> Option<String> {
    std::env::var(SERVER).ok().filter(|url| !url.trim().is_empty())
}

/// Variables that begin like a setting and are none.
const OTHER_VARIABLES: &[&str] = &[
    "HAFT_DATA_DIR",
    "HAFT_SECRET_KEY",
    LOG,
    "HAFT_CALL",
    "HAFT_TOOL",
    "HAFT_TENANT",
    "HAFT_WORKSPACE",
    SERVER,
    crate::remote::KEY,
    crate::commands::mcp::TOKEN,
    crate::master_key::SECRET_KEY,
    crate::master_key::NEW_SECRET_KEY,
    crate::complete::VARIABLE,
];

/// The program that shows long texts, with its arguments.
pub(crate) fn pager() -> String {
    std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned())
}

/// The name of the user that this process runs as. `USER` can be set to anything.
pub(crate) fn user_name() -> String {
    let me = nix::unistd::Uid::effective();
    let known = nix::unistd::User::from_uid(me).ok().flatten();
    known.map_or_else(|| format!("uid {me}"), |user| user.name)
}

/// What shall be logged; `None` for nothing.
pub(crate) fn log_filter() -> Result<Option<String>> {
    match std::env::var(LOG) {
        Ok(filter) => Ok(Some(filter).filter(|filter| !filter.trim().is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{LOG} is not UTF-8"),
    }
}

/// What the program goes by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the store, changes, outputs and owner locks of all this user's workspaces lie.
    pub data: PathBuf,
    /// This program, which builds the fence around commands when it is started again.
    pub program: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// The user's variables, from which toolchains are found.
    pub variables: BTreeMap<String, String>,
    /// The name that the journal knows this person by.
    pub user: String,
    /// What runs without asking.
    pub mode: AutoApprove,
    /// Which shipped rules hold.
    pub profile: Profile,
    /// Whether build output and caches come in unasked.
    pub derived: bool,
    /// The user's own rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// The rules of the trusted workspace, which only ask and deny.
    pub workspace_rules: Vec<Rule>,
    /// How long a question stays open.
    pub expire: Duration,
    /// The longest that any call may work.
    pub longest_work: Duration,
    /// How long a call may be silent.
    pub idle: Option<Duration>,
    /// Which language servers are asked, and how much they may use.
    pub lsp: LanguageServers,
    /// What MCP clients get.
    pub client: ClientSettings,
    /// The mail server, and when people are told of questions.
    pub mail: MailSettings,
    /// Upstream MCP servers.
    pub mcp: McpSettings,
    /// The folder of the user's own settings, where it is known.
    pub config: Option<PathBuf>,
    /// The program that is started when a question opens, with its arguments; empty for none.
    pub notify: Vec<String>,
    /// How long what is past is kept.
    pub retention: Retention,
    /// What commands run in.
    pub sandbox: SandboxSettings,
    /// How people sign in at the server of tenants.
    pub auth: AuthSettings,
    /// Where the server of tenants listens.
    pub serve: ServeSettings,
    /// How long a command may run when its call does not say.
    pub shell_timeout: Duration,
    /// How durable the store is.
    pub sync: Durability,
    /// Where spans are sent to.
    pub telemetry: TelemetrySettings,
    /// The address of the database; `None` is the one in the data folder.
    pub store_url: Option<String>,
    /// What of the web may be reached.
    pub web: WebSettings,
    /// Where each value that is not a default came from.
    pub origins: Vec<(String, String)>,
    /// What the workspace brings that nobody has trusted, in one sentence.
    pub not_trusted: Option<String>,
    /// What the workspace's trusted settings ask for and do not get, one sentence each.
    pub not_obeyed: Vec<String>,
}

impl Settings {
    /// Everything that holds in a workspace.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut settings = Self::of_user()?;
        let looked = trust::look(&settings.data, folder)?;
        settings.not_trusted = looked.note();
        if let Some(bytes) = looked.in_force(trust::SETTINGS) {
            let lines = settings.take_workspace(bytes).context("the haft.toml that you trusted; run `haft trust`")?;
            settings.not_obeyed = lines.iter().filter_map(WorkspaceSetting::refusal).collect();
        }
        if let Some(bytes) = looked.in_force(mcp::WORKSPACE_LIST) {
            settings.mcp.take_workspace_list(bytes);
        }
        let unread = settings.mcp.unread_lists();
        // A list that is not read may have what seems to be in none.
        let all_read = unread.is_empty() && settings.not_trusted.is_none();
        let data = settings.data.clone();
        settings.mcp.leave_out(|name| !all_read || upstreams::was_met_in_a_workspace(name, &data));
        settings.not_obeyed.extend(unread);
        for note in settings.not_trusted.iter().chain(&settings.not_obeyed) {
            tracing::warn!(note, "a part of the workspace's settings is not used");
        }
        settings.with_environment()
    }

    /// The defaults, and the user's own file over them.
    pub fn of_user() -> Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let folder = |variable: &str, beneath_home: &str| {
            let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            named.or_else(|| home.as_ref().map(|home| home.join(beneath_home)))
        };
        let data = match std::env::var_os("HAFT_DATA_DIR") {
            Some(data) => std::path::absolute(data).context("HAFT_DATA_DIR is not a usable path")?,
            None => folder("XDG_DATA_HOME", ".local/share")
                .context("neither HAFT_DATA_DIR nor HOME is set; set HAFT_DATA_DIR to a folder of your own")?
                .join("haft"),
        };
        // Whatever is read from here on is read from the data that counts.
        crate::backup::switch::finish(&data)?;
        let mut settings = Self::defaults(data);
        if std::env::var_os("HAFT_DATA_DIR").is_some() {
            settings.serve.node = serve::node_of(&settings.data);
        }
        settings.home = home.clone().unwrap_or_else(|| PathBuf::from("/"));
        settings.variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        settings.user = user_name();
        settings.config = folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("haft"));
        if let Some(config) = settings.config.clone() {
            settings.take_file(&config.join(FILE))?;
            settings.mcp.take_user_list(&config.join(mcp::USER_LIST));
        }
        Ok(settings)
    }

    /// What holds when nothing is set.
    pub fn defaults(data: PathBuf) -> Self {
        Self {
            data,
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
            home: PathBuf::from("/"),
            variables: BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]),
            user: "owner".to_owned(),
            mode: AutoApprove::default(),
            profile: Profile::default(),
            derived: true,
            rules: Vec::new(),
            workspace_rules: Vec::new(),
            expire: Duration::from_secs(24 * 3600),
            longest_work: Duration::from_secs(600),
            idle: None,
            lsp: LanguageServers::default(),
            client: ClientSettings::default(),
            mail: MailSettings::default(),
            mcp: McpSettings::default(),
            config: None,
            notify: Vec::new(),
            retention: Retention::default(),
            telemetry: TelemetrySettings::default(),
            sandbox: SandboxSettings::default(),
            auth: AuthSettings::default(),
            serve: ServeSettings::default(),
            shell_timeout: Duration::from_secs(120),
            sync: Durability::Normal,
            store_url: None,
            web: WebSettings::default(),
            origins: Vec::new(),
            not_trusted: None,
            not_obeyed: Vec::new(),
        }
    }

    /// The user's own file, as people are told: beneath the home folder it begins with `~`.
    pub(crate) fn user_file(&self) -> String {
        let Some(config) = &self.config else { return FILE.to_owned() };
        let file = config.join(FILE);
        match file.strip_prefix(&self.home) {
            Ok(beneath) if self.home != Path::new("/") => format!("~/{}", beneath.display()),
            Ok(_) | Err(_) => file.display().to_string(),
        }
    }

    /// Which database, and how it is used.
    pub fn store(&self) -> haft_store::Options {
        let (url, node) = (self.store_url.clone(), Some(self.serve.node.clone()));
        haft_store::Options { url, node, ..self.sync.into() }
    }

    /// Which shipped rules hold.
    pub(crate) fn shipped(&self) -> BuiltinRules {
        BuiltinRules { profile: self.profile, derived: self.derived }
    }

    fn take_file(&mut self, file: &Path) -> Result<()> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(err).with_context(|| format!("cannot read {}", file.display())),
        };
        let mut table: toml::Table = text.parse().with_context(|| format!("{} is not TOML", file.display()))?;
        if let Some(rules) = table.remove("rule") {
            let from = file.display().to_string();
            self.rules = rules::read(&rules, "your settings").with_context(|| format!("in {from}"))?;
            self.origins.push(("rule".to_owned(), from));
        }
        for (key, value) in flattened(&table, "") {
            let from = file.display().to_string();
            self.take(&key, &written(&value), &from).with_context(|| format!("`{key}` in {from}"))?;
        }
        Ok(())
    }

    /// The same with what the environment says over it.
    pub fn with_environment(mut self) -> Result<Self> {
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|name| name.starts_with("HAFT_")) else { continue };
            if OTHER_VARIABLES.contains(&name) || is_of_somebody_else(name) {
                continue;
            }
            let key = key_of_variable(name)?;
            let value = value.to_str().with_context(|| format!("{name} is not UTF-8"))?;
            self.take(key.name, value, name).with_context(|| format!("in {name}"))?;
        }
        Ok(self)
    }

    fn take(&mut self, key: &str, value: &str, origin: &str) -> Result<()> {
        match key {
            "approvals.mode" => self.mode = mode(value)?,
            "approvals.profile" => self.profile = Profile::parse(value)?,
            "approvals.derived" => self.derived = switch(value)?,
            "approvals.expire" => self.expire = duration(value)?,
            "limits.work" => self.longest_work = duration(value)?,
            "limits.idle" => self.idle = if value == "off" { None } else { Some(duration(value)?) },
            "notify.command" => self.notify = argv(value)?,
            "retention.journal" => self.retention.journal = duration(value)?,
            "retention.outputs" => self.retention.outputs = duration(value)?,
            "retention.audit" => self.retention.audit = duration(value)?,
            "retention.changes" => self.retention.changes = duration(value)?,
            "retention.quota" => self.retention.quota = if value == "off" { None } else { Some(size(value)?) },
            "retention.unasked" => self.retention.unasked = duration(value)?,
            "shell.timeout" => self.shell_timeout = duration(value)?,
            "store.sync" => self.sync = sync(value)?,
            "store.url" => self.store_url = database(value)?,
            other => {
                let taken = self.sandbox.take(other, value)?
                    || self.auth.take(other, value)?
                    || self.telemetry.take(other, value)?
                    || self.serve.take(other, value)?
                    || self.web.take(other, value)?
                    || self.mail.take(other, value)?
                    || self.client.take(other, value)?
                    || self.mcp.take(other, value)?
                    || lsp::take(&mut self.lsp, other, value)?;
                if !taken {
                    bail!("there is no setting `{other}`{}", hint(other, names()));
                }
            }
        }
        self.origins.retain(|(known, _)| known != key);
        self.origins.push((key.to_owned(), origin.to_owned()));
        Ok(())
    }
}

/// Variables that begin like ours, are none, and resemble none: another program's, or forgotten ones.
pub(crate) fn ignored_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = |name: &String| !name.starts_with("HAFT_") || OTHER_VARIABLES.contains(&name.as_str());
    names.filter(|name| !ours(name) && is_of_somebody_else(name)).collect()
}

/// Whether no setting can have been meant: neither one with a few other letters nor one of the same section.
fn is_of_somebody_else(variable: &str) -> bool {
    let known: Vec<String> = KEYS.iter().map(SettingKey::as_variable).collect();
    let section = |name: &str| name.split('_').nth(1).map(str::to_owned);
    nearest(variable, known.iter().map(String::as_str)).is_empty()
        && known.iter().all(|known| section(known) != section(variable))
}

fn key_of_variable(name: &str) -> Result<&'static SettingKey> {
    if let Some(key) = KEYS.iter().find(|key| key.variable().as_deref() == Some(name)) {
        return Ok(key);
    }
    if let Some(key) = KEYS.iter().find(|key| key.as_variable() == name) {
        bail!("`{name}` has no effect: `{}` can only be set in your own haft.toml", key.name);
    }
    let variables: Vec<String> = KEYS.iter().filter_map(SettingKey::variable).collect();
    bail!("there is no setting `{name}`{}", hint(name, variables.iter().map(String::as_str)))
}

/// Everything that a file may say.
fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name).chain(["rule"])
}

fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, known).first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

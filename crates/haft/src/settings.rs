//! Every setting, read in this one place: defaults, then the user's file, then the environment, then flags.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_runtime::{AutoApprove, Rule, nearest};
use haft_store::Sync;

use crate::rules::{self, Profile};

/// Every key that a file may have, with its default and what it does.
pub const KEYS: &[(&str, &str, &str)] = &[
    ("approvals.mode", "\"safe\"", "what runs without asking: `none`, `safe` (what only reads) or `all`"),
    ("approvals.profile", "\"strict\"", "shipped rules: `strict` has none, `dynamic` lets new files be made unasked"),
    ("approvals.expire", "\"24h\"", "how long a question stays open"),
    ("limits.work", "\"10m\"", "the longest that any call may work"),
    ("limits.idle", "\"off\"", "how long a call may be silent before it is stopped"),
    ("store.sync", "\"normal\"", "`normal` survives kill -9, `full` survives a power cut too"),
];

/// What the program goes by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the store, changes, outputs and owner locks of all this user's workspaces lie.
    pub data: PathBuf,
    /// The name that the journal knows this person by.
    pub user: String,
    /// What runs without asking.
    pub mode: AutoApprove,
    /// Which shipped rules hold.
    pub profile: Profile,
    /// The user's own rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// How long a question stays open.
    pub expire: Duration,
    /// The longest that any call may work.
    pub longest_work: Duration,
    /// How long a call may be silent.
    pub idle: Option<Duration>,
    /// How durable the store is.
    pub sync: Sync,
    /// Where each value that is not a default came from.
    pub origins: Vec<(String, String)>,
}

impl Settings {
    /// Reads everything once.
    pub fn read() -> Result<Self> {
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
        let mut settings = Self::defaults(data);
        if let Some(user) = std::env::var("USER").ok().filter(|user| !user.is_empty()) {
            settings.user = user;
        }
        if let Some(file) = folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("haft/haft.toml")) {
            settings.take_file(&file)?;
        }
        settings.take_environment()?;
        Ok(settings)
    }

    /// What holds when nothing is set.
    pub fn defaults(data: PathBuf) -> Self {
        Self {
            data,
            user: "owner".to_owned(),
            mode: AutoApprove::default(),
            profile: Profile::default(),
            rules: Vec::new(),
            expire: Duration::from_secs(24 * 3600),
            longest_work: Duration::from_secs(600),
            idle: None,
            sync: Sync::Normal,
            origins: Vec::new(),
        }
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
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let from = file.display().to_string();
            self.take(&key, &value, &from).with_context(|| format!("`{key}` in {from}"))?;
        }
        Ok(())
    }

    fn take_environment(&mut self) -> Result<()> {
        let variables: Vec<String> = KEYS.iter().map(|(key, _, _)| variable(key)).collect();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|name| name.starts_with("HAFT_") && *name != "HAFT_DATA_DIR") else {
                continue;
            };
            let Some(at) = variables.iter().position(|known| known == name) else {
                let near = nearest(name, variables.iter().map(String::as_str));
                let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                bail!("there is no setting `{name}`{hint}");
            };
            let value = value.to_str().with_context(|| format!("{name} is not UTF-8"))?;
            self.take(KEYS[at].0, value, name).with_context(|| format!("in {name}"))?;
        }
        Ok(())
    }

    fn take(&mut self, key: &str, value: &str, origin: &str) -> Result<()> {
        match key {
            "approvals.mode" => self.mode = mode(value)?,
            "approvals.profile" => self.profile = Profile::parse(value)?,
            "approvals.expire" => self.expire = duration(value)?,
            "limits.work" => self.longest_work = duration(value)?,
            "limits.idle" => self.idle = if value == "off" { None } else { Some(duration(value)?) },
            "store.sync" => self.sync = sync(value)?,
            unknown => {
                let near = nearest(unknown, KEYS.iter().map(|(key, _, _)| *key).chain(["rule"]));
                let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                bail!("there is no setting `{unknown}`{hint}");
            }
        }
        self.origins.retain(|(known, _)| known != key);
        self.origins.push((key.to_owned(), origin.to_owned()));
        Ok(())
    }
}

/// `approvals.mode` → `HAFT_APPROVALS_MODE`.
fn variable(key: &str) -> String {
    format!("HAFT_{}", key.to_uppercase().replace('.', "_"))
}

/// `none`, `safe` or `all`.
pub fn mode(text: &str) -> Result<AutoApprove> {
    Ok(match text {
        "none" => AutoApprove::Nothing,
        "safe" => AutoApprove::Reads,
        "all" => AutoApprove::Everything,
        other => bail!("`{other}` is not a mode: none, safe or all"),
    })
}

/// `90s`, `10m`, `24h`, `7d`, or plain seconds.
pub fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .with_context(|| format!("`{text}` is not a length of time; write it like `90s`, `10m`, `24h` or `7d`"))?;
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        other => bail!("`{other}` is not a unit of time: ms, s, m, h or d"),
    };
    // A century is as good as for ever, and cannot overflow anything.
    Ok(Duration::from_secs_f64((number * unit).min(100.0 * 365.0 * 86400.0)))
}

fn sync(text: &str) -> Result<Sync> {
    Ok(match text {
        "normal" => Sync::Normal,
        "full" => Sync::Full,
        other => bail!("`{other}` is not a kind of sync: normal or full"),
    })
}

fn flattened(table: &toml::Table, prefix: &str) -> Vec<(String, toml::Value)> {
    let mut flat = Vec::new();
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value.as_table() {
            // An empty section may be a misspelled one, so it counts as a key.
            Some(inner) if !inner.is_empty() => flat.extend(flattened(inner, &key)),
            Some(_) | None => flat.push((key, value.clone())),
        }
    }
    flat
}

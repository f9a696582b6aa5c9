//! The layer that a workspace brings: it tightens or is not obeyed.

use anyhow::{Context, Result};
use haft_runtime::{Rule, Verdict};

use super::{
    KEYS, SetBy, SettingKey, Settings,
    values::{flattened, written},
};
use crate::rules;

/// The word that the origin of a workspace's value is named by.
const ORIGIN: &str = "the workspace's haft.toml";

/// What became of one line of a workspace's file.
pub(crate) struct WorkspaceSetting {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) obeyed: Obeyed,
}

/// Whether a line is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obeyed {
    /// It makes things tighter than the user has them.
    Tightens,
    /// It is what the user has anyway.
    ChangesNothing,
    /// No: it would reach further than the user has it.
    WouldWiden,
    /// No: only the user may set it.
    OnlyTheUser,
}

impl Obeyed {
    /// Whether what the line says holds.
    pub(crate) fn is_yes(self) -> bool {
        match self {
            Self::Tightens | Self::ChangesNothing => true,
            Self::WouldWiden | Self::OnlyTheUser => false,
        }
    }

    /// What a person reads beside the line.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Tightens => "tightens",
            Self::ChangesNothing => "as you have it",
            Self::WouldWiden => "not used: it would allow more than you do",
            Self::OnlyTheUser => "not used: only your own file may set it",
        }
    }
}

impl WorkspaceSetting {
    /// The sentence for a line that somebody may rely on and that is not obeyed.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self.obeyed {
            Obeyed::WouldWiden | Obeyed::OnlyTheUser => {
                let named = if self.key.ends_with(ORIGIN) {
                    self.key.clone()
                } else {
                    format!("`{} = {}` in {ORIGIN}", self.key, self.value)
                };
                Some(format!("{named} is {}", self.obeyed.words()))
            }
            Obeyed::Tightens | Obeyed::ChangesNothing => None,
        }
    }
}

impl Settings {
    /// Lays a workspace's file over the user's settings, as far as it tightens them, and says what became of each line.
    /// A file with a mistake changes nothing.
    pub(crate) fn take_workspace(&mut self, bytes: &[u8]) -> Result<Vec<WorkspaceSetting>> {
        let text = std::str::from_utf8(bytes).context("it is not UTF-8")?;
        let mut table: toml::Table = text.parse().context("it is not TOML")?;
        let mut settings = self.clone();
        let mut lines = Vec::new();
        if let Some(rules) = table.remove("rule") {
            lines.extend(rules::read(&rules, ORIGIN)?.into_iter().map(|rule| settings.take_rule(rule)));
        }
        for (key, value) in flattened(&table, "") {
            let obeyed = settings.take_line(&key, &written(&value)).with_context(|| format!("`{key}`"))?;
            lines.push(WorkspaceSetting { key, value: value.to_string(), obeyed });
        }
        *self = settings;
        Ok(lines)
    }

    /// A rule that allows would widen; one that asks or denies counts wherever it is stricter than the user's own.
    fn take_rule(&mut self, rule: Rule) -> WorkspaceSetting {
        let value = format!("\"{}\"", rule.verdict.word());
        let key = rule.name.clone();
        let obeyed = match rule.verdict {
            Verdict::Allow => Obeyed::WouldWiden,
            Verdict::Ask | Verdict::Deny => {
                self.workspace_rules.push(rule);
                Obeyed::Tightens
            }
        };
        WorkspaceSetting { key, value, obeyed }
    }

    fn take_line(&mut self, key: &str, value: &str) -> Result<Obeyed> {
        let mut tried = self.clone();
        tried.take(key, value, ORIGIN)?;
        let Some(SettingKey { set_by: SetBy::Workspace(as_tight), .. }) = KEYS.iter().find(|known| known.name == key)
        else {
            return Ok(Obeyed::OnlyTheUser);
        };
        if !as_tight(&tried, self) {
            return Ok(Obeyed::WouldWiden);
        }
        if as_tight(self, &tried) {
            return Ok(Obeyed::ChangesNothing);
        }
        *self = tried;
        Ok(Obeyed::Tightens)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{KEYS, Obeyed, SetBy, Settings};

    fn became(line: &str) -> Obeyed {
        let mut settings = Settings::defaults(PathBuf::new());
        settings.idle = Some(std::time::Duration::from_secs(60));
        settings.take_workspace(line.as_bytes()).unwrap()[0].obeyed
    }

    #[test]
    fn a_workspace_tightens_and_never_widens() {
        let rows = [
            ("approvals.mode = 'none'", Obeyed::Tightens),
            ("approvals.mode = 'safe'", Obeyed::ChangesNothing),
            ("approvals.mode = 'all'", Obeyed::WouldWiden),
            ("approvals.expire = '1h'", Obeyed::Tightens),
            ("approvals.expire = '25h'", Obeyed::WouldWiden),
            ("limits.work = 60", Obeyed::Tightens),
            ("limits.work = '11m'", Obeyed::WouldWiden),
            ("limits.idle = '30s'", Obeyed::Tightens),
            ("limits.idle = '1m'", Obeyed::ChangesNothing),
            ("limits.idle = 'off'", Obeyed::WouldWiden),
            ("store.sync = 'full'", Obeyed::Tightens),
            ("store.sync = 'normal'", Obeyed::ChangesNothing),
            ("approvals.profile = 'strict'", Obeyed::ChangesNothing),
            ("approvals.profile = 'dynamic'", Obeyed::WouldWiden),
            ("approvals.derived = false", Obeyed::Tightens),
            ("approvals.derived = true", Obeyed::ChangesNothing),
            ("sandbox.minimum.asked = 'namespaces'", Obeyed::Tightens),
            ("sandbox.minimum.asked = 'limits'", Obeyed::WouldWiden),
            ("sandbox.minimum.unasked = 'landlock'", Obeyed::WouldWiden),
            ("sandbox.memory = '1GB'", Obeyed::Tightens),
            ("sandbox.memory = '5GB'", Obeyed::WouldWiden),
            ("sandbox.processes = 10", Obeyed::Tightens),
            ("sandbox.processes = 2000", Obeyed::WouldWiden),
            ("sandbox.cpu = '1m'", Obeyed::Tightens),
            ("sandbox.disk = '1GB'", Obeyed::Tightens),
            ("sandbox.disk = '1TB'", Obeyed::WouldWiden),
            ("shell.timeout = '1m'", Obeyed::Tightens),
            ("shell.timeout = '3m'", Obeyed::WouldWiden),
            ("sandbox.read = ['/srv']", Obeyed::OnlyTheUser),
            ("sandbox.write = ['/srv']", Obeyed::OnlyTheUser),
            ("sandbox.hide = ['x']", Obeyed::OnlyTheUser),
            ("sandbox.show = ['/srv/x.pem']", Obeyed::OnlyTheUser),
            ("web.allowlist = []", Obeyed::ChangesNothing),
            ("web.allowlist = ['evil.example']", Obeyed::WouldWiden),
            ("web.allow = ['10.0.0.0/8']", Obeyed::OnlyTheUser),
            ("web.ports = [443]", Obeyed::Tightens),
            ("web.ports = [443, 22]", Obeyed::WouldWiden),
            ("web.connect = '1s'", Obeyed::Tightens),
            ("web.silence = '1h'", Obeyed::WouldWiden),
            ("web.timeout = '1s'", Obeyed::Tightens),
            ("web.search.provider = 'exa'", Obeyed::WouldWiden),
            ("web.search.url = 'https://evil.example'", Obeyed::OnlyTheUser),
            ("web.search.key = 'secret:HOME'", Obeyed::OnlyTheUser),
            ("rule = [{ decision = 'deny' }]", Obeyed::Tightens),
            ("rule = [{ decision = 'ask', bounds = { paths = ['src/**'] } }]", Obeyed::Tightens),
            ("rule = [{ decision = 'allow' }]", Obeyed::WouldWiden),
            ("notify.command = ['sh', '-c', 'id']", Obeyed::OnlyTheUser),
            ("lsp.memory = '1GB'", Obeyed::Tightens),
            ("lsp.memory = '9GB'", Obeyed::WouldWiden),
            ("lsp.ready = '1s'", Obeyed::Tightens),
            ("lsp.timeout = '1m'", Obeyed::WouldWiden),
            ("lsp.idle = '1h'", Obeyed::WouldWiden),
            ("lsp.servers.rust = { command = ['x'], extensions = ['rs'] }", Obeyed::OnlyTheUser),
            ("mcp.client_may_approve = 'none'", Obeyed::Tightens),
            ("mcp.client_may_approve = 'all'", Obeyed::WouldWiden),
            ("mcp.pins = ['*']", Obeyed::OnlyTheUser),
            ("mcp.servers.x.command = 'x'", Obeyed::OnlyTheUser),
        ];
        for (line, obeyed) in rows {
            assert_eq!(became(line), obeyed, "{line}");
        }
        for key in KEYS.iter().filter(|key| matches!(key.set_by, SetBy::Workspace(_))) {
            let tried = |obeyed| rows.iter().any(|(line, is)| line.starts_with(key.name) && *is == obeyed);
            assert!(tried(Obeyed::WouldWiden) || tried(Obeyed::Tightens), "{} needs a row", key.name);
        }
    }

    #[test]
    fn a_full_sync_of_the_user_stays() {
        let mut settings = Settings::defaults(PathBuf::new());
        settings.take_workspace(b"store.sync = 'full'").unwrap();
        assert_eq!(settings.take_workspace(b"store.sync = 'normal'").unwrap()[0].obeyed, Obeyed::WouldWiden);
    }

    #[test]
    fn a_rule_that_allows_is_not_kept() {
        let mut settings = Settings::defaults(PathBuf::new());
        settings.take_workspace(b"[[rule]]\ndecision = 'allow'\n[[rule]]\ndecision = 'ask'").unwrap();
        let kept: Vec<_> = settings.workspace_rules.iter().map(|rule| rule.verdict.word()).collect();
        assert_eq!((kept, settings.rules.len()), (vec!["ask"], 0));
    }

    #[test]
    fn a_file_with_a_mistake_changes_nothing() {
        let mut settings = Settings::defaults(PathBuf::new());
        let mode = settings.mode;
        for bad in [&b"approvals.mode = 'none'\napprovals.mod = 1"[..], b"approvals.mode = 'some'", b"x = [", b"\xff"] {
            assert!(settings.take_workspace(bad).is_err());
            assert_eq!(settings.mode, mode);
        }
    }
}

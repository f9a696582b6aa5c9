//! What commands run in: how well they are fenced, and how much of the machine they may use.

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use haft_runtime::Isolation;

use super::values::{duration, folders, names, number, rung, size};

/// The settings of the fence around commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSettings {
    /// The lowest rung that commands may run on after a yes.
    pub minimum_asked: Isolation,
    /// The lowest rung that commands may run on without being asked for.
    pub minimum_unasked: Isolation,
    /// The most bytes of memory that a command and all it starts may use.
    pub memory: u64,
    /// The most processes and threads that a command may have at once.
    pub processes: u64,
    /// The most processor time that a single process may use.
    pub cpu: Duration,
    /// The most bytes that one run may write.
    pub disk: u64,
    /// More folders to read.
    pub read: Vec<PathBuf>,
    /// Folders outside that a project tool's manifest may name to be written.
    pub write: Vec<PathBuf>,
    /// More names to hide.
    pub hide: Vec<String>,
    /// Full paths at and beneath which names hold no secrets.
    pub show: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            minimum_asked: Isolation::Landlock,
            minimum_unasked: Isolation::Namespaces,
            memory: 4_000_000_000,
            processes: 1024,
            cpu: Duration::from_secs(3600),
            disk: 16_000_000_000,
            read: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            show: Vec::new(),
        }
    }
}

impl SandboxSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "sandbox.minimum.asked" => self.minimum_asked = rung(value)?,
            "sandbox.minimum.unasked" => self.minimum_unasked = rung(value)?,
            "sandbox.memory" => self.memory = size(value)?,
            "sandbox.processes" => self.processes = number(value)?,
            "sandbox.cpu" => self.cpu = duration(value)?,
            "sandbox.disk" => self.disk = size(value)?,
            "sandbox.read" => self.read = folders(value)?,
            "sandbox.write" => self.write = folders(value)?,
            "sandbox.hide" => self.hide = names(value)?,
            "sandbox.show" => self.show = folders(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::SandboxSettings;

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let mut settings = SandboxSettings::default();
        for (key, value, expected) in [
            ("sandbox.minimum.asked", "\"high\"", "none, limits, landlock or namespaces"),
            ("sandbox.processes", "0", "at least 1"),
            ("sandbox.processes", "many", "at least 1"),
            ("sandbox.read", "[\"data\"]", "full path"),
            ("sandbox.write", "[\"/\"]", "everything"),
            ("sandbox.write", "[\"/srv/../etc\"]", "`..`"),
            ("sandbox.hide", "[\"a/b\"]", "a name, not a path"),
            ("sandbox.hide", "[1]", "array of text"),
            ("sandbox.show", "[\"test.pem\"]", "full path"),
        ] {
            let said = format!("{:#}", settings.take(key, value).unwrap_err());
            assert!(said.contains(expected), "{key} = {value}: {said}");
        }
        assert_eq!(settings, SandboxSettings::default());
        settings.take("sandbox.read", "[\"/srv/data\", \"/opt/tools\"]").unwrap();
        assert_eq!(settings.read.len(), 2);
    }
}

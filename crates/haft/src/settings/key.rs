//! What a setting is, and who may set it.

use super::Settings;

/// One setting.
pub struct SettingKey {
    /// What it is called in a file.
    pub name: &'static str,
    /// What holds when nobody sets it, as a file would say it.
    pub default: &'static str,
    /// What it does, in a line of Markdown.
    pub does: &'static str,
    /// Who may set it.
    pub set_by: SetBy,
}

/// Who may set a setting.
pub enum SetBy {
    /// The user, and a trusted workspace where the new settings are as tight as the old ones by this comparison.
    Workspace(fn(&Settings, &Settings) -> bool),
    /// The user, in a file or a variable.
    User,
    /// The user's file alone.
    UserFile,
}

pub(super) const fn key(name: &'static str, default: &'static str, does: &'static str, set_by: SetBy) -> SettingKey {
    SettingKey { name, default, does, set_by }
}

impl SettingKey {
    /// `approvals.mode` → `HAFT_APPROVALS_MODE`, for settings that a variable may set.
    pub fn variable(&self) -> Option<String> {
        match self.set_by {
            SetBy::Workspace(_) | SetBy::User => Some(self.as_variable()),
            SetBy::UserFile => None,
        }
    }

    /// How a variable for it is called, or would be.
    pub(super) fn as_variable(&self) -> String {
        format!("HAFT_{}", self.name.to_uppercase().replace('.', "_"))
    }
}

//! The settings as people read them: in a terminal, in the documentation, and in a new `haft.toml`.

use super::{Key, SetBy};

impl Key {
    /// What a workspace's own file may do with it.
    pub fn in_a_workspace(&self) -> &'static str {
        match self.set_by {
            SetBy::Workspace(_) => "may tighten it",
            SetBy::User | SetBy::UserFile => "may not set it",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::settings::{KEYS, Settings};

    fn page() -> String {
        let mut page = include_str!("../help/settings.md").to_owned();
        page.push_str("\n| key | default | variable | a workspace | what it does |\n| --- | --- | --- | --- | --- |\n");
        for key in KEYS {
            let variable = key.variable().map_or_else(|| "–".to_owned(), |name| format!("`{name}`"));
            let (name, default, does) = (key.name, key.default, key.does);
            page.push_str(&format!("| `{name}` | `{default}` | {variable} | {} | {does} |\n", key.in_a_workspace()));
        }
        page
    }

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
        #[expect(clippy::disallowed_methods, reason = "the switch of this test")]
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, page()).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(written == page(), "docs/settings.md is stale: `make docs` writes it");
    }

    #[test]
    fn every_default_is_the_one_that_holds() {
        for key in KEYS {
            let mut settings = Settings::defaults(PathBuf::new());
            let before = format!("{settings:?}");
            let default = key.default.trim_matches('"');
            settings.take(key.name, default, "").unwrap();
            settings.origins.clear();
            assert_eq!(format!("{settings:?}"), before, "{}", key.name);
        }
    }
}

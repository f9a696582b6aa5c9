//! The settings as people read them: in a terminal, in the documentation, and in a new `haft.toml`.

use super::{KEYS, SetBy, SettingKey};
use crate::show::table::wrapped;

const FILE_HEAD: &str = "\
# Settings of this workspace. Nothing here is obeyed before `haft trust`, and a
# workspace can only make things tighter than each user's own settings; a line
# that would widen something is not obeyed. `haft help settings` says more.
";
const FILE_FOOT: &str = "
# A workspace's rules ask or deny; `haft help policy` says how they match:
#   [[rule]]
#   decision = \"ask\"
#   bounds = { paths = [\"migrations/**\"] }

# Only the file in your own configuration folder, ~/.config/haft/haft.toml, can set:
";

impl SettingKey {
    /// What a workspace's own file may do with it.
    pub fn in_a_workspace(&self) -> &'static str {
        match self.set_by {
            SetBy::Workspace(_) => "may tighten it",
            SetBy::User | SetBy::UserFile => "may not set it",
        }
    }
}

/// Every setting, for a terminal.
pub(crate) fn listed() -> String {
    let mut text = String::new();
    for key in KEYS {
        text.push_str(&format!("  {} = {}\n", key.name, key.default));
        let variable = key.variable().map_or_else(|| "no variable sets it".to_owned(), |name| format!("also {name}"));
        for sentence in [key.does, &format!("{variable}; a workspace {}", key.in_a_workspace())] {
            text.push_str(&format!("      {}\n", wrapped(sentence, 72).replace('\n', "\n      ")));
        }
    }
    text
}

/// A file with every setting at its default, each behind a `#`.
pub(crate) fn commented() -> String {
    let mut text = String::from(FILE_HEAD);
    for key in KEYS.iter().filter(|key| matches!(key.set_by, SetBy::Workspace(_))) {
        text.push_str(&format!("\n# {}\n#{} = {}\n", key.does, key.name, key.default));
    }
    text.push_str(FILE_FOOT);
    for key in KEYS.iter().filter(|key| !matches!(key.set_by, SetBy::Workspace(_))) {
        text.push_str(&format!("#   {} = {}\n", key.name, key.default));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{KEYS, commented};
    use crate::settings::{Obeyed, Settings};

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
    fn a_new_file_says_what_holds_anyway() {
        let uncommented: String = commented()
            .lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')))
            .flat_map(|line| [line, "\n"])
            .collect();
        let mut settings = Settings::defaults(PathBuf::new());
        let lines = settings.take_workspace(uncommented.as_bytes()).unwrap();
        assert!(lines.len() > 4 && lines.iter().all(|line| line.obeyed == Obeyed::ChangesNothing));
        assert!(commented().lines().all(|line| line.chars().count() <= 120));
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

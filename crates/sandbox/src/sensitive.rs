//! Names that hold secrets.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::stamp::EntryKind;
use crate::workspace_path::WorkspacePath;

/// Which names of a workspace hold secrets: the usual ones, those that the user adds, less those that the user shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SensitiveNames {
    /// Folded names that the user adds; `*` stands for any letters.
    hide: Vec<String>,
    /// Places that the user shows, with everything beneath them.
    show: Vec<PathBuf>,
}

impl SensitiveNames {
    /// The usual names and those in `hide`, less what lies at or beneath the paths in `show` in this workspace.
    pub fn new(hide: &[String], show: &[PathBuf], workspace: &Path) -> SensitiveNames {
        let hide = hide.iter().map(|name| fold(OsStr::new(name)).into_owned()).collect();
        let show = show.iter().filter_map(|path| Some(path.strip_prefix(workspace).ok()?.to_owned())).collect();
        SensitiveNames { hide, show }
    }

    /// Whether a file at this place would hold secrets, by its name or by that of a folder above it.
    pub fn hold_file(&self, place: &Path) -> bool {
        let Some(name) = place.file_name() else { return false };
        let above = place.parent().unwrap_or(Path::new(""));
        (is_file_name(&fold(name), above) || self.hold_folder(place)) && !self.show(place)
    }

    /// The same for a folder.
    pub fn hold_folder(&self, place: &Path) -> bool {
        place.iter().any(|name| self.hold_anything_called(name)) && !self.show(place)
    }

    /// The same for a folder whose own name is still to be judged: those above it were entered before.
    pub(crate) fn hold_folder_called(&self, place: &WorkspacePath) -> bool {
        place.name().is_some_and(|name| self.hold_anything_called(name)) && !self.show(place.as_path())
    }

    /// Whether an entry of a folder that was entered before holds secrets by its own name. What it is may be unknown.
    pub fn hold_entry(&self, folder: &WorkspacePath, name: &OsStr, kind: Option<EntryKind>) -> bool {
        match kind {
            Some(EntryKind::Directory) => self.hold_folder_called(&folder.join(name)),
            Some(EntryKind::File | EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device)
            | None => self.hold_file_called(folder, name),
        }
    }

    /// The same for a file.
    pub(crate) fn hold_file_called(&self, folder: &WorkspacePath, name: &OsStr) -> bool {
        (is_file_name(&fold(name), folder.as_path()) || self.hold_anything_called(name))
            && !self.show(folder.join(name).as_path())
    }

    /// Whether the user shows something beneath this folder.
    pub(crate) fn show_beneath(&self, place: &WorkspacePath) -> bool {
        self.show.iter().any(|shown| shown.starts_with(place.as_path()))
    }

    /// Whether the name alone says that an entry holds secrets, be it a file or a folder.
    fn hold_anything_called(&self, name: &OsStr) -> bool {
        let name = fold(name);
        is_sensitive_folded(&name) || self.hide.iter().any(|hidden| fits(hidden, &name))
    }

    /// Whether the user shows what lies here.
    pub(crate) fn show(&self, place: &Path) -> bool {
        self.show.iter().any(|shown| place.starts_with(shown))
    }
}

/// Whether any component of the place is a name that usually holds secrets.
pub fn is_sensitive(place: &WorkspacePath) -> bool {
    SensitiveNames::default().hold_file(place.as_path())
}

/// Whether this one component is a name that usually holds secrets, in any letter case and normal form.
pub fn is_sensitive_name(name: &OsStr) -> bool {
    is_sensitive_folded(&fold(name))
}

/// The same for a path whose parts are folded.
pub(crate) fn is_sensitive_path(parts: &[&str]) -> bool {
    let Some((name, above)) = parts.split_last() else { return false };
    let above: PathBuf = above.iter().collect();
    is_file_name(name, &above) || parts.iter().any(|part| is_sensitive_folded(part))
}

fn is_sensitive_folded(name: &str) -> bool {
    match name {
        ".env" | "credentials.json" | ".aws" | ".ssh" | ".gnupg" | ".netrc" | ".git-credentials" | ".npmrc"
        | ".pypirc" => true,
        ".env.example" | ".env.sample" | ".env.template" => false,
        other => {
            other.starts_with(".env.")
                || other.starts_with("id_rsa")
                || [".pem", ".key", ".p12"].iter().any(|end| other.ends_with(end))
        }
    }
}

/// Names that say so only of a file: a folder may well be called `id_tools`, and so may a source file with an ending.
fn is_file_name(name: &str, above: &Path) -> bool {
    let is_in = |folder: &str| above.file_name().is_some_and(|above| fold(above) == folder);
    match name {
        "config.json" => is_in(".docker"),
        "config" => is_in(".kube"),
        other => other.starts_with("id_") && other.strip_suffix(".pub").unwrap_or(other).find('.').is_none(),
    }
}

/// Whether a name is as written, where each `*` stands for any letters or none.
fn fits(written: &str, name: &str) -> bool {
    let Some((first, rest)) = written.split_once('*') else { return written == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

/// One spelling for all spellings that a filesystem may take for the same name.
pub(crate) fn fold(name: &OsStr) -> Cow<'_, str> {
    let text = name.to_string_lossy();
    if !text.is_ascii() {
        return Cow::Owned(text.nfc().collect::<String>().to_lowercase().nfc().collect());
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) { Cow::Owned(text.to_ascii_lowercase()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_what_they_usually_hold() {
        let names = SensitiveNames::default();
        for secret in [
            ".env",
            "a/.ENV.local",
            ".ssh/config",
            "id_ed25519",
            "keys/id_work",
            "id_rsa.old",
            "x.p12",
            "X.PEM",
            ".npmrc",
            ".pypirc",
            ".netrc",
            ".git-credentials",
            ".docker/config.json",
            ".kube/config",
            ".aws/x/y",
        ] {
            assert!(names.hold_file(Path::new(secret)), "{secret}");
        }
        for plain in [
            ".env.example",
            "id_map.rs",
            "id_tools/mod.py",
            "config",
            "config.json",
            "docker/config.json",
            "pem",
            "idx",
        ] {
            assert!(!names.hold_file(Path::new(plain)), "{plain}");
        }
        assert!(names.hold_folder(Path::new("a/.ssh")) && !names.hold_folder(Path::new("id_tools")));
    }

    #[test]
    fn the_user_hides_names_and_shows_paths() {
        let (hide, show) = (["Tokens".to_owned()], [PathBuf::from("/w/certs"), PathBuf::from("/other/x.pem")]);
        let names = SensitiveNames::new(&hide, &show, Path::new("/w"));
        assert!(names.hold_file(Path::new("a/tokens")) && names.hold_folder(Path::new("tokens")));
        assert!(names.hold_file(Path::new("x.pem")) && !names.hold_file(Path::new("certs/deep/x.pem")));
        assert!(names.hold_file(Path::new("certs2/x.pem")));
    }

    #[test]
    fn a_star_in_a_hidden_name_stands_for_any_letters() {
        let names = |hidden: &str| SensitiveNames::new(&[hidden.to_owned()], &[], Path::new("/w"));
        for (hidden, name, holds) in [
            ("*.tfstate", "infra/main.TFSTATE", true),
            ("*.tfstate", "main.tfstate.txt", false),
            ("vault*", "vault", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "anything", true),
        ] {
            assert_eq!(names(hidden).hold_file(Path::new(name)), holds, "{hidden} {name}");
        }
    }
}

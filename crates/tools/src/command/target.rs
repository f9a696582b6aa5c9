//! Where a word leads, worked out from the text alone: no file is looked at.

use std::path::{Component, Path};

use globset::{Glob, GlobMatcher};

use super::word::{Word, WordPart};

/// The folders that a command may be about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The root of the workspace.
    pub(crate) workspace: &'a Path,
    /// The user's home, where it is known.
    pub(crate) home: Option<&'a Path>,
    /// The folder in which the command starts.
    pub(crate) folder: &'a Path,
}

/// An absolute path whose components may still be patterns for a shell to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShellPath(Vec<String>);

/// A folder whose loss nobody can want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vital {
    Root,
    Home,
    AroundWorkspace,
}

impl Vital {
    /// It, in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Root => "the whole system",
            Self::Home => "the home folder, or one around it",
            Self::AroundWorkspace => "a folder that the workspace lies in",
        }
    }
}

impl ShellPath {
    /// Where the word leads after each `cd`; `None` where only a shell knows.
    pub(super) fn resolve(word: &Word, moves: &[Word], places: &Places<'_>) -> Option<Self> {
        let start = Self(components(places.folder).iter().map(|name| globset::escape(name)).collect());
        let folder = moves.iter().try_fold(start, |folder, word| folder.step(word, places))?;
        folder.step(word, places)
    }

    fn step(&self, word: &Word, places: &Places<'_>) -> Option<Self> {
        let mut pattern = String::new();
        for (at, part) in word.parts().iter().enumerate() {
            match part {
                WordPart::Bare(text) if at == 0 && text.starts_with('~') => {
                    let rest = &text[1..];
                    // `~anna` is another's home.
                    if !rest.is_empty() && !rest.starts_with('/') || rest.is_empty() && word.parts().len() > 1 {
                        return None;
                    }
                    pattern.push_str(&globset::escape(places.home?.to_str()?));
                    pattern.push_str(rest);
                }
                WordPart::Bare(text) => pattern.push_str(text),
                WordPart::Quoted(text) => pattern.push_str(&globset::escape(text)),
                WordPart::Home => pattern.push_str(&globset::escape(places.home?.to_str()?)),
                WordPart::Here => self.0.iter().for_each(|name| pattern.extend(["/", name])),
                WordPart::Unknown(_) => return None,
            }
        }
        if pattern.is_empty() {
            return None;
        }
        let mut names = if pattern.starts_with('/') { Vec::new() } else { self.0.clone() };
        for name in pattern.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name.to_owned()),
            }
        }
        Some(Self(names))
    }

    /// The vital folder that goes when this goes, or when everything in this goes.
    pub(super) fn vital(&self, places: &Places<'_>) -> Option<Vital> {
        let root = [(Vital::Root, Path::new("/"))];
        let home = places.home.into_iter().flat_map(Path::ancestors).map(|folder| (Vital::Home, folder));
        let workspace = places.workspace.ancestors().skip(1).map(|folder| (Vital::AroundWorkspace, folder));
        let names: Vec<Name> = self.0.iter().map(|name| Name::new(name)).collect();
        let inside = names.split_last().filter(|(last, _)| last.leaves_nothing_out()).map(|(_, folder)| folder);
        let goes = |folder: &[String]| fits(&names, folder) || inside.is_some_and(|inside| fits(inside, folder));
        let vital = root.into_iter().chain(home).chain(workspace).find(|(_, folder)| goes(&components(folder)));
        vital.map(|(vital, _)| vital)
    }

    /// Whether it is a disk, or a part of one, by the names that Linux gives them.
    pub(super) fn is_disk(&self) -> bool {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let (device, rest) = match names.as_slice() {
            ["dev", device, rest @ ..] => (*device, rest),
            _ => return false,
        };
        let after = |prefix: &str, fits: fn(char) -> bool| {
            let next = device.strip_prefix(prefix).and_then(|rest| rest.chars().next());
            rest.is_empty() && next.is_some_and(|letter| fits(letter) || "*?[{".contains(letter))
        };
        let lettered =
            ["sd", "hd", "vd", "xvd"].iter().any(|prefix| after(prefix, |letter| letter.is_ascii_lowercase()));
        let numbered = ["nvme", "mmcblk", "loop", "dm-", "md", "nbd", "ram", "zram"];
        let numbered = numbered.iter().any(|prefix| after(prefix, |letter| letter.is_ascii_digit()));
        let linked = match rest {
            [kind, _] => device == "disk" && kind.starts_with("by-"),
            [name] => device == "mapper" && *name != "control",
            _ => false,
        };
        lettered || numbered || linked
    }
}

fn components(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    names
}

/// One component of a target.
enum Name {
    Exactly(String),
    Matching(GlobMatcher),
}

impl Name {
    fn new(pattern: &str) -> Self {
        let glob = Some(pattern).filter(|pattern| pattern.contains(['*', '?', '[', '{'])).map(Glob::new);
        match glob {
            Some(Ok(glob)) => Self::Matching(glob.compile_matcher()),
            Some(Err(_)) | None => Self::Exactly(pattern.to_owned()),
        }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exactly(exact) => exact == name,
            Self::Matching(matcher) => matcher.is_match(name),
        }
    }

    /// Whether it matches whatever there is, or whatever is hidden: `*`, `.*`, `?*`, `.[!.]*`.
    fn leaves_nothing_out(&self) -> bool {
        ["some-name-or-other", ".some-name-or-other"].iter().any(|name| self.fits(name))
    }
}

fn fits(names: &[Name], folder: &[String]) -> bool {
    names.len() == folder.len() && names.iter().zip(folder).all(|(name, folder)| name.fits(folder))
}

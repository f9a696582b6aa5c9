//! Where a workspace stands: what it brings now, beside what was trusted.

use std::path::Path;

use anyhow::Result;

use super::{
    brought::{Brought, Content},
    record::{self, Record},
};

/// A workspace as it was found.
pub(crate) struct Looked {
    /// What it brings now.
    pub(crate) brought: Brought,
    /// Whether that is obeyed.
    pub(crate) standing: Standing,
}

/// Whether what a workspace brings is obeyed.
pub(crate) enum Standing {
    /// It brings nothing.
    BringsNothing,
    /// Nobody has trusted it.
    NotTrusted,
    /// It brings what was trusted.
    Trusted(Record),
    /// It brings something else by now; what was trusted stays in force.
    Held(Record),
    /// There is a record that cannot be believed, and why.
    Doubtful(String),
}

impl Standing {
    /// The word that programs read.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::BringsNothing => "nothing",
            Self::NotTrusted => "not_trusted",
            Self::Trusted(_) => "trusted",
            Self::Held(_) => "held",
            Self::Doubtful(_) => "doubtful",
        }
    }
}

/// One path at which what is there differs from what was trusted.
pub(crate) struct Difference<'a> {
    pub(crate) path: &'a str,
    pub(crate) trusted: Option<&'a Content>,
    pub(crate) found: Option<&'a Content>,
}

/// Looks at a workspace and at its record.
pub(crate) fn look(data: &Path, workspace: &Path) -> Result<Looked> {
    let brought = Brought::read(workspace, data)?;
    let standing = match record::read(data, workspace) {
        Err(err) => Standing::Doubtful(format!("{err:#}")),
        Ok(Some(record)) if record.brought == brought => Standing::Trusted(record),
        Ok(Some(record)) => Standing::Held(record),
        Ok(None) if brought.0.is_empty() => Standing::BringsNothing,
        Ok(None) => Standing::NotTrusted,
    };
    Ok(Looked { brought, standing })
}

impl Looked {
    /// The bytes of one file that are obeyed: those that were trusted, whatever lies there now.
    pub(crate) fn in_force(&self, path: &str) -> Option<&[u8]> {
        self.record()?.brought.0.get(path)?.bytes()
    }

    /// What was trusted.
    pub(crate) fn record(&self) -> Option<&Record> {
        match &self.standing {
            Standing::Trusted(record) | Standing::Held(record) => Some(record),
            Standing::BringsNothing | Standing::NotTrusted | Standing::Doubtful(_) => None,
        }
    }

    /// Where it stands, in a few words.
    pub(crate) fn words(&self) -> String {
        let count = self.brought.0.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        match &self.standing {
            Standing::BringsNothing => "this workspace brings no settings or tools of its own".to_owned(),
            Standing::NotTrusted => format!("not trusted: none of the {files} it brings is obeyed"),
            Standing::Trusted(record) if record.brought.0.is_empty() => {
                "this workspace brings no settings or tools of its own".to_owned()
            }
            Standing::Trusted(_) => format!("trusted: {files}, unchanged since"),
            Standing::Held(_) => "changed since it was trusted; that stays in force".to_owned(),
            Standing::Doubtful(why) => format!("not trusted: its trust record is not believed, because {why}"),
        }
    }

    /// What whoever uses the workspace must know: something lies there that is not obeyed.
    pub(crate) fn note(&self) -> Option<String> {
        match &self.standing {
            Standing::BringsNothing | Standing::Trusted(_) => None,
            Standing::NotTrusted | Standing::Held(_) => Some(format!("{}; see `haft trust`", self.words())),
            Standing::Doubtful(_) => {
                Some(format!("{}; `haft trust --forget` removes it, then look again with `haft trust`", self.words()))
            }
        }
    }

    /// Where what is there differs from what was trusted.
    pub(crate) fn differences(&self) -> Vec<Difference<'_>> {
        let Some(record) = self.record() else { return Vec::new() };
        let trusted = &record.brought.0;
        let mut paths: Vec<&String> = trusted.keys().chain(self.brought.0.keys()).collect();
        paths.sort();
        paths.dedup();
        let difference = |path| Difference { path, trusted: trusted.get(path), found: self.brought.0.get(path) };
        let all = paths.into_iter().map(|path: &String| difference(path.as_str()));
        all.filter(|difference| difference.trusted != difference.found).collect()
    }
}

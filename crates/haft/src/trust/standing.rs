//! Where a workspace stands: what it brings now, beside what was trusted.

use std::path::Path;

use anyhow::Result;

use super::{
    brought::{Brought, BroughtContent},
    record::{self, TrustRecord},
};
use crate::show::time::count;

/// A workspace as it was found.
pub(crate) struct WorkspaceTrust {
    /// What it brings now.
    pub(crate) brought: Brought,
    /// Whether that is obeyed.
    pub(crate) standing: TrustStatus,
}

/// Whether what a workspace brings is obeyed.
pub(crate) enum TrustStatus {
    /// It brings nothing.
    BringsNothing,
    /// Nobody has trusted it.
    NotTrusted,
    /// It brings what was trusted.
    Trusted(TrustRecord),
    /// It brings something else by now; what was trusted stays in force.
    Held(TrustRecord),
    /// There is a record that cannot be believed, and why.
    Doubtful(String),
}

impl TrustStatus {
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
pub(crate) struct TrustDifference<'a> {
    pub(crate) path: &'a str,
    pub(crate) trusted: Option<&'a BroughtContent>,
    pub(crate) found: Option<&'a BroughtContent>,
}

/// Looks at a workspace and at its record.
pub(crate) fn look(data: &Path, workspace: &Path) -> Result<WorkspaceTrust> {
    let brought = Brought::read(workspace, data)?;
    let standing = match record::read(data, workspace) {
        Err(err) => TrustStatus::Doubtful(format!("{err:#}")),
        Ok(Some(record)) if record.brought == brought => TrustStatus::Trusted(record),
        Ok(Some(record)) => TrustStatus::Held(record),
        Ok(None) if brought.0.is_empty() => TrustStatus::BringsNothing,
        Ok(None) => TrustStatus::NotTrusted,
    };
    Ok(WorkspaceTrust { brought, standing })
}

impl WorkspaceTrust {
    /// The bytes of one file that are obeyed: those that were trusted, whatever lies there now.
    pub(crate) fn in_force(&self, path: &str) -> Option<&[u8]> {
        self.record()?.brought.0.get(path)?.bytes()
    }

    /// What was trusted.
    pub(crate) fn record(&self) -> Option<&TrustRecord> {
        match &self.standing {
            TrustStatus::Trusted(record) | TrustStatus::Held(record) => Some(record),
            TrustStatus::BringsNothing | TrustStatus::NotTrusted | TrustStatus::Doubtful(_) => None,
        }
    }

    /// Where it stands, in a few words.
    pub(crate) fn words(&self) -> String {
        let (files, are) = (count(self.brought.0.len(), "file"), if self.brought.0.len() == 1 { "is" } else { "are" });
        match &self.standing {
            TrustStatus::BringsNothing => "this workspace brings no settings or tools of its own".to_owned(),
            TrustStatus::NotTrusted => format!("not trusted: {files} of this workspace {are} not used"),
            TrustStatus::Trusted(record) if record.brought.0.is_empty() => {
                "this workspace brings no settings or tools of its own".to_owned()
            }
            TrustStatus::Trusted(_) => format!("trusted: {files}, unchanged since"),
            TrustStatus::Held(_) => {
                "files here changed since you trusted them; the trusted version is still used".to_owned()
            }
            TrustStatus::Doubtful(why) => format!("not trusted: the trust record cannot be relied on, because {why}"),
        }
    }

    /// What whoever uses the workspace must know: something lies there that is not obeyed.
    pub(crate) fn note(&self) -> Option<String> {
        match &self.standing {
            TrustStatus::BringsNothing | TrustStatus::Trusted(_) => None,
            TrustStatus::NotTrusted | TrustStatus::Held(_) => Some(format!("{}; see `haft trust`", self.words())),
            TrustStatus::Doubtful(_) => {
                Some(format!("{}; `haft trust --forget` removes it, then look again with `haft trust`", self.words()))
            }
        }
    }

    /// Where what is there differs from what was trusted.
    pub(crate) fn differences(&self) -> Vec<TrustDifference<'_>> {
        let Some(record) = self.record() else { return Vec::new() };
        let trusted = &record.brought.0;
        let mut paths: Vec<&String> = trusted.keys().chain(self.brought.0.keys()).collect();
        paths.sort();
        paths.dedup();
        let difference = |path| TrustDifference { path, trusted: trusted.get(path), found: self.brought.0.get(path) };
        let all = paths.into_iter().map(|path: &String| difference(path.as_str()));
        all.filter(|difference| difference.trusted != difference.found).collect()
    }
}

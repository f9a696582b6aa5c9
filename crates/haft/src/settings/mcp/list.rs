//! A list of servers as other programs write it: each entry is understood, or refused, by itself.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    USER_LIST, WORKSPACE_LIST,
    entry::{Keys, McpServerEntry, fitting_name, name_fault},
};
use crate::{
    edits,
    show::{safe::safe, table::cut},
};

/// The most of a name that is told.
const LONGEST_TOLD: usize = 80;

/// Whose list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    User,
    Workspace,
}

impl Whose {
    /// What its file is called.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::User => USER_LIST,
            Self::Workspace => WORKSPACE_LIST,
        }
    }

    fn keys(self) -> Keys {
        match self {
            Self::User => Keys::OfTheUser,
            Self::Workspace => Keys::Common,
        }
    }

    fn place(self) -> String {
        match self {
            Self::User => format!("your {USER_LIST}"),
            Self::Workspace => format!("the workspace's {WORKSPACE_LIST}"),
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::User => "correct it there",
            Self::Workspace => "correct it there, then `haft trust`",
        }
    }
}

/// Every entry by its name; one that cannot be understood says why. A file that is no list is a single such entry, which
/// has the name of the file.
pub(super) fn read(text: Result<String>, whose: Whose) -> BTreeMap<String, McpServerEntry> {
    let servers = text.and_then(|text| servers(&text));
    servers.map_or_else(
        |err| {
            let why = format!("{} is ignored: {err:#}; {}", whose.place(), whose.fix());
            BTreeMap::from([(whose.file().to_owned(), McpServerEntry::refused(why, &Value::Null))])
        },
        |servers| entries(&servers, whose),
    )
}

/// How the name of a server is written in a list; `None` when the list has none of this name.
pub(crate) fn written_as(text: &str, name: &str) -> Option<String> {
    let written: Vec<String> = servers(text).ok()?.into_iter().map(|(written, _)| written).collect();
    let becomes = |written: &&String| fitting_name(written).as_deref() == Some(name);
    let exact = written.iter().find(|written| *written == name);
    exact.or_else(|| written.iter().find(becomes)).cloned()
}

/// What stands under `mcpServers`, in the order in which it is written.
fn servers(text: &str) -> Result<Vec<(String, Value)>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let list = edits::json::parse(text)?;
    match list.get("mcpServers").context("it has no `mcpServers`")? {
        Value::Null => Ok(Vec::new()),
        Value::Object(servers) => Ok(servers.clone().into_iter().collect()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bail!("its `mcpServers` is not a table of servers")
        }
    }
}

fn entries(servers: &[(String, Value)], whose: Whose) -> BTreeMap<String, McpServerEntry> {
    let mut entries = BTreeMap::new();
    // A name that is written as it is meant counts before one that becomes the same.
    let (exact, others): (Vec<_>, Vec<_>) = servers.iter().partition(|(name, _)| name_fault(name).is_none());
    for (written, value) in exact.into_iter().chain(others) {
        let told = cut(&safe(written), LONGEST_TOLD);
        let refused =
            |why: String| McpServerEntry::refused(format!("the entry `{told}` in {} {why}", whose.place()), value);
        let (name, entry) = match fitting_name(written) {
            None => (told.clone(), refused("needs a name with letters (a to z) or digits".to_owned())),
            Some(name) if entries.contains_key(&name) => {
                let why = format!("would be named `{name}`, like another one; rename it");
                (told.clone(), refused(why))
            }
            Some(name) => {
                let why = |err| format!("cannot be used: {err:#}; {}", whose.fix());
                let entry = McpServerEntry::read_whole(value, whose.keys()).unwrap_or_else(|err| refused(why(err)));
                (name, entry)
            }
        };
        entries.entry(name).or_insert(entry);
    }
    entries
}

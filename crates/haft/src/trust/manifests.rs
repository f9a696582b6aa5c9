//! The manifests of project tools among what a workspace brings.

use std::path::Path;

use haft_runtime::{ErrorCode, ToolError};
use haft_tools::{Manifest, Script, Trusted, scripts};
use serde_json::Value;

use super::{
    brought::{Brought, BroughtContent, LINK},
    links::follow,
};
use crate::{edits, settings::mcp::WORKSPACE_LIST};

/// Where manifests lie.
pub(crate) const TOOLS: &str = ".haft/tools/";
/// More than any tool needs to describe itself.
const LARGEST: usize = 64 << 10;

/// One file that is meant to describe a tool.
pub(crate) struct ManifestFile<'a> {
    pub(crate) path: &'a str,
    /// The name of the file without its ending.
    pub(crate) stem: &'a str,
    content: &'a BroughtContent,
}

impl<'a> ManifestFile<'a> {
    fn at(path: &'a str, content: &'a BroughtContent) -> Option<Self> {
        let (stem, ending) = path.strip_prefix(TOOLS)?.rsplit_once('.')?;
        let is_one = !stem.contains('/') && matches!(ending, "toml" | "json");
        is_one.then_some(Self { path, stem, content })
    }

    /// The manifest, or one sentence about what is wrong with it.
    pub(crate) fn read(&self) -> Result<Manifest, String> {
        Manifest::read(&self.value()?, self.stem)
    }

    fn value(&self) -> Result<Value, String> {
        let text = match self.content {
            BroughtContent::Text(text) => text,
            BroughtContent::Bytes(_) | BroughtContent::Hash(_) => return Err("it is not text".to_owned()),
            BroughtContent::Link(_) => return Err(LINK.to_owned()),
            BroughtContent::LeftOut(why) => return Err(why.clone()),
        };
        if text.len() > LARGEST {
            return Err(format!("it is larger than {} KiB", LARGEST >> 10));
        }
        if self.path.ends_with(".json") {
            return serde_json::from_str(text).map_err(|err| format!("it is not JSON: {err}"));
        }
        let table: toml::Table = text.parse().map_err(|err: toml::de::Error| {
            let line = err.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            format!("it is not TOML: {} in line {line}", err.message().replace('\n', " "))
        })?;
        serde_json::to_value(table).map_err(|err| format!("it is not TOML: {err}"))
    }
}

impl Brought {
    /// The files that are meant to describe tools, in the order of their names.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = ManifestFile<'_>> {
        self.0.iter().filter_map(|(path, content)| ManifestFile::at(path, content))
    }

    /// The files of the workspace that the commands of manifests name, also of those that have a fault.
    pub(super) fn scripts(&self, workspace: &Path) -> Vec<String> {
        named(self.manifests().filter_map(|file| file.value().ok()), workspace)
    }

    /// The same for the commands of servers.
    pub(super) fn named_by_servers(&self, workspace: &Path) -> Vec<String> {
        let list = self.0.get(WORKSPACE_LIST).and_then(BroughtContent::bytes);
        let list = list.and_then(|bytes| std::str::from_utf8(bytes).ok());
        // Read as it is obeyed: with comments and trailing commas.
        let list = list.and_then(|text| edits::json::parse(text).ok()).unwrap_or_default();
        let servers = list["mcpServers"].as_object().into_iter().flat_map(|servers| servers.values().cloned());
        named(servers, workspace)
    }

    /// What was brought of the files that a manifest's command names.
    pub(crate) fn scripts_of(&self, manifest: &Manifest, workspace: &Path) -> Vec<Script> {
        self.as_trusted(manifest.scripts(workspace))
    }

    /// What was brought of the files that the command of a server names. Refused when a link leads elsewhere by now, or
    /// a program that was too large to be kept is another.
    pub(crate) fn scripts_of_command(
        &self,
        command: &[String],
        cwd: &str,
        workspace: &Path,
    ) -> Result<Vec<Script>, ToolError> {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let named = scripts(&words, cwd, workspace);
        let now = Self::at(&named, workspace).unwrap_or_default();
        let mut ends = Vec::new();
        for path in named {
            let lead = |brought: &Self| follow(&path, workspace, |path| brought.link_at(path));
            let (Some(trusted), Some(found)) = (lead(self), lead(&now)) else {
                return Err(leads_elsewhere(&path));
            };
            let end = trusted.end.clone();
            let is_hashed = |end: &String| matches!(self.0.get(end), Some(BroughtContent::Hash(_)));
            let is_another = end.as_ref().is_some_and(|end| is_hashed(end) && self.0.get(end) != now.0.get(end));
            if trusted != found || is_another {
                return Err(leads_elsewhere(&path));
            }
            ends.extend(end.filter(|end| !is_hashed(end)));
        }
        Ok(self.as_trusted(ends))
    }

    /// What is written in a link.
    fn link_at(&self, path: &str) -> Option<String> {
        match self.0.get(path)? {
            BroughtContent::Link(text) => Some(text.clone()),
            BroughtContent::Text(_)
            | BroughtContent::Bytes(_)
            | BroughtContent::Hash(_)
            | BroughtContent::LeftOut(_) => None,
        }
    }

    fn as_trusted(&self, paths: Vec<String>) -> Vec<Script> {
        let trusted = |path: &String| match self.0.get(path) {
            None => Trusted::Absent,
            Some(BroughtContent::Text(text)) => Trusted::Bytes(text.clone().into_bytes()),
            Some(BroughtContent::Bytes(bytes)) => Trusted::Bytes(bytes.clone()),
            Some(BroughtContent::Link(_)) => Trusted::LeftOut(LINK.to_owned()),
            Some(BroughtContent::Hash(_)) => Trusted::LeftOut("it is too large".to_owned()),
            Some(BroughtContent::LeftOut(why)) => Trusted::LeftOut(why.clone()),
        };
        paths.into_iter().map(|path| Script { trusted: trusted(&path), path }).collect()
    }
}

/// The files of the workspace that some commands name.
fn named(entries: impl Iterator<Item = Value>, workspace: &Path) -> Vec<String> {
    let named = entries.flat_map(|value| {
        // A manifest has one array, the list of other programs a program and its arguments.
        let texts = |key: &str| value[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words = value["command"].as_str().into_iter().chain(texts("command")).chain(texts("args"));
        scripts(&words.collect::<Vec<_>>(), value["cwd"].as_str().unwrap_or("."), workspace)
    });
    named.collect()
}

fn leads_elsewhere(path: &str) -> ToolError {
    let message = format!("`{path}` changed since you trusted this workspace. Look with `haft trust`.");
    ToolError::new(ErrorCode::NotTrusted, message).with("path", path)
}

//! The entry of a server with everything in its place that it only names: `secret:NAME`, and `${NAME}` as other programs
//! write it.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};
use haft_runtime::secret_forms;

use super::{McpServer, Reached, ServerOrigin};
use crate::settings::{
    Settings,
    values::argv,
    web::{SECRET, checked_url, found_secret, secret_name},
};

/// The shortest value that may be a secret where nothing says that it is one.
const LONG: usize = 8;

/// How a server is reached, and what must not be told of that.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedSecrets {
    pub(crate) reached: Reached,
    /// Whatever may be a secret: nothing that is said of the server has these in it.
    pub(crate) secrets: Vec<String>,
    /// What the entry calls a secret: nothing that the server says has these in it either.
    pub(crate) named: Vec<String>,
}

impl McpServer {
    /// What is named in the entry, in its place. An error says which name, and never a value.
    pub(crate) fn revealed(&self, settings: &Settings, workspace: &Path) -> Result<ResolvedSecrets> {
        let mut names = EntryVariables { server: self, settings, workspace, secrets: Vec::new(), named: Vec::new() };
        let reached = match &self.reached {
            Reached::Url { url, headers } => {
                let full = names.fill(url).context("its `url`")?;
                if checked_url(&full).is_err() {
                    bail!("its `url` is not a URL once its variables are filled in");
                }
                let headers = names.pairs(headers, "header")?;
                names.secrets.extend(headers.values().flat_map(|value| secret_forms(value)));
                Reached::Url { url: full, headers }
            }
            Reached::Command { command, env, cwd } => {
                let command: Vec<String> = command.iter().map(|word| names.fill(word)).collect::<Result<_>>()?;
                if self.from == ServerOrigin::ByTheUser {
                    argv(&toml::Value::from(command.clone()).to_string())?;
                }
                let env = names.pairs(env, "variable")?;
                names.secrets.extend(env.values().filter(|value| may_be_secret(value)).cloned());
                Reached::Command { command, env, cwd: cwd.clone() }
            }
            Reached::Unknown { why } => bail!("{why}"),
        };
        Ok(ResolvedSecrets { reached, secrets: names.secrets, named: names.named })
    }
}

impl McpServer {
    /// The client that was registered for haft by hand, and its secret.
    pub(crate) fn login_client(
        &self,
        settings: &Settings,
        workspace: &Path,
    ) -> Result<Option<(String, Option<String>)>> {
        let Some(id) = self.oauth.client_id.clone() else { return Ok(None) };
        let mut names = EntryVariables { server: self, settings, workspace, secrets: Vec::new(), named: Vec::new() };
        let secret = self.oauth.client_secret.as_deref().map(|name| names.secret(name)).transpose();
        Ok(Some((id, secret.context("its `oauth.client_secret`")?)))
    }
}

/// What the names in one entry stand for.
struct EntryVariables<'a> {
    server: &'a McpServer,
    settings: &'a Settings,
    workspace: &'a Path,
    /// What was found.
    secrets: Vec<String>,
    named: Vec<String>,
}

impl EntryVariables<'_> {
    fn pairs(&mut self, pairs: &BTreeMap<String, String>, what: &str) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for (name, value) in pairs {
            let value = if value.starts_with(SECRET) { self.secret(value) } else { self.fill(value) };
            found.insert(name.clone(), value.with_context(|| format!("its {what} `{name}`"))?);
        }
        Ok(found)
    }

    fn secret(&mut self, name: &str) -> Result<String> {
        let found = found_secret(&secret_name(name)?, &self.settings.data, &self.settings.variables)?;
        self.secrets.push(found.clone());
        self.named.extend(secret_forms(&found));
        Ok(found)
    }

    /// The text with the values of its variables.
    fn fill(&mut self, text: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((inside, behind)) = after.split_once('}') else {
                filled.push_str("${");
                rest = after;
                continue;
            };
            match self.variable(inside)? {
                Some(value) => filled.push_str(&value),
                None => filled.push_str(&format!("${{{inside}}}")),
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// What `${…}` stands for; `None` when it is no name of anything, and stays as it is.
    fn variable(&mut self, inside: &str) -> Result<Option<String>> {
        if inside == "workspaceFolder" {
            return Ok(Some(self.workspace.display().to_string()));
        }
        if inside.starts_with("input:") {
            bail!("haft cannot ask for `${{{inside}}}`; write `${{NAME}}` instead and set that variable");
        }
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !is_name(name) {
            return Ok(None);
        }
        let found = self.settings.variables.get(name).filter(|_| self.may_have(name));
        match (found, otherwise) {
            (Some(value), Some(otherwise)) if value.is_empty() => Ok(Some(otherwise.to_owned())),
            (Some(value), _) => {
                self.secrets.extend(Some(value.clone()).filter(|value| !is_path(value)));
                Ok(Some(value.clone()))
            }
            (None, Some(otherwise)) => Ok(Some(otherwise.to_owned())),
            (None, None) => Err(self.missing(name)),
        }
    }

    /// A workspace's list gets only those of the user's variables that the user names for it.
    fn may_have(&self, name: &str) -> bool {
        match self.server.from {
            ServerOrigin::ByTheUser => true,
            ServerOrigin::ByTheWorkspace => self.server.variables.contains(name),
        }
    }

    fn missing(&self, name: &str) -> anyhow::Error {
        if self.may_have(name) {
            return anyhow::anyhow!(
                "the variable `{name}` is not set; set it where haft is started, or give it a default: \
                 `${{{name}:-…}}`"
            );
        }
        let also: Vec<&str> = self.server.variables.iter().map(String::as_str).chain([name]).collect();
        let server = &self.server.name;
        anyhow::anyhow!(
            "this workspace wants your variable `{name}` for the server; to allow that, add to your haft.toml:\n\
             [mcp.servers.{server}]\nvariables = {also:?}"
        )
    }
}

/// Whether a value that stands in the entry itself may be a secret. Nobody says so there; a switch, a port or a path are
/// none.
fn may_be_secret(value: &str) -> bool {
    value.len() >= LONG && !is_path(value)
}

/// Whether it is the path of something that is there, which says nothing to anybody.
fn is_path(value: &str) -> bool {
    value.starts_with('/') && Path::new(value).exists()
}

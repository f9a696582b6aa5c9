//! The secrets of a tenant: written but never read back, and sent to their hosts only.

use haft_runtime::{Caller, ErrorCode, Scope, ToolError};
use haft_sandbox::web::Url;
use haft_store::SealedSecret;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Permission, Platform,
    platform::{mistake, not_found},
};

/// The shortest value that can be taken out of every answer without spoiling it.
const SHORTEST: usize = 8;

/// A secret as others see it: never its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretView {
    /// What it is called.
    pub name: String,
    /// Where it may be sent; empty until the first tool uses it.
    pub hosts: Vec<String>,
    /// When its value was set.
    pub set_at: Timestamp,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// The tools and, as `mcp:NAME`, the MCP servers that name it.
    pub used_by: Vec<String>,
}

impl Platform {
    /// Sets a secret of a tenant, in the place of one of the same name. Without hosts it keeps those of the one before.
    pub async fn set_secret(
        &self,
        scope: &Scope,
        name: &str,
        value: &str,
        hosts: &[String],
    ) -> Result<SecretView, ToolError> {
        if !is_secret_name(name) {
            return Err(mistake(format!("`{name}` is no name: a letter, then up to 63 letters, digits and `_`")));
        }
        if value.chars().count() < SHORTEST {
            let message = format!("the value of `{name}` is too short: it must have at least {SHORTEST} characters");
            return Err(mistake(message));
        }
        let mut hosts: Vec<String> = hosts.iter().map(|host| host.trim().to_ascii_lowercase()).collect();
        hosts.retain(|host| !host.is_empty());
        if let Some(host) = hosts.iter().find(|host| host.contains(['/', ' '])) {
            return Err(mistake(format!("`{host}` is no host; write it like `api.example.org`")));
        }
        let sealed = self.key.seal(&sealed_as(scope, name), value)?;
        self.store.set_secret(scope, (name, &hosts.join(",")), sealed).await?;
        let kept = self.store.secret(scope, name).await?.ok_or_else(|| not_found(&format!("secret `{name}`")))?;
        let users = self.users_of_secrets(scope).await?;
        Ok(view(kept, &users))
    }

    /// The secrets of a tenant, without their values.
    pub async fn secrets(&self, scope: &Scope) -> Result<Vec<SecretView>, ToolError> {
        let all = self.store.secrets(scope).await?;
        let users = self.users_of_secrets(scope).await?;
        Ok(all.into_iter().map(|one| view(one, &users)).collect())
    }

    /// Everything that may name a secret: what it is called, and its text.
    async fn users_of_secrets(&self, scope: &Scope) -> Result<Vec<(String, String)>, ToolError> {
        let tools = self.store.tools_of_tenant(scope, &self.house).await?.rows;
        let servers = self.store.mcp_servers(scope).await?;
        let tools = tools.into_iter().map(|tool| (tool.slug, tool.body));
        Ok(tools.chain(servers.into_iter().map(|server| (format!("mcp:{}", server.name), server.body))).collect())
    }

    /// Removes a secret; tools that name it fail from then on.
    pub async fn remove_secret(&self, scope: &Scope, name: &str) -> Result<(), ToolError> {
        let removed = self.store.remove_secret(scope, name).await?;
        if removed { Ok(()) } else { Err(not_found(&format!("secret `{name}`"))) }
    }

    /// Binds a secret without hosts to the first one that a tool names, and refuses any host that is none of its own. One
    /// that is not set yet binds nothing.
    pub(crate) async fn bind_secret(&self, scope: &Scope, name: &str, host: &str) -> Result<(), ToolError> {
        self.store.bind_secret(scope, name, host).await?;
        let found = self.store.secret(scope, name).await?;
        found.map_or(Ok(()), |found| is_for(name, &found.hosts, host))
    }

    /// The same of all secrets that somebody names in what they save.
    pub(crate) async fn bind_secrets(&self, caller: &Caller, names: &[String], host: &str) -> Result<(), ToolError> {
        refuse_names(caller, names)?;
        for name in names {
            self.bind_secret(&caller.scope, name, host).await?;
        }
        Ok(())
    }

    /// Refuses secrets that do not belong to a host yet: what is only tried binds nothing.
    pub(crate) async fn refuse_unbound_secrets(
        &self,
        caller: &Caller,
        names: &[String],
        host: &str,
    ) -> Result<(), ToolError> {
        refuse_names(caller, names)?;
        for name in names {
            let found = self.store.secret(&caller.scope, name).await?;
            found.map_or(Ok(()), |found| is_for(name, &found.hosts, host))?;
        }
        Ok(())
    }

    /// The value of a secret that is about to be sent to a host.
    pub(crate) async fn secret_for(&self, scope: &Scope, name: &str, host: &str) -> Result<String, ToolError> {
        self.bind_secret(scope, name, host).await?;
        let unset = || {
            let message = format!("there is no secret `{name}`; set it with `haft secret set {name}`");
            ToolError { recoverable: false, ..ToolError::new(ErrorCode::Unavailable, message) }
        };
        let found = self.store.secret(scope, name).await?.ok_or_else(unset)?;
        // Invariant: a secret is opened only for one of its hosts.
        is_for(name, &found.hosts, host)?;
        let value = self.key.open(&sealed_as(scope, name), &found.sealed)?;
        if self.is_noted_now(&sealed_as(scope, name))
            && let Err(error) = self.store.note_use_of_secret(scope, name).await
        {
            tracing::warn!(%error, "the use of a secret could not be noted");
        }
        Ok(value)
    }
}

fn view(secret: SealedSecret, users: &[(String, String)]) -> SecretView {
    let mut used_by: Vec<String> =
        users.iter().filter(|(_, text)| names_secret(text, &secret.name)).map(|(user, _)| user.clone()).collect();
    used_by.sort_unstable();
    used_by.dedup();
    let hosts = listed(&secret.hosts);
    SecretView { name: secret.name, hosts, set_at: secret.created_at, last_used_at: secret.last_used_at, used_by }
}

/// Whether a text has `secret:NAME` in it, and not the name of a longer one.
fn names_secret(text: &str, name: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    text.split("secret:").skip(1).any(|rest| rest.strip_prefix(name).is_some_and(is_end))
}

/// Refuses whoever names secrets and may not use any.
pub(crate) fn refuse_names(caller: &Caller, names: &[String]) -> Result<(), ToolError> {
    let needed = Permission::SecretsUse.word();
    if names.is_empty() || caller.permissions.allow(needed) {
        return Ok(());
    }
    let message = format!("{} may not use secrets: that needs `{needed}`", caller.name);
    Err(ToolError::new(ErrorCode::Forbidden, message))
}

/// The host of an address, as secrets name it.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.trim_end_matches('.').to_owned()
}

/// Whether a secret can have this name.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

fn sealed_as(scope: &Scope, name: &str) -> String {
    format!("{}/{name}", scope.tenant())
}

fn listed(hosts: &str) -> Vec<String> {
    hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

fn is_for(name: &str, hosts: &str, host: &str) -> Result<(), ToolError> {
    if listed(hosts).iter().any(|own| own == host) {
        return Ok(());
    }
    let owner = if hosts.is_empty() { "no host yet; save a tool with it, or set its hosts" } else { hosts };
    let message = format!("the secret `{name}` may not be sent to `{host}`; it belongs to {owner}");
    Err(ToolError::new(ErrorCode::Forbidden, message))
}

#[cfg(test)]
mod tests {
    use super::names_secret;

    #[test]
    fn a_secret_is_named_by_its_whole_name() {
        for text in ["Bearer {{secret:TOKEN}}", "secret:TOKEN", "a secret:TOKEN_2 secret:TOKEN"] {
            assert!(names_secret(text, "TOKEN"), "{text}");
        }
        for text in ["{{secret:TOKEN_2}}", "{{secret:MY_TOKEN}}", "TOKEN", ""] {
            assert!(!names_secret(text, "TOKEN"), "{text}");
        }
    }
}

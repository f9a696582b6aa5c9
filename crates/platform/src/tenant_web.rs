//! What a tenant may reach: the public web, what the operator allows everybody, and what is allowed to that tenant.

use std::{sync::Arc, time::Duration};

use haft_runtime::{ErrorCode, Scope, ToolError};
use haft_sandbox::web::{AllowRemedy, AllowedHost, FetchLimits, WebClient, WebRules};

use crate::{Platform, platform::mistake};

/// The setting of a tenant that names what it may reach although that is not public, as a JSON list.
const ALLOW: &str = "web.allow";

/// The web as each tenant may reach it.
#[derive(Clone)]
pub struct TenantWeb {
    platform: Arc<Platform>,
    /// What everybody may reach, and how.
    everybody: Arc<WebClient>,
}

impl TenantWeb {
    /// Of tenants who all may reach what this client does.
    pub fn new(platform: Arc<Platform>, everybody: WebClient) -> Self {
        Self { platform, everybody: Arc::new(everybody) }
    }

    /// What everybody may reach, whatever their tenant.
    pub fn everybody(&self) -> &WebClient {
        &self.everybody
    }

    /// Which addresses a tenant may reach.
    pub async fn rules(&self, scope: &Scope) -> Result<WebRules, ToolError> {
        let mut rules = self.everybody.rules().clone();
        rules.remedy = AllowRemedy::Tenant(self.platform.tenant_of(scope).await?.slug);
        for allowed in self.platform.allowed_hosts(scope).await? {
            // What cannot be read allows nothing.
            rules.allowed.extend(allowed.parse::<AllowedHost>());
        }
        Ok(rules)
    }

    /// What sends the requests of a tenant.
    pub async fn client(&self, scope: &Scope) -> Result<Arc<WebClient>, ToolError> {
        let rules = self.rules(scope).await?;
        Ok(Arc::new(self.everybody.beside(rules, self.everybody.limits())))
    }

    /// The same for a server with these rules, which may be silent for so long.
    pub fn patient_client(&self, rules: WebRules, silence: Duration) -> WebClient {
        self.everybody.beside(rules, FetchLimits { silence, ..self.everybody.limits() })
    }
}

impl Platform {
    /// What a tenant may reach although it is not public.
    pub async fn allowed_hosts(&self, scope: &Scope) -> Result<Vec<String>, ToolError> {
        let kept = self.store.tenant_setting(scope, ALLOW).await?;
        kept.as_deref().map_or(Ok(Vec::new()), listed)
    }

    /// Allows a tenant to reach hosts although they are not public, and others no longer. Says what is allowed then.
    pub async fn allow_hosts(
        &self,
        scope: &Scope,
        allow: &[String],
        disallow: &[String],
    ) -> Result<Vec<String>, ToolError> {
        let written = |host: &String| host.parse::<AllowedHost>().map(|host| host.to_string());
        let unreadable = |err: haft_sandbox::web::AllowedHostError| mistake(err.to_string());
        let allow = allow.iter().map(written).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        let disallow = disallow.iter().map(written).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        loop {
            let before = self.store.tenant_setting(scope, ALLOW).await?;
            let mut hosts = before.as_deref().map_or(Ok(Vec::new()), listed)?;
            if let Some(unknown) = disallow.iter().find(|host| !hosts.contains(host)) {
                return Err(mistake(format!("`{unknown}` was not allowed; allowed: {}", told(&hosts))));
            }
            hosts.retain(|host| !disallow.contains(host));
            hosts.extend(allow.iter().filter(|host| !hosts.contains(host)).cloned().collect::<Vec<_>>());
            let value = serde_json::to_string(&hosts).unwrap_or_default();
            if self.store.change_tenant_setting(scope, (ALLOW, before.as_deref()), &value).await? {
                return Ok(hosts);
            }
        }
    }
}

fn told(hosts: &[String]) -> String {
    if hosts.is_empty() { "nothing".to_owned() } else { hosts.join(", ") }
}

fn listed(kept: &str) -> Result<Vec<String>, ToolError> {
    let damaged = |err| ToolError::new(ErrorCode::Internal, format!("the setting `{ALLOW}` cannot be read: {err}"));
    serde_json::from_str(kept).map_err(damaged)
}

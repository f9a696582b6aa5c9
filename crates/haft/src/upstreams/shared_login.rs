//! The one login at a server of the settings, which whoever uses the settings shares.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use futures_util::future::BoxFuture;
use haft_mcp::{ServerLogins, UpstreamLogin};
use haft_platform::{LoginAt, LoginHolder, LoginPerson, Platform};
use haft_runtime::{Caller, Scope, ToolError};
use haft_sandbox::web::WebClient;
use haft_store::Store;

use crate::{
    house,
    logins::KeptLogin,
    master_key,
    settings::{McpServer, Settings, mcp::Reached},
};

/// Where the logins at servers of the settings are kept. The key that seals them is read, or made, when one is needed.
pub(crate) struct SettingsLogins {
    store: Store,
    scope: Scope,
    platform: OnceLock<Arc<Platform>>,
}

impl SettingsLogins {
    /// Of whoever a scope is.
    pub(crate) fn new(store: &Store, scope: &Scope) -> Arc<Self> {
        Arc::new(Self { store: store.clone(), scope: scope.clone(), platform: OnceLock::new() })
    }

    /// The same where everything is there already.
    pub(crate) fn with(platform: &Arc<Platform>, scope: &Scope) -> Arc<Self> {
        let logins = Self::new(platform.store(), scope);
        logins.platform.get_or_init(|| platform.clone());
        logins
    }

    /// Who keeps them.
    pub(crate) fn platform(&self, settings: &Settings) -> Result<Arc<Platform>> {
        if let Some(platform) = self.platform.get() {
            return Ok(platform.clone());
        }
        let platform = Arc::new(Platform::new(self.store.clone(), house::whole(), master_key::master_key(settings)?));
        Ok(self.platform.get_or_init(|| platform).clone())
    }

    /// The tenant that they are kept for.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The login at the server with this name and address.
    pub(crate) fn kept(&self, settings: &Settings, (name, url): (&str, &str)) -> Result<KeptLogin> {
        // No tenant's server has a space in its name.
        let server = format!("{name} {url}");
        let at = LoginAt { scope: self.scope.clone(), server, holder: LoginHolder::Tenant };
        Ok(KeptLogin::new(&self.platform(settings)?, at))
    }

    /// The same as its requests use it; `None` where there is no key that could open it.
    pub(super) fn login(
        &self,
        settings: &Settings,
        (name, url): (&str, &str),
        client: &Arc<WebClient>,
    ) -> Option<Arc<UpstreamLogin>> {
        let kept = self.kept(settings, (name, url)).ok()?;
        Some(UpstreamLogin::new(client.clone(), url, Arc::new(kept)))
    }
}

/// Who logs in at a server of the settings.
pub(crate) fn owner() -> LoginPerson {
    LoginPerson { person: "owner".to_owned(), sign_in: String::new() }
}

/// Whether somebody can log in at a server: it runs elsewhere, and its entry names no token.
pub(crate) fn can_log_in(server: &McpServer) -> bool {
    match &server.reached {
        Reached::Url { headers, .. } => !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")),
        Reached::Command { .. } | Reached::Unknown { .. } => false,
    }
}

/// Everybody shares what the settings have.
pub(super) struct SharedLogin;

impl ServerLogins for SharedLogin {
    fn person<'a>(&'a self, _caller: &'a Caller) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

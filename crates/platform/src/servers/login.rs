//! What the definition of a server says of logging in there.

use haft_runtime::{Caller, Scope, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ServerDefinition, ServerReach};
use crate::{Platform, authored::placeholder, platform::mistake, secrets::refuse_names};

/// The most scopes, and how long each may be.
const MOST_SCOPES: usize = 50;
const LONGEST: usize = 200;

/// How people log in at a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerLogin {
    /// The client that was registered for haft by hand; without it haft describes or registers itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret, as `{{secret:NAME}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to ask for; what the server wants without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Whether each person has a login of their own, or one is used for the whole tenant.
    #[serde(default, rename = "for", skip_serializing_if = "LoginFor::is_person")]
    pub whose: LoginFor,
}

/// Whose login is used at a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoginFor {
    /// That of whoever asks.
    #[default]
    Person,
    /// One for everybody in the tenant.
    Tenant,
}

impl LoginFor {
    fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

impl ServerLogin {
    /// Whether it says nothing.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.client_id.as_ref().is_some_and(|id| id.is_empty() || id.contains(char::is_control)) {
            return Err(mistake("`oauth.clientId` is no id of a client"));
        }
        if self.client_secret.is_some() && (self.client_id.is_none() || self.secret().is_none()) {
            return Err(mistake("`oauth.clientSecret` is written as `{{secret:NAME}}`, beside `oauth.clientId`"));
        }
        let fits = |scope: &String| {
            (1..=LONGEST).contains(&scope.len()) && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
        };
        if self.scopes.len() > MOST_SCOPES || !self.scopes.iter().all(fits) {
            return Err(mistake(format!("`oauth.scopes` are at most {MOST_SCOPES} words without spaces")));
        }
        Ok(())
    }

    /// The name of the secret that haft shows there.
    fn secret(&self) -> Option<&str> {
        self.client_secret.as_deref().and_then(placeholder::only)
    }
}

impl ServerDefinition {
    /// How people log in there; `None` where nobody can: it is started here, or sent a token that its entry names.
    pub fn login(&self) -> Option<&ServerLogin> {
        match &self.reach {
            ServerReach::Http { headers, oauth, .. } => {
                let sends_token = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                (!sends_token).then_some(oauth)
            }
            ServerReach::Stdio(_) => None,
        }
    }
}

impl Platform {
    /// Refuses whoever names a secret for logging in and may not use any.
    pub(super) fn check_login(caller: &Caller, server: &ServerDefinition) -> Result<(), ToolError> {
        let name = server.login().and_then(ServerLogin::secret).map(str::to_owned);
        refuse_names(caller, name.as_slice())
    }

    /// What haft is at an authorization server: an id, and a secret that may be sent to this host.
    pub async fn login_client(
        &self,
        scope: &Scope,
        login: &ServerLogin,
        host: &str,
    ) -> Result<Option<(String, Option<String>)>, ToolError> {
        let Some(id) = login.client_id.clone() else { return Ok(None) };
        let secret = match login.secret() {
            Some(name) => Some(self.secret_for(scope, name, host).await?),
            None => None,
        };
        Ok(Some((id, secret)))
    }
}

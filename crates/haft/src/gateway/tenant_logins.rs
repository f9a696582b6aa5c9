//! Logging in at the upstream servers of a tenant: each person for themselves, or one for all.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use haft_mcp::{EndpointLogin, LoginAnswer, LoginWish, ServerLogins, UpstreamLogin};
use haft_platform::{
    LoginAt, LoginFor, LoginHolder, LoginPerson, Permission, Platform, ServerDefinition, ServerLogin, ServerReach,
};
use haft_runtime::{Caller, ErrorCode, Scope, ToolError};
use haft_sandbox::web::WebClient;
use haft_server::{LoginLink, LoginReturn};

use super::tenant_server::ServerHost;
use crate::logins::{KeptLogin, LoginPlace, taken};

/// Who logs in at one server of a tenant.
pub(super) struct TenantLogins {
    platform: Arc<Platform>,
    scope: Scope,
    name: String,
    url: String,
    whose: LoginFor,
}

impl TenantLogins {
    /// Those of a server where somebody can log in.
    pub(super) fn of(platform: &Arc<Platform>, scope: &Scope, server: &ServerDefinition) -> Option<Self> {
        let (ServerReach::Http { url, .. }, Some(login)) = (&server.reach, server.login()) else { return None };
        let (platform, scope, name) = (platform.clone(), scope.clone(), server.name.clone());
        Some(Self { platform, scope, name, url: url.clone(), whose: login.whose })
    }

    /// What the requests of a person are sent with, or of everybody.
    pub(super) fn endpoint(&self, client: &Arc<WebClient>, person: Option<String>) -> EndpointLogin {
        let holder = match (self.whose, person) {
            (LoginFor::Tenant, _) => LoginHolder::Tenant,
            (LoginFor::Person, Some(person)) => LoginHolder::Person(person),
            (LoginFor::Person, None) => return EndpointLogin::Nobody,
        };
        EndpointLogin::Of(UpstreamLogin::new(client.clone(), &self.url, Arc::new(self.kept(holder))))
    }

    fn kept(&self, holder: LoginHolder) -> KeptLogin {
        let at = LoginAt { scope: self.scope.clone(), server: self.name.clone(), holder };
        KeptLogin::new(&self.platform, at)
    }

    /// Whose login a caller uses; `None` where each person has one and nobody is behind the caller.
    async fn holder(&self, caller: &Caller) -> Result<Option<LoginHolder>, ToolError> {
        Ok(match self.whose {
            LoginFor::Tenant => Some(LoginHolder::Tenant),
            LoginFor::Person => self.platform.person_behind(caller).await?.map(LoginHolder::Person),
        })
    }

    /// Whether a caller has a login there.
    pub(super) async fn has_login(&self, caller: &Caller) -> Result<bool, ToolError> {
        match self.holder(caller).await? {
            Some(holder) => self.kept(holder).is_usable(&self.url).await,
            None => Ok(false),
        }
    }

    /// The login that a caller may begin and give up.
    async fn own(&self, caller: &Caller) -> Result<KeptLogin, ToolError> {
        let manage = Permission::McpManage.word();
        if self.whose == LoginFor::Tenant && !caller.permissions.allow(manage) {
            let message = format!("`{}` has one login for the whole tenant, which needs `{manage}`", self.name);
            return Err(ToolError::new(ErrorCode::Forbidden, message));
        }
        let nobody = || {
            let message = format!("each person logs in at `{}` for themselves, and this key has no person", self.name);
            ToolError::new(ErrorCode::Forbidden, message)
        };
        self.holder(caller).await?.map(|holder| self.kept(holder)).ok_or_else(nobody)
    }
}

impl ServerLogins for TenantLogins {
    fn person<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(async move {
            let Some(LoginHolder::Person(person)) = self.holder(caller).await? else { return Ok(None) };
            let has_login = self.kept(LoginHolder::Person(person.clone())).is_usable(&self.url).await?;
            Ok(has_login.then_some(person))
        })
    }
}

impl ServerHost {
    /// Begins a login of a caller, who comes back to an address of ours.
    pub(super) async fn begin_login(
        &self,
        caller: &Caller,
        name: &str,
        back: &LoginReturn,
    ) -> Result<LoginLink, ToolError> {
        let server = self.platform.server(&caller.scope, name).await?.definition;
        let (logins, login) = self.logins(caller, &server)?;
        let own = logins.own(caller).await?;
        let who = self.who(caller, back.sign_in.as_deref()).await?;
        let place = self.login_place(caller, &logins).await?;
        let wish = async |host: &str| {
            Ok(LoginWish {
                client: self.platform.login_client(&caller.scope, &login, host).await?,
                scopes: login.scopes.clone(),
                redirect_uri: back.address.clone(),
                document: back.document.clone(),
            })
        };
        let (url, expires_at) = own.begin(&who, &place, wish).await?;
        Ok(LoginLink { url, expires_at })
    }

    /// Ends a login that its person has come back from. Says at which server.
    pub(super) async fn finish_login(
        &self,
        caller: &Caller,
        sign_in: &str,
        answer: &LoginAnswer,
    ) -> Result<String, ToolError> {
        let who = self.who(caller, Some(sign_in)).await?;
        let (at, attempt) = taken(&self.platform, &caller.scope, &who, answer).await?;
        let server = self.platform.server(&caller.scope, &at.server).await?.definition;
        let (logins, _) = self.logins(caller, &server)?;
        // What the person may do has to hold now, too, and the login be for whom it was begun.
        if logins.holder(caller).await?.as_ref() != Some(&at.holder) {
            let message = format!("the entry of `{}` has changed since; begin again", at.server);
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        let place = self.login_place(caller, &logins).await?;
        logins.own(caller).await?.finish(&place, attempt, answer).await?;
        Ok(at.server)
    }

    /// Gives the login of a caller up; `false` when there was none.
    pub(super) async fn end_login(&self, caller: &Caller, name: &str) -> Result<bool, ToolError> {
        let server = self.platform.server(&caller.scope, name).await?.definition;
        let (logins, _) = self.logins(caller, &server)?;
        let place = self.login_place(caller, &logins).await?;
        logins.own(caller).await?.end(&place.client).await
    }

    fn logins(&self, caller: &Caller, server: &ServerDefinition) -> Result<(TenantLogins, ServerLogin), ToolError> {
        let impossible = || {
            let message = format!("nobody logs in at `{}`: it is sent what its entry names", server.name);
            ToolError::new(ErrorCode::Conflict, message)
        };
        let login = server.login().cloned().ok_or_else(impossible)?;
        let logins = TenantLogins::of(&self.platform, &caller.scope, server).ok_or_else(impossible)?;
        Ok((logins, login))
    }

    async fn who(&self, caller: &Caller, sign_in: Option<&str>) -> Result<LoginPerson, ToolError> {
        let nobody = || {
            let message = "only people log in, and this key has nobody behind it; use a key that a person made";
            ToolError::new(ErrorCode::Forbidden, message)
        };
        let person = self.platform.person_behind(caller).await?.ok_or_else(nobody)?;
        Ok(LoginPerson { person, sign_in: sign_in.unwrap_or_default().to_owned() })
    }

    async fn login_place(&self, caller: &Caller, logins: &TenantLogins) -> Result<LoginPlace, ToolError> {
        let client = self.web.client(&caller.scope).await?;
        Ok(LoginPlace { name: logins.name.clone(), url: logins.url.clone(), client })
    }
}

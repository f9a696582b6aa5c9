//! Signing in by OpenID Connect: a browser goes to a provider, comes back with a code, and the account that the code stands for
//! is somebody here or is not.

mod id_token;
mod provider;

use std::{sync::Arc, time::Duration};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::{Url, WebClient};
use haft_store::{OidcAccount, OidcRequest, TenantRecord};

use crate::{Platform, Role, platform::not_found, random, sign_in::after};
use id_token::IdClaims;
use provider::ProviderClient;

/// How long somebody may take at the provider.
const AWAY_FOR: Duration = Duration::from_secs(15 * 60);
/// How long the page that somebody comes back to may take to sign them in.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// A provider as the operator describes it.
#[derive(Clone)]
pub struct OidcProvider {
    /// What it is called in addresses here.
    pub name: String,
    /// What people read on its button.
    pub label: String,
    /// What it calls itself, which is where it is.
    pub issuer: Url,
    /// The same, as it was written.
    pub written_issuer: String,
    /// What it knows haft by.
    pub client_id: String,
    /// What haft proves that with.
    pub client_secret: Option<String>,
    /// What it is asked for.
    pub scopes: Vec<String>,
    /// Whether it may be at an address that is not public.
    pub private: bool,
    /// Who may come whom nobody has added.
    pub join: Option<OidcJoin>,
}

/// People whom nobody has to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcJoin {
    /// The tenant that they join.
    pub tenant: String,
    /// What they are there.
    pub role: Role,
    /// The hosts of their mail addresses.
    pub domains: Vec<String>,
}

/// A browser that is about to go to a provider.
#[derive(Clone, Copy, Debug)]
pub struct OidcWish<'a> {
    /// Which provider.
    pub provider: &'a str,
    /// What the browser holds in a cookie.
    pub browser: &'a str,
    /// Where it comes back to.
    pub back: &'a str,
    /// The tenant that its person wants to look at; the first one by default.
    pub tenant: Option<&'a str>,
    /// The page that its person wants to see then.
    pub page: &'a str,
}

/// A browser that comes back, with what the provider gave it.
#[derive(Clone, Copy, Debug)]
pub struct OidcAnswer<'a> {
    /// Which provider.
    pub provider: &'a str,
    /// What the browser holds in a cookie.
    pub browser: &'a str,
    /// Where it came back to.
    pub back: &'a str,
    /// What haft gave it on its way.
    pub state: &'a str,
    /// What becomes an ID token; or why there is none.
    pub code: Result<&'a str, &'a str>,
    /// Who the provider says it is.
    pub issuer: Option<&'a str>,
}

/// Every provider, and who comes from there.
pub struct OidcSignIn {
    platform: Arc<Platform>,
    providers: Vec<ProviderClient>,
}

impl OidcSignIn {
    /// With these providers, each asked by a client like this one.
    pub fn new(platform: Arc<Platform>, providers: Vec<OidcProvider>, web: &WebClient) -> Self {
        let providers = providers.into_iter().map(|provider| ProviderClient::new(provider, web)).collect();
        Self { platform, providers }
    }

    /// The providers that people may choose.
    pub fn providers(&self) -> impl Iterator<Item = &OidcProvider> {
        self.providers.iter().map(|client| &client.provider)
    }

    fn provider(&self, name: &str) -> Result<&ProviderClient, ToolError> {
        let found = self.providers.iter().find(|client| client.provider.name == name);
        found.ok_or_else(|| not_found(&format!("provider `{name}` to sign in with")))
    }

    /// The address at the provider that a browser goes to.
    pub async fn begin(&self, wish: &OidcWish<'_>) -> Result<String, ToolError> {
        let client = self.provider(wish.provider)?;
        let state = random::text(random::SECRET)?;
        let address = client.address(&state, &self.secrets(&state), wish.back).await?;
        let request = OidcRequest {
            id: random::hash(&state),
            provider: wish.provider.to_owned(),
            browser: random::hash(wish.browser),
            tenant_slug: wish.tenant.map(str::to_owned),
            page: wish.page.to_owned(),
            expires_at: after(AWAY_FOR),
        };
        self.platform.store.add_oidc_request(&self.platform.house, &request).await?;
        Ok(address)
    }

    /// Who comes back: the code of a link that signs them in at once, and the page that they wanted to see.
    pub async fn finish(&self, answer: &OidcAnswer<'_>) -> Result<(String, String), ToolError> {
        let client = self.provider(answer.provider)?;
        let (state, browser) = (random::hash(answer.state), random::hash(answer.browser));
        let request = self.platform.store.use_oidc_request(&self.platform.house, &state, &browser).await?;
        let request = request.filter(|request| request.provider == answer.provider).ok_or_else(|| {
            let message = "this sign-in was begun in another browser, was used before, or took longer than 15 minutes; \
                           sign in again";
            refused(message)
        })?;
        let label = &client.provider.label;
        if answer.issuer.is_some_and(|issuer| issuer != client.provider.written_issuer) {
            return Err(refused(format!("the answer did not come from {label}; sign in again")));
        }
        let code = answer.code.map_err(|why| refused(format!("{label} has not signed you in: {}", short(why))))?;
        let claims = client.claims(code, answer.back, &self.secrets(answer.state)).await?;
        let person = self.person(&client.provider, &claims).await?;
        let tenants = self.platform.store.tenants_of(&self.platform.house, &person).await?;
        let wanted = |(found, _): &&(TenantRecord, String)| {
            request.tenant_slug.as_deref().is_none_or(|wanted| found.slug == wanted)
        };
        let (tenant, _) = tenants.iter().find(wanted).ok_or_else(|| not_a_member(claims.email.as_deref()))?;
        let link = self.platform.make_brief_link(&tenant.scope, &person, BACK_WITHIN).await?;
        Ok((link, request.page))
    }

    /// What only this server knows of a browser that is away. It follows from the state, so that nobody keeps it.
    fn secrets(&self, state: &str) -> RequestSecrets {
        let derived = |purpose: &str| random::hex(&self.platform.key.derived(purpose, state.as_bytes()));
        RequestSecrets { verifier: derived("oidc verifier"), nonce: derived("oidc nonce") }
    }

    /// Who an account is: whoever it is linked with, else whoever has its verified mail address and no account there yet,
    /// else somebody new where the operator lets them join.
    async fn person(&self, provider: &OidcProvider, claims: &IdClaims) -> Result<String, ToolError> {
        let (store, house) = (&self.platform.store, &self.platform.house);
        let account = OidcAccount { issuer: &provider.written_issuer, subject: &claims.sub };
        if let Some(person) = store.person_of_account(house, account).await? {
            return Ok(person);
        }
        let email = verified_email(provider, claims)?;
        let person = match store.person_by_email(house, &email).await? {
            Some(known) => known.id,
            None => self.join(provider, claims, &email).await?,
        };
        if store.link_account(house, account, &person).await? {
            tracing::info!(%person, provider = %provider.name, "an account was linked");
            return Ok(person);
        }
        // Two browsers may have come at once, both right.
        match store.person_of_account(house, account).await? {
            Some(linked) if linked == person => Ok(person),
            Some(_) | None => Err(ToolError::new(
                ErrorCode::Forbidden,
                format!(
                    "another account of {} is linked with {email} already; if that one is gone, ask the operator to run \
                     `haft admin person unlink {email}`",
                    provider.label
                ),
            )),
        }
    }

    /// Makes somebody of a new address a member, where the operator said so. Whoever was known here before and was removed
    /// does not come back by themselves.
    async fn join(&self, provider: &OidcProvider, claims: &IdClaims, email: &str) -> Result<String, ToolError> {
        let host = email.rsplit('@').next().unwrap_or_default();
        let join = provider.join.as_ref().filter(|join| join.domains.iter().any(|domain| domain == host));
        let join = join.ok_or_else(|| not_a_member(Some(email)))?;
        let tenant = self.platform.tenant(&join.tenant).await?;
        let person = self.platform.have_person(email).await?;
        self.platform.have_member(&tenant.scope, &person.id, join.role).await?;
        let name: String = claims.name.as_deref().unwrap_or_default().trim().chars().take(100).collect();
        if !name.is_empty() && !name.contains(char::is_control) {
            self.platform.store.name_person(&tenant.scope, &person.id, &name).await?;
        }
        Ok(person.id)
    }
}

impl Platform {
    /// Forgets with which accounts somebody signs in, so that their next one is linked anew.
    pub async fn unlink_accounts(&self, email: &str) -> Result<bool, ToolError> {
        let person = self.store.person_by_email(&self.house, &email.trim().to_lowercase()).await?;
        let person = person.ok_or_else(|| not_found(&format!("person with the address `{email}`")))?;
        Ok(self.store.unlink_accounts(&self.house, &person.id).await?)
    }
}

/// What belongs to one browser that is away.
struct RequestSecrets {
    /// What the code is bound to.
    verifier: String,
    /// What the ID token is bound to.
    nonce: String,
}

/// The mail address that somebody is matched by: only one that the provider has verified, and none of this machine itself.
fn verified_email(provider: &OidcProvider, claims: &IdClaims) -> Result<String, ToolError> {
    let label = &provider.label;
    let unknown = |why: &str| ToolError::new(ErrorCode::Forbidden, format!("{label} {why}"));
    let email = claims.email.as_deref().map(|email| email.trim().to_lowercase()).filter(|email| !email.is_empty());
    let email = email
        .ok_or_else(|| unknown("does not tell your mail address; ask the operator to add `email` to its scopes"))?;
    if !claims.email_verified || email.ends_with("@localhost") {
        return Err(unknown(&format!("has not verified the address {}, so it cannot be used here", short(&email))));
    }
    Ok(email)
}

fn not_a_member(email: Option<&str>) -> ToolError {
    let whom = email.map_or_else(|| "your address".to_owned(), short);
    let message = format!("you are not a member here; ask an administrator to add {whom}");
    ToolError::new(ErrorCode::Forbidden, message)
}

fn refused(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::Unauthorized, message)
}

/// What somebody else wrote, as far as it is shown.
fn short(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

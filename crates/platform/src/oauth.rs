//! OAuth: people let programs in, for themselves and for a part of what they may do. A program shows a code once, and gets
//! tokens for it; every token hangs on the person's yes and ends with it.

pub(crate) mod client;
mod device;

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use haft_runtime::{Caller, CallerId, CallerKind, Scope, Source, ToolError, Via};
use haft_sandbox::web::Url;
use haft_store::{ConsentRecord, NewConsent, NewOAuthToken, OAuthTokenKind, OAuthTokenRecord};
use jiff::Timestamp;
use ring::digest;
use schemars::JsonSchema;
use serde::Serialize;
use subtle::ConstantTimeEq;

use crate::{
    CallerIdentity, KeyScope, Permission, Platform, Role, SignInRecord, TenantView, platform::not_found, random,
    roles::granted, sign_in::after,
};
pub use client::{ClientDescription, OAuthClient};
pub use device::{DEVICE_GRANT, DeviceView, DeviceWish, GivenDeviceCode};

/// How long a code waits to be used, and how long tokens last.
const CODE_LASTS: Duration = Duration::from_secs(60);
const ACCESS_LASTS: Duration = Duration::from_secs(3600);
const REFRESH_LASTS: Duration = Duration::from_secs(30 * 24 * 3600);
/// By what an access token is told from other credentials, and a token that fetches new ones from both.
const ACCESS: &str = "hafta_";
const REFRESH: &str = "haftr_";

/// Why a program is not let in, as OAuth says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthError {
    /// The word for programs.
    pub code: &'static str,
    /// The sentence for people.
    pub description: String,
}

impl OAuthError {
    /// With a word of OAuth.
    pub fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { code, description: description.into() }
    }
}

impl From<ToolError> for OAuthError {
    fn from(error: ToolError) -> Self {
        Self::new("temporarily_unavailable", error.message)
    }
}

impl From<haft_store::StoreError> for OAuthError {
    fn from(error: haft_store::StoreError) -> Self {
        ToolError::from(error).into()
    }
}

/// What a program asks a person for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentWish<'a> {
    /// Who asks.
    pub client: &'a OAuthClient,
    /// Where the code goes.
    pub redirect_uri: &'a str,
    /// The hash of what the program will show with the code.
    pub challenge: &'a str,
    /// What the program may do.
    pub scopes: &'a [KeyScope],
    /// The address that the tokens are for.
    pub resource: &'a str,
}

/// Where a program may be let in.
#[derive(Clone, Debug)]
pub struct ConsentPlace {
    /// The tenant.
    pub tenant: TenantView,
    /// The names of its workspaces.
    pub workspaces: Vec<String>,
}

/// What a program shows for tokens.
#[derive(Clone, Copy, Debug)]
pub struct CodeExchange<'a> {
    /// The code.
    pub code: &'a str,
    /// Which program.
    pub client_id: &'a str,
    /// Where the code was sent to.
    pub redirect_uri: &'a str,
    /// What the challenge was made of.
    pub verifier: &'a str,
    /// The address that the tokens are for, where it says so again.
    pub resource: Option<&'a str>,
}

/// What a program gets.
#[derive(Clone, Debug, Serialize)]
pub struct GivenTokens {
    /// Comes with requests.
    pub access_token: String,
    /// How it comes.
    pub token_type: &'static str,
    /// For how many seconds.
    pub expires_in: u64,
    /// Fetches new ones, once.
    pub refresh_token: String,
    /// What they are for.
    pub scope: String,
}

/// A program that somebody let in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentView {
    /// What it is ended by.
    pub id: String,
    /// The program.
    pub client: String,
    /// What it calls itself.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Since when.
    pub since: Timestamp,
}

impl Platform {
    /// Where somebody may let a program in: each of their tenants, with its workspaces.
    pub async fn consent_places(&self, person: &str) -> Result<Vec<ConsentPlace>, ToolError> {
        let mut places = Vec::new();
        for (tenant, _) in self.store.tenants_of(&self.house, person).await? {
            let workspaces = self.store.workspaces(&tenant.scope).await?;
            let workspaces = workspaces.into_iter().map(|workspace| workspace.name).collect();
            places.push(ConsentPlace { tenant: TenantView::from(&tenant), workspaces });
        }
        Ok(places)
    }

    /// A person lets a program in, in one of their tenants and there in a workspace: the code for it.
    pub async fn consent(
        &self,
        sign_in: &SignInRecord,
        (tenant, workspace): (&str, Option<&str>),
        wish: &ConsentWish<'_>,
    ) -> Result<String, ToolError> {
        let scope = self.consent_scope(sign_in, (tenant, workspace)).await?;
        let code = random::text(random::SECRET)?;
        let consent = new_consent(sign_in, wish.client, wish.scopes, wish.resource)?;
        let kept = NewOAuthToken {
            id: random::hash(&code),
            kind: OAuthTokenKind::Code,
            redirect_uri: Some(wish.redirect_uri.to_owned()),
            challenge: Some(wish.challenge.to_owned()),
            expires_at: after(CODE_LASTS),
        };
        self.store.add_consent(&scope, &consent, &kept).await?;
        Ok(code)
    }

    /// Where a program is let in: one of the person's tenants, and there a workspace.
    async fn consent_scope(
        &self,
        sign_in: &SignInRecord,
        (tenant, workspace): (&str, Option<&str>),
    ) -> Result<Scope, ToolError> {
        let own = self.store.tenants_of(&self.house, &sign_in.person).await?;
        let wanted = own.into_iter().find(|(found, _)| found.slug == tenant);
        let (tenant, _) = wanted.ok_or_else(|| not_found(&format!("tenant `{tenant}`")))?;
        match workspace {
            Some(name) => Ok(self.workspace_named(&tenant.scope, name).await?.scope),
            None => Ok(tenant.scope),
        }
    }

    /// Tokens for a code. A code that comes a second time was stolen on one of its ways: everything that hangs on it ends.
    pub async fn exchange_code(&self, shown: &CodeExchange<'_>) -> Result<GivenTokens, OAuthError> {
        let token = self.token(shown.code, OAuthTokenKind::Code).await?;
        let is_same = |kept: &str, given: &str| bool::from(kept.as_bytes().ct_eq(given.as_bytes()));
        let challenge = challenge_of(shown.verifier);
        let fits = is_same(&token.consent.client, shown.client_id)
            && token.redirect_uri.as_deref().is_some_and(|kept| is_same(kept, shown.redirect_uri))
            && token.challenge.as_deref().is_some_and(|kept| is_same(kept, &challenge))
            && shown.resource.is_none_or(|given| same_resource(&token.consent.resource, given));
        if !fits {
            return Err(invalid_grant());
        }
        self.renew(shown.code, &token).await
    }

    /// New tokens for one that fetches them. One that comes a second time ends everything that hangs on the same yes.
    pub async fn refresh(&self, refresh: &str, client_id: &str) -> Result<GivenTokens, OAuthError> {
        let token = self.token(refresh, OAuthTokenKind::Refresh).await?;
        if token.consent.client != client_id {
            return Err(invalid_grant());
        }
        self.renew(refresh, &token).await
    }

    /// A code or token that counts.
    async fn token(&self, given: &str, kind: OAuthTokenKind) -> Result<OAuthTokenRecord, OAuthError> {
        let found = self.store.oauth_token(&self.house, &random::hash(given)).await?;
        let token = found.filter(|token| token.kind == kind).ok_or_else(invalid_grant)?;
        if token.used {
            self.store.end_consent(&self.house, &token.consent.id).await?;
            tracing::warn!(consent = %token.consent.id, client = %token.consent.client, "a code or token came twice");
            return Err(invalid_grant());
        }
        if token.expires_at <= Timestamp::now() {
            return Err(invalid_grant());
        }
        Ok(token)
    }

    async fn renew(&self, given: &str, token: &OAuthTokenRecord) -> Result<GivenTokens, OAuthError> {
        let made = |prefix: &str| random::text(random::SECRET).map(|secret| format!("{prefix}{secret}"));
        let (access, refresh) = (made(ACCESS)?, made(REFRESH)?);
        let kept = |token: &str, kind, lasts| NewOAuthToken {
            id: random::hash(token),
            kind,
            redirect_uri: None,
            challenge: None,
            expires_at: after(lasts),
        };
        let new = [
            kept(&access, OAuthTokenKind::Access, ACCESS_LASTS),
            kept(&refresh, OAuthTokenKind::Refresh, REFRESH_LASTS),
        ];
        let used = (random::hash(given), token.consent.id.as_str());
        if !self.store.exchange_oauth_token(&self.house, (&used.0, used.1), &new).await? {
            // Somebody else was quicker by a moment.
            self.store.end_consent(&self.house, &token.consent.id).await?;
            return Err(invalid_grant());
        }
        Ok(GivenTokens {
            access_token: access,
            token_type: "Bearer",
            expires_in: ACCESS_LASTS.as_secs(),
            refresh_token: refresh,
            scope: token.consent.scopes.replace(',', " "),
        })
    }

    /// Ends everything that hangs on the same yes as a token. Nothing tells whether there was one.
    pub async fn revoke(&self, given: &str) -> Result<(), ToolError> {
        if let Some(token) = self.store.oauth_token(&self.house, &random::hash(given)).await? {
            self.store.end_consent(&self.house, &token.consent.id).await?;
        }
        Ok(())
    }

    /// The programs that somebody let in, in the tenant that they look at.
    pub async fn consents(&self, caller: &Caller) -> Result<Vec<ConsentView>, ToolError> {
        let own = self.store.consents_of(&caller.scope, &caller.id.id).await?;
        let view = |consent: ConsentRecord| ConsentView {
            id: consent.id,
            client: consent.client,
            name: consent.client_name,
            scopes: consent.scopes.split(',').map(str::to_owned).collect(),
            since: consent.created_at,
        };
        Ok(own.into_iter().map(view).collect())
    }

    /// Takes one's own yes back: at the next request the program is nobody.
    pub async fn end_consent(&self, caller: &Caller, id: &str) -> Result<(), ToolError> {
        let own = self.store.consents_of(&caller.scope, &caller.id.id).await?;
        if !own.iter().any(|consent| consent.id == id) || !self.store.end_consent(&self.house, id).await? {
            return Err(not_found("such program"));
        }
        Ok(())
    }

    /// Who asks by an access token; `None` where it is none.
    pub(crate) async fn by_access_token(
        &self,
        given: &str,
        source: Source,
    ) -> Result<Option<CallerIdentity>, ToolError> {
        if !given.starts_with(ACCESS) {
            return Ok(None);
        }
        let Some(token) = self.store.oauth_token(&self.house, &random::hash(given)).await? else { return Ok(None) };
        let counts = token.kind == OAuthTokenKind::Access && token.expires_at > Timestamp::now();
        Ok(counts.then(|| self.of_consent(&token.consent, source, Some(token.expires_at))))
    }

    /// The person who let a program in, as far as the program may act for them.
    pub(crate) fn of_consent(
        &self,
        consent: &ConsentRecord,
        source: Source,
        until: Option<Timestamp>,
    ) -> CallerIdentity {
        self.saw_version(&consent.scope, consent.version);
        let wanted = consent.scopes.split(',').filter_map(KeyScope::parse).flat_map(KeyScope::permissions);
        let may: BTreeSet<Permission> = Role::parse(&consent.role).map(Role::permissions).unwrap_or_default();
        let caller = Caller {
            id: CallerId { kind: CallerKind::Person, id: consent.person.clone() },
            name: format!("{} by {}", consent.name, consent.client_name),
            scope: consent.scope.clone(),
            permissions: granted(&wanted.filter(|wanted| may.contains(wanted)).collect()),
            source,
            via: Via::default(),
        };
        let (tenant, consent) = (consent.slug.clone(), Some(consent.id.clone()));
        CallerIdentity { caller, tenant, sign_in: None, consent, key_secret: None, until }
    }
}

/// The yes of somebody who is signed in.
fn new_consent(
    sign_in: &SignInRecord,
    client: &OAuthClient,
    scopes: &[KeyScope],
    resource: &str,
) -> Result<NewConsent, ToolError> {
    let words: Vec<&str> = scopes.iter().map(|scope| scope.word()).collect();
    Ok(NewConsent {
        id: format!("oc_{}", random::text(20)?),
        person: sign_in.person.clone(),
        client: client.id.clone(),
        client_name: client.name.clone(),
        scopes: words.join(","),
        resource: resource.to_owned(),
    })
}

/// Whether two texts name the same resource; a slash at the end makes no difference.
fn same_resource(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The origin and the path of an address that tokens are asked for; `None` where it is no such address.
pub fn resource_parts(resource: &str) -> Option<(String, String)> {
    let url = Url::parse(resource).ok()?;
    let is_whole = url.query().is_none() && url.fragment().is_none();
    is_whole.then(|| (url.origin().ascii_serialization(), url.path().to_owned()))
}

/// The address of a program with an answer for it.
pub fn with_answer(address: &str, answer: &[(&str, &str)]) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    url.query_pairs_mut().extend_pairs(answer);
    Some(url.into())
}

/// What a program shows first of a secret that it shows later.
pub(crate) fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

fn invalid_grant() -> OAuthError {
    OAuthError::new("invalid_grant", "this code or token does not count here, or no longer; let the program in again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_made_as_the_standard_shows() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}

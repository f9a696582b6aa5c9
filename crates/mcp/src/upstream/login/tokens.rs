//! What a login is kept as, and how authorization servers are asked for tokens.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_sandbox::web::{
    HeaderMap, StatusCode, WebClient,
    header::{self, HeaderValue},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::fetch;

/// How long before its end a token is no longer used, at most.
const EARLY: u64 = 60;
const FORM: &str = "application/x-www-form-urlencoded";

/// How haft shows an authorization server who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ClientProof {
    #[serde(rename = "none")]
    Nothing,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// What haft is to an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) proof: ClientProof,
    /// Where people come back to.
    pub(super) redirect_uri: String,
    /// Whether it was registered for this login, and can be used for the next.
    pub(super) is_registered: bool,
}

/// Where tokens come from, and what they are for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginSource {
    /// The address of the server that they are sent to.
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: LoginClient,
}

/// A login at a server. It is kept sealed, and never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginTokens {
    pub(super) source: LoginSource,
    /// `None` once the server takes it no longer.
    pub(super) access_token: Option<String>,
    pub(super) refresh_token: Option<String>,
    /// From when on another one is fetched; `None` where nobody said.
    pub(super) refresh_at: Option<Timestamp>,
    /// The scopes that were asked for.
    pub(super) scopes: Vec<String>,
    /// Those that the server wanted beside them since.
    pub(super) missing: Vec<String>,
}

impl LoginTokens {
    /// Whether the server may still take it.
    pub fn is_usable(&self, url: &str) -> bool {
        self.source.server == url && (self.access_token.is_some() || self.refresh_token.is_some())
    }

    /// What is taken out of everything that is told.
    pub(super) fn secrets(&self) -> Vec<String> {
        let tokens = [&self.access_token, &self.refresh_token, &self.source.client.secret];
        tokens.into_iter().flatten().flat_map(|token| haft_runtime::secret_forms(token)).collect()
    }

    /// The same without tokens: only another login helps.
    pub(super) fn spent(self) -> Self {
        Self { access_token: None, refresh_token: None, refresh_at: None, ..self }
    }

    /// Takes in what an authorization server gave. One that gives no other token to refresh with lets the old one count.
    pub(super) fn with(self, given: GivenLogin) -> Self {
        let lasts = given.expires_in.map(|seconds| {
            let soon = seconds.saturating_sub(EARLY).max(seconds / 10 * 9);
            Timestamp::now().checked_add(Duration::from_secs(soon.min(u64::from(u32::MAX)))).unwrap_or(Timestamp::MAX)
        });
        Self {
            access_token: Some(given.access_token),
            refresh_token: given.refresh_token.or(self.refresh_token),
            refresh_at: lasts,
            ..self
        }
    }

    /// Asks for another token.
    pub(super) async fn refreshed(&self, client: &WebClient) -> Result<GivenLogin, TokenRefusal> {
        let token = self.refresh_token.as_deref().unwrap_or_default();
        self.source.ask(client, &[("grant_type", "refresh_token"), ("refresh_token", token)]).await
    }

    /// Tells the authorization server that the tokens are used no longer, where it wants to know.
    pub async fn revoke(&self, client: &WebClient) -> Result<(), String> {
        let Some(endpoint) = &self.source.revocation_endpoint else { return Ok(()) };
        let Some(token) = self.refresh_token.as_ref().or(self.access_token.as_ref()) else { return Ok(()) };
        let kind = if self.refresh_token.is_some() { "refresh_token" } else { "access_token" };
        let (form, headers) = self.source.client.signed(&[("token", token.as_str()), ("token_type_hint", kind)])?;
        let answer = fetch::post(client, endpoint, (FORM, form), headers).await?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(format!("it answers with HTTP {}", answer.status.as_u16()))
        }
    }
}

impl LoginSource {
    /// Asks for tokens, for this resource and no other.
    pub(super) async fn ask(&self, client: &WebClient, form: &[(&str, &str)]) -> Result<GivenLogin, TokenRefusal> {
        let mut form = form.to_vec();
        form.push(("resource", self.resource.as_str()));
        let (form, headers) = self.client.signed(&form).map_err(TokenRefusal::Failed)?;
        let answer =
            fetch::post(client, &self.token_endpoint, (FORM, form), headers).await.map_err(TokenRefusal::Failed)?;
        if answer.status == StatusCode::OK {
            let given: GivenLogin = answer.json().map_err(TokenRefusal::Failed)?;
            if !given.token_type.eq_ignore_ascii_case("bearer") {
                return Err(TokenRefusal::Failed("it gives no bearer token".to_owned()));
            }
            return Ok(given);
        }
        let said: TokenError = answer.json().unwrap_or_default();
        let why = format!("it answers with HTTP {} ({})", answer.status.as_u16(), said.word());
        let is_final = matches!(said.error.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client");
        Err(if is_final { TokenRefusal::Refused(why) } else { TokenRefusal::Failed(why) })
    }
}

impl LoginClient {
    /// A form, and headers, that show who asks.
    fn signed(&self, form: &[(&str, &str)]) -> Result<(String, HeaderMap), String> {
        let unwritable = || "the request cannot be written down".to_owned();
        let (mut form, mut headers) = (form.to_vec(), HeaderMap::new());
        let secret = self.secret.as_deref().unwrap_or_default();
        match self.proof {
            ClientProof::Basic => {
                let encoded = |text: &str| serde_urlencoded::to_string([("", text)]).map(|text| text[1..].to_owned());
                let (id, secret) = (encoded(&self.id), encoded(secret));
                let (id, secret) = (id.map_err(|_| unwritable())?, secret.map_err(|_| unwritable())?);
                let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
                let mut value = HeaderValue::from_str(&basic).map_err(|_| unwritable())?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
            ClientProof::Post => form.push(("client_secret", secret)),
            ClientProof::Nothing => {}
        }
        // Some look for it here, whatever the header says.
        form.push(("client_id", self.id.as_str()));
        Ok((serde_urlencoded::to_string(form).map_err(|_| unwritable())?, headers))
    }
}

/// What an authorization server gives.
#[derive(Deserialize)]
pub(super) struct GivenLogin {
    access_token: String,
    #[serde(default)]
    token_type: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
}

/// A number of seconds; some write it as text. Where it is none, nobody said how long.
fn seconds<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(value)?;
    Ok(value.as_u64().or_else(|| value.as_str()?.parse().ok()))
}

/// Why there are no tokens.
#[derive(Debug)]
pub(super) enum TokenRefusal {
    /// The authorization server says no.
    Refused(String),
    /// It could not be asked, or answered with nothing that helps.
    Failed(String),
}

#[derive(Default, Deserialize)]
struct TokenError {
    #[serde(default)]
    error: String,
}

impl TokenError {
    /// The word for it, if it is one.
    fn word(&self) -> &str {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let fits = !self.error.is_empty() && self.error.len() <= 40 && self.error.bytes().all(is_word);
        if fits { &self.error } else { "it does not say why" }
    }
}

//! A provider over HTTP: what it says of itself, its keys, and the ID token for a code. Everything has a limit.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::{
    BodyEnd, Bytes, FetchLimits, HeaderMap, Method, Request, StatusCode, Url, WebClient, WebError, header,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    OidcProvider, RequestSecrets,
    id_token::{ExpectedToken, IdClaims, SigningKey, TokenFault, verified},
    refused,
};
use crate::oauth::challenge_of;

/// How long a provider's word about itself and its keys is believed.
const BELIEVED: Duration = Duration::from_secs(3600);
/// How soon its keys are asked for once more, when a token is signed by another one.
const ASKED_AGAIN: Duration = Duration::from_secs(10);
/// How long one answer may take, and how large it may be.
const WITHIN: Duration = Duration::from_secs(5);
const LARGEST: usize = 256 << 10;

/// What a provider says of itself.
#[derive(Debug, Deserialize)]
struct ProviderDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// What is given for a code.
#[derive(Deserialize)]
struct CodeReply {
    id_token: Option<String>,
    access_token: Option<String>,
    error: Option<String>,
}

#[derive(Default)]
struct KnownProvider {
    document: Option<(Instant, Arc<ProviderDocument>)>,
    keys: Option<(Instant, Arc<Vec<SigningKey>>)>,
    /// When the keys were last asked for before their time.
    asked_again: Option<Instant>,
}

/// A provider, and what is known of it.
pub(super) struct ProviderClient {
    pub(super) provider: OidcProvider,
    web: WebClient,
    known: Mutex<KnownProvider>,
}

impl ProviderClient {
    /// One that is reached as this client reaches others. The port that the operator wrote counts, and its host may be a
    /// private one where the operator says so.
    pub(super) fn new(provider: OidcProvider, web: &WebClient) -> Self {
        let mut rules = web.rules().clone();
        let host = provider.issuer.host_str().unwrap_or_default();
        let port = provider.issuer.port_or_known_default().unwrap_or_default();
        rules.ports.push(port);
        if provider.private {
            rules.allowed.extend(format!("{host}:{port}").parse());
        }
        let web = web.beside(rules, FetchLimits { connect: WITHIN, silence: WITHIN });
        Self { provider, web, known: Mutex::default() }
    }

    /// Where a browser signs in there.
    pub(super) async fn address(&self, state: &str, secrets: &RequestSecrets, back: &str) -> Result<String, ToolError> {
        let document = self.document().await?;
        let unusable = || self.away("its `authorization_endpoint` is no address that a browser may be sent to");
        let mut address = Url::parse(&document.authorization_endpoint).map_err(|_| unusable())?;
        let is_fit = address.scheme() == "https" || (address.scheme() == "http" && self.provider.private);
        if !is_fit || !address.has_host() {
            return Err(unusable());
        }
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.provider.client_id),
            ("redirect_uri", back),
            ("scope", &self.provider.scopes.join(" ")),
            ("state", state),
            ("nonce", &secrets.nonce),
            ("code_challenge", &challenge_of(&secrets.verifier)),
            ("code_challenge_method", "S256"),
        ]);
        Ok(address.into())
    }

    /// Who the code of a browser that came back stands for.
    pub(super) async fn claims(&self, code: &str, back: &str, secrets: &RequestSecrets) -> Result<IdClaims, ToolError> {
        let document = self.document().await?;
        let given = self.exchange(&document, &[("code", code), ("redirect_uri", back)], &secrets.verifier).await?;
        let label = &self.provider.label;
        let token = given.id_token.ok_or_else(|| {
            let why = given.error.unwrap_or_else(|| "it gave no ID token".to_owned());
            tracing::warn!(provider = %self.provider.name, why = %super::short(&why), "a code was not taken");
            refused(format!("{label} does not confirm this sign-in; sign in again"))
        })?;
        let expected = ExpectedToken {
            issuer: &self.provider.written_issuer,
            client_id: &self.provider.client_id,
            nonce: &secrets.nonce,
        };
        let mut found = verified(&token, &self.keys(&document).await?, &expected);
        if found.as_ref().is_err_and(|fault| *fault == TokenFault::UnknownKey) && self.may_ask_again() {
            found = verified(&token, &self.fetched_keys(&document).await?, &expected);
        }
        let claims = found.map_err(|fault| {
            tracing::warn!(provider = %self.provider.name, ?fault, "an ID token does not count");
            refused(format!("what {label} says of you cannot be trusted; tell the operator, whose log says why"))
        })?;
        match (&claims.email, &document.userinfo_endpoint, given.access_token) {
            (None, Some(address), Some(token)) => self.more_claims(address, &token, claims).await,
            _ => Ok(claims),
        }
    }

    async fn exchange(
        &self,
        document: &ProviderDocument,
        fields: &[(&str, &str)],
        verifier: &str,
    ) -> Result<CodeReply, ToolError> {
        let (id, secret) = (&self.provider.client_id, self.provider.client_secret.as_deref());
        let ways = &document.token_endpoint_auth_methods_supported;
        // Basic is what counts where a provider says nothing.
        let in_form =
            ways.iter().any(|way| way == "client_secret_post") && !ways.iter().any(|way| way == "client_secret_basic");
        let mut form = vec![("grant_type", "authorization_code"), ("code_verifier", verifier), ("client_id", id)];
        form.extend(fields);
        let mut headers = HeaderMap::new();
        match secret {
            Some(secret) if in_form => form.push(("client_secret", secret)),
            Some(secret) => {
                let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
                headers.extend(format!("Basic {pair}").parse().ok().map(|value| (header::AUTHORIZATION, value)));
            }
            None => {}
        }
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/x-www-form-urlencoded"));
        let pairs: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let body = Bytes::from(pairs.join("&"));
        let (status, bytes) = self.ask(&document.token_endpoint, Method::POST, headers, body).await?;
        // What is refused is said with a status of its own.
        match status {
            StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => self.read(&bytes),
            other => Err(self.away(format!("its token endpoint answers with status {}", other.as_u16()))),
        }
    }

    /// What a provider says only when it is asked once more, if it is about the same account.
    async fn more_claims(&self, address: &str, token: &str, claims: IdClaims) -> Result<IdClaims, ToolError> {
        let bearer = format!("Bearer {token}").parse();
        let bearer = bearer.map_err(|_| self.away("its access token cannot be sent"))?;
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
        let more: IdClaims = self.fetched(address, headers).await?;
        Ok(if more.sub == claims.sub { more } else { claims })
    }

    /// What it says of itself, at its own address and in its own name.
    async fn document(&self) -> Result<Arc<ProviderDocument>, ToolError> {
        let kept = self.known().document.clone().filter(|(since, _)| since.elapsed() < BELIEVED);
        if let Some((_, document)) = kept {
            return Ok(document);
        }
        let base = self.provider.issuer.as_str().trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let document: Arc<ProviderDocument> = Arc::new(self.fetched(&address, HeaderMap::new()).await?);
        if document.issuer != self.provider.written_issuer {
            let named = super::short(&document.issuer);
            return Err(self.away(format!("it calls itself `{named}`, and `issuer` in the settings is another text")));
        }
        self.known().document = Some((Instant::now(), document.clone()));
        Ok(document)
    }

    async fn keys(&self, document: &ProviderDocument) -> Result<Arc<Vec<SigningKey>>, ToolError> {
        let kept = self.known().keys.clone().filter(|(since, _)| since.elapsed() < BELIEVED);
        match kept {
            Some((_, keys)) => Ok(keys),
            None => self.fetched_keys(document).await,
        }
    }

    /// The keys as they are now. A provider changes them without telling anybody.
    async fn fetched_keys(&self, document: &ProviderDocument) -> Result<Arc<Vec<SigningKey>>, ToolError> {
        let (status, bytes) = self.ask(&document.jwks_uri, Method::GET, HeaderMap::new(), Bytes::new()).await?;
        let keys = SigningKey::read_all(&bytes).filter(|_| status == StatusCode::OK);
        let keys = Arc::new(keys.ok_or_else(|| self.away("its `jwks_uri` has no list of keys"))?);
        self.known().keys = Some((Instant::now(), keys.clone()));
        Ok(keys)
    }

    /// Whether the keys may be asked for before their time, which strangers could have done all day long.
    fn may_ask_again(&self) -> bool {
        let mut known = self.known();
        let is_due = known.asked_again.is_none_or(|last| last.elapsed() >= ASKED_AGAIN);
        if is_due {
            known.asked_again = Some(Instant::now());
        }
        is_due
    }

    fn known(&self) -> std::sync::MutexGuard<'_, KnownProvider> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetched<T: DeserializeOwned>(&self, address: &str, headers: HeaderMap) -> Result<T, ToolError> {
        let (status, bytes) = self.ask(address, Method::GET, headers, Bytes::new()).await?;
        match status {
            StatusCode::OK => self.read(&bytes),
            other => Err(self.away(format!("`{address}` answers with status {}", other.as_u16()))),
        }
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ToolError> {
        serde_json::from_slice(bytes).map_err(|err| self.away(format!("its answer cannot be read: {err}")))
    }

    async fn ask(
        &self,
        address: &str,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Vec<u8>), ToolError> {
        let failed = |err: WebError| {
            let cause = std::error::Error::source(&err).map_or_else(String::new, |cause| format!(" ({cause})"));
            self.away(format!("{err}{cause}"))
        };
        let target = self.web.target(address).map_err(|refusal| failed(refusal.into()))?;
        if target.url().scheme() != "https" && !self.provider.private {
            return Err(self.away(format!("`{address}` is not https")));
        }
        let until = tokio::time::Instant::now() + WITHIN;
        let request = Request { target, method, headers, body, until, silence: None };
        let response = self.web.send(&request).await.map_err(failed)?;
        let status = response.status;
        let read = response.read(LARGEST).await.map_err(failed)?;
        match read.end {
            BodyEnd::Whole => Ok((status, read.bytes)),
            BodyEnd::Limit => Err(self.away(format!("`{address}` answers with more than {LARGEST} bytes"))),
            BodyEnd::Broken(why) => Err(self.away(format!("`{address}` broke off: {why}"))),
        }
    }

    /// A provider that cannot be used now. Whoever signs in hears no more of it than that; the log has the rest.
    fn away(&self, why: impl Into<String>) -> ToolError {
        let (OidcProvider { name, label, .. }, why) = (&self.provider, why.into());
        tracing::warn!(provider = %name, %why, "a provider to sign in with cannot be used");
        let message = format!("{label} cannot be reached right now; try again later, or sign in another way");
        ToolError::new(ErrorCode::Unavailable, message)
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

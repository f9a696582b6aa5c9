//! A login from the link that a person opens to the tokens that come of it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use haft_sandbox::web::{HeaderMap, Url, WebClient};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    fetch,
    metadata::{AuthorizationServer, LoginDiscovery},
    tokens::{ClientProof, LoginClient, LoginSource, LoginTokens, TokenRefusal},
};

/// What lets authorization servers give tokens for longer than one visit.
const OFFLINE: &str = "offline_access";

/// How haft wants to log in.
#[derive(Clone, Default)]
pub struct LoginWish {
    /// The client that was registered by hand, and its secret.
    pub client: Option<(String, Option<String>)>,
    /// The scopes that the entry of the server names; what the server wants where there are none.
    pub scopes: Vec<String>,
    /// Where the person comes back to.
    pub redirect_uri: String,
    /// Where haft describes itself, if others can fetch that.
    pub document: Option<String>,
}

/// A login that was begun.
pub struct BegunLogin {
    /// Where the person goes.
    pub url: String,
    /// What comes back with them; nobody can guess it.
    pub state: String,
    /// What it goes on with.
    pub attempt: LoginAttempt,
}

/// What a login goes on with when its person comes back. It is kept sealed.
#[derive(Clone, Serialize, Deserialize)]
pub struct LoginAttempt {
    source: LoginSource,
    verifier: String,
    /// Whether the answer must say who gives it.
    names_issuer: bool,
    scopes: Vec<String>,
}

/// What a person brings back.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LoginAnswer {
    /// Becomes tokens, once.
    #[serde(default)]
    pub code: Option<String>,
    /// What they were sent with.
    #[serde(default)]
    pub state: Option<String>,
    /// Who sends them.
    #[serde(default)]
    pub iss: Option<String>,
    /// Why there is no code.
    #[serde(default)]
    pub error: Option<String>,
}

impl LoginDiscovery {
    /// Begins a login at the server with this address, after one that may have been before.
    pub async fn begin(
        self,
        client: &WebClient,
        server: &str,
        wish: &LoginWish,
        before: Option<&LoginTokens>,
    ) -> Result<BegunLogin, String> {
        let before = before.filter(|before| before.source.server == server);
        let scopes = self.wanted_scopes(wish, before);
        let known = before.map(|before| &before.source).filter(|known| known.issuer == self.authorization.issuer);
        let login_client = self.authorization.client(client, wish, known).await?;
        let (verifier, state) = (random_text()?, random_text()?);
        let url = self.link(&login_client, &scopes, (&verifier, &state))?;
        let Self { resource, authorization, .. } = self;
        let source = LoginSource {
            server: server.to_owned(),
            resource,
            issuer: authorization.issuer,
            token_endpoint: authorization.token_endpoint,
            revocation_endpoint: authorization.revocation_endpoint,
            client: login_client,
        };
        let names_issuer = authorization.authorization_response_iss_parameter_supported;
        Ok(BegunLogin { url, state, attempt: LoginAttempt { source, verifier, names_issuer, scopes } })
    }

    /// What the entry says, or what the server wants; with what was asked for before and what it wanted since.
    fn wanted_scopes(&self, wish: &LoginWish, before: Option<&LoginTokens>) -> Vec<String> {
        let mut scopes = if wish.scopes.is_empty() { self.scopes.clone() } else { wish.scopes.clone() };
        let stepped_up = before.filter(|before| !before.missing.is_empty());
        let more = stepped_up.into_iter().flat_map(|before| before.scopes.iter().chain(&before.missing));
        scopes.extend(more.cloned());
        let gives_offline = self.authorization.scopes_supported.iter().any(|scope| scope == OFFLINE);
        if gives_offline && wish.scopes.is_empty() && !scopes.is_empty() {
            scopes.push(OFFLINE.to_owned());
        }
        let mut seen = std::collections::BTreeSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        scopes
    }

    fn link(&self, client: &LoginClient, scopes: &[String], secrets: (&str, &str)) -> Result<String, String> {
        let (verifier, state) = secrets;
        let mut url = Url::parse(&self.authorization.authorization_endpoint).map_err(|err| err.to_string())?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state)
            .append_pair("resource", &self.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        drop(query);
        Ok(url.into())
    }
}

impl AuthorizationServer {
    /// What haft is here: what somebody registered by hand, its own document, or what it registers itself.
    async fn client(
        &self,
        web: &WebClient,
        wish: &LoginWish,
        known: Option<&LoginSource>,
    ) -> Result<LoginClient, String> {
        let redirect_uri = wish.redirect_uri.clone();
        if let Some((id, secret)) = wish.client.clone() {
            let proof = self.proof(secret.is_some());
            return Ok(LoginClient { id, secret, proof, redirect_uri, is_registered: false });
        }
        if let Some(id) = wish.document.clone().filter(|_| self.client_id_metadata_document_supported) {
            let proof = ClientProof::Nothing;
            return Ok(LoginClient { id, secret: None, proof, redirect_uri, is_registered: false });
        }
        let is_ours = |known: &&LoginClient| known.is_registered && known.redirect_uri == redirect_uri;
        if let Some(known) = known.map(|known| &known.client).filter(is_ours) {
            return Ok(known.clone());
        }
        let Some(endpoint) = &self.registration_endpoint else {
            return Err(
                "the authorization server takes only clients that were registered by hand; register haft there \
                        and put the id into `oauth` of the server's entry"
                    .to_owned(),
            );
        };
        self.register(web, endpoint, redirect_uri).await
    }

    async fn register(&self, web: &WebClient, endpoint: &str, redirect_uri: String) -> Result<LoginClient, String> {
        let wanted = if self.takes("none") { ClientProof::Nothing } else { self.proof(true) };
        let is_here = redirect_uri.starts_with("http://");
        let description = client_description(&redirect_uri, wanted, is_here);
        let body = ("application/json", description.to_string());
        let answer = fetch::post(web, endpoint, body, HeaderMap::new()).await?;
        if !answer.status.is_success() {
            return Err(format!("haft could not register itself there: HTTP {}", answer.status.as_u16()));
        }
        let given: RegisteredLoginClient = answer.json()?;
        let proof = given.token_endpoint_auth_method.unwrap_or(wanted);
        Ok(LoginClient { id: given.client_id, secret: given.client_secret, proof, redirect_uri, is_registered: true })
    }

    fn proof(&self, has_secret: bool) -> ClientProof {
        match has_secret {
            false => ClientProof::Nothing,
            true if self.takes("client_secret_basic") => ClientProof::Basic,
            true if self.takes("client_secret_post") => ClientProof::Post,
            true => ClientProof::Nothing,
        }
    }

    /// Where an authorization server says nothing, it takes `client_secret_basic`.
    fn takes(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|known| known == method),
            None => method == "client_secret_basic",
        }
    }
}

/// What an authorization server says to a registration.
#[derive(Deserialize)]
struct RegisteredLoginClient {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<ClientProof>,
}

/// What haft says of itself at an address that others can fetch.
pub fn client_document(address: &str, redirect_uri: &str) -> serde_json::Value {
    let mut description = client_description(redirect_uri, ClientProof::Nothing, false);
    description["client_id"] = json!(address);
    description
}

fn client_description(redirect_uri: &str, proof: ClientProof, is_here: bool) -> serde_json::Value {
    json!({
        "client_name": "haft",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": proof,
        "application_type": if is_here { "native" } else { "web" },
    })
}

impl LoginAttempt {
    /// Fetches the tokens that the answer of a person stands for.
    pub async fn finish(self, client: &WebClient, answer: &LoginAnswer) -> Result<LoginTokens, String> {
        // Invariant: what another authorization server answers is sent to none.
        match &answer.iss {
            Some(iss) if *iss != self.source.issuer => {
                return Err("another authorization server answered than was asked".to_owned());
            }
            None if self.names_issuer => return Err("the answer does not say who gives it".to_owned()),
            Some(_) | None => {}
        }
        if let Some(error) = &answer.error {
            return Err(match error.as_str() {
                "access_denied" => "the login was refused there".to_owned(),
                _ => "the authorization server gave no login".to_owned(),
            });
        }
        let code = answer.code.as_deref().ok_or("the answer holds no code")?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.source.client.redirect_uri.as_str()),
            ("code_verifier", self.verifier.as_str()),
        ];
        let given = self.source.ask(client, &form).await.map_err(|refusal| match refusal {
            TokenRefusal::Refused(why) | TokenRefusal::Failed(why) => format!("no token was given: {why}"),
        })?;
        let (access_token, refresh_token, refresh_at) = (None, None, None);
        let Self { source, scopes, .. } = self;
        let tokens = LoginTokens { source, access_token, refresh_token, refresh_at, scopes, missing: Vec::new() };
        Ok(tokens.with(given))
    }

    /// The server that it is for.
    pub fn server(&self) -> &str {
        &self.source.server
    }
}

/// 256 random bits as letters, digits, `-` and `_`.
fn random_text() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if got != Ok(bytes.len()) {
        return Err("the system gives no random numbers".to_owned());
    }
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

//! Who gives tokens for a server, and how: looked up as the protocol says, and believed only where it fits.

use haft_sandbox::web::{HeaderMap, StatusCode, Url, WebClient};
use serde::Deserialize;

use super::{
    challenge::Challenge,
    fetch::{self, shown},
};

/// What a server says of the tokens that it takes.
#[derive(Clone, Debug, Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
}

/// What an authorization server says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Everything that a login at a server begins with.
pub struct LoginDiscovery {
    /// What the tokens are for, as the server writes it.
    pub(super) resource: String,
    pub(super) authorization: AuthorizationServer,
    /// What the server wants at least; empty where it does not say.
    pub(super) scopes: Vec<String>,
}

impl LoginDiscovery {
    /// Asks a server who gives tokens for it, and those how they do.
    pub(super) async fn of(client: &WebClient, url: &str) -> Result<Self, String> {
        let challenge = challenge(client, url).await?.unwrap_or_default();
        let resource = protected_resource(client, url, challenge.resource_metadata.as_deref()).await?;
        let issuer = resource.authorization_servers.first();
        let issuer = issuer.ok_or("it does not say who gives tokens for it (`authorization_servers` is empty)")?;
        let authorization = authorization_server(client, issuer, url).await?;
        let scopes = match challenge.scopes {
            wanted if !wanted.is_empty() => wanted,
            _ => resource.scopes_supported.unwrap_or_default(),
        };
        Ok(Self { resource: resource.resource, authorization, scopes })
    }

    /// The host that a secret of ours would be sent to.
    pub fn token_host(&self) -> String {
        Url::parse(&self.authorization.token_endpoint)
            .ok()
            .and_then(|url| url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()))
            .unwrap_or_default()
    }
}

/// What a server answers to somebody whom it does not know.
async fn challenge(client: &WebClient, url: &str) -> Result<Option<Challenge>, String> {
    const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    let mut headers = HeaderMap::new();
    headers.insert(
        haft_sandbox::web::header::ACCEPT,
        haft_sandbox::web::header::HeaderValue::from_static("application/json, text/event-stream"),
    );
    let answer = fetch::post(client, url, ("application/json", PROBE.to_owned()), headers).await?;
    Ok(Challenge::of(&answer.headers).filter(|_| answer.status == StatusCode::UNAUTHORIZED))
}

/// Where the challenge says it is, or else at the usual places.
async fn protected_resource(client: &WebClient, url: &str, named: Option<&str>) -> Result<ProtectedResource, String> {
    let places = match named {
        Some(named) => vec![named.to_owned()],
        None => well_known(url, "oauth-protected-resource")?,
    };
    let mut last = String::new();
    for place in places {
        match document::<ProtectedResource>(client, &place).await {
            Ok(found) => return covers(&found.resource, url).map(|()| found),
            Err(why) => last = why,
        }
    }
    Err(format!("it does not say who gives tokens for it: {last}"))
}

/// Whether tokens for a resource are for this server: the same address, or the beginning of it.
fn covers(resource: &str, url: &str) -> Result<(), String> {
    let is_part = || {
        let (resource, url) = (Url::parse(resource).ok()?, Url::parse(url).ok()?);
        let (own, whole) = (resource.path().trim_end_matches('/'), url.path());
        let rest = whole.strip_prefix(own)?;
        let is_within = rest.is_empty() || rest.starts_with('/');
        (resource.origin() == url.origin() && resource.fragment().is_none() && is_within).then_some(())
    };
    is_part().ok_or_else(|| format!("its metadata is about another address, `{}`", shown(resource)))
}

/// What the authorization server says, at the first of the usual places that has it.
async fn authorization_server(client: &WebClient, issuer: &str, server: &str) -> Result<AuthorizationServer, String> {
    let parsed = Url::parse(issuer).map_err(|_| "it names no address of an authorization server".to_owned())?;
    let mut places = well_known(issuer, "oauth-authorization-server")?;
    // Where the issuer has a path, the root is another issuer.
    places.truncate(1);
    places.extend(well_known(issuer, "openid-configuration")?.first().cloned());
    if parsed.path() != "/" {
        let after = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        places.push(after);
    }
    let mut last = String::new();
    for place in places {
        match document::<AuthorizationServer>(client, &place).await {
            Ok(found) => return found.checked(issuer, server),
            Err(why) => last = why,
        }
    }
    Err(format!("the authorization server does not say how to log in: {last}"))
}

impl AuthorizationServer {
    // Invariant: whoever names an authorization server does not make another one speak for it.
    fn checked(self, issuer: &str, server: &str) -> Result<Self, String> {
        if self.issuer != issuer {
            let (said, wanted) = (shown(&self.issuer), shown(issuer));
            return Err(format!("the authorization server `{wanted}` calls itself `{said}`"));
        }
        if !self.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(format!("the authorization server `{}` does not know PKCE with S256", shown(issuer)));
        }
        let optional = [&self.registration_endpoint, &self.revocation_endpoint];
        let named = [&self.authorization_endpoint, &self.token_endpoint];
        for endpoint in named.into_iter().chain(optional.into_iter().flatten()) {
            // Somebody chose to talk with a server in the clear; otherwise no token travels so.
            let fits =
                endpoint.starts_with("https://") || (endpoint.starts_with("http://") && server.starts_with("http://"));
            if !fits || Url::parse(endpoint).is_err() {
                return Err(format!("`{}` of the authorization server is no https address", shown(endpoint)));
            }
        }
        Ok(self)
    }
}

async fn document<T: serde::de::DeserializeOwned>(client: &WebClient, place: &str) -> Result<T, String> {
    let answer = fetch::get(client, place).await?;
    if answer.status != StatusCode::OK {
        return Err(format!("`{}` answers with HTTP {}", shown(place), answer.status.as_u16()));
    }
    answer.json().map_err(|why| format!("`{}`: {why}", shown(place)))
}

/// The usual places of a document: before the path of an address, then at the root.
fn well_known(address: &str, name: &str) -> Result<Vec<String>, String> {
    let url = Url::parse(address).map_err(|_| "its address cannot be read".to_owned())?;
    let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    let mut places = vec![format!("{origin}/.well-known/{name}{path}")];
    if !path.is_empty() {
        places.push(format!("{origin}/.well-known/{name}"));
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_for_another_address_are_not_asked_for() {
        let server = "https://a.example/team/mcp";
        for good in ["https://a.example/team/mcp", "https://a.example/team", "https://a.example", "https://a.example/"]
        {
            assert_eq!(covers(good, server), Ok(()), "{good}");
        }
        for bad in [
            "https://a.example/te",
            "https://a.example/team/mcp2",
            "https://a.example/team/mcp/more",
            "http://a.example/team/mcp",
            "https://a.example:8443/team/mcp",
            "https://b.example/team/mcp",
            "https://a.example/team/mcp#x",
            "team",
        ] {
            assert!(covers(bad, server).is_err(), "{bad}");
        }
    }

    #[test]
    fn documents_are_looked_for_where_the_protocol_says() {
        let places = |address| well_known(address, "x").unwrap_or_default();
        assert_eq!(
            places("https://a.example/t/mcp"),
            ["https://a.example/.well-known/x/t/mcp", "https://a.example/.well-known/x"]
        );
        assert_eq!(places("https://a.example:8443/"), ["https://a.example:8443/.well-known/x"]);
    }
}

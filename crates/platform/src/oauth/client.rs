//! The programs that want to be let in: by what they are known, and where people may be sent back to.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_sandbox::web::{
    BodyEnd, Bytes, FetchLimits, HeaderMap, Method, Request, StatusCode, Url, WebClient, WebRules,
};
use haft_store::OAuthClientRecord;
use serde::Deserialize;

use super::{DEVICE_GRANT, OAuthError};
use crate::{Platform, random};

/// How long a document of a program is believed.
const BELIEVED: Duration = Duration::from_secs(3600);
/// How many documents are kept at hand.
const MOST_DOCUMENTS: usize = 1000;
/// The largest document, and how long it may take to come.
const LARGEST_DOCUMENT: usize = 64 << 10;
const DOCUMENT_WITHIN: Duration = Duration::from_secs(5);
/// How many addresses a program may name, and how long each may be.
const MOST_ADDRESSES: usize = 20;
const LONGEST_ADDRESS: usize = 2000;
const LONGEST_NAME: usize = 100;

/// A program that wants to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// What it is known by: what it was given here, or the address of its own document.
    pub id: String,
    /// What it calls itself.
    pub name: String,
    /// Who vouches for that name: the host of its document. Whoever registered itself has nobody.
    pub host: Option<String>,
    redirect_uris: Vec<String>,
}

impl OAuthClient {
    /// Whether people may be sent back there. On the program's own machine any port is as good as another.
    pub fn may_send_to(&self, address: &str) -> bool {
        self.redirect_uris.iter().any(|known| known == address || are_one_on_loopback(known, address))
    }
}

/// What a program says of itself, in its document or when it registers.
#[derive(Clone, Debug, Deserialize)]
pub struct ClientDescription {
    /// The address of the document; absent from a registration.
    #[serde(default)]
    pub client_id: Option<String>,
    /// What people read.
    #[serde(default)]
    pub client_name: Option<String>,
    /// Where people may be sent back to.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// How it proves who it is when it fetches a token; only `none` is known here.
    #[serde(default)]
    pub token_endpoint_auth_method: Option<String>,
    /// How it gets tokens.
    #[serde(default)]
    pub grant_types: Vec<String>,
}

impl ClientDescription {
    fn checked(self, fallback: &str) -> Result<(String, Vec<String>), OAuthError> {
        // Nobody is sent back to a program on a device without a browser.
        let only_on_devices = self.grant_types.iter().any(|grant| grant == DEVICE_GRANT)
            && !self.grant_types.iter().any(|grant| grant == "authorization_code");
        if (self.redirect_uris.is_empty() && !only_on_devices) || self.redirect_uris.len() > MOST_ADDRESSES {
            return Err(unfit(format!("`redirect_uris` names 1 to {MOST_ADDRESSES} addresses")));
        }
        if let Some(wrong) = self.redirect_uris.iter().find(|address| !is_place_to_return_to(address)) {
            let shown: String = wrong.chars().take(100).collect();
            let error = format!("`{shown}` cannot be returned to: https, http on this machine, or a scheme of its own");
            return Err(OAuthError { code: "invalid_redirect_uri", ..unfit(error) });
        }
        let name = self.client_name.as_deref().unwrap_or(fallback).trim();
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
        Ok((if name.is_empty() { fallback.to_owned() } else { name }, self.redirect_uris))
    }
}

/// Documents that were fetched a while ago.
#[derive(Default)]
pub(crate) struct ClientDocuments(Mutex<HashMap<String, (Instant, OAuthClient)>>);

impl ClientDocuments {
    fn known(&self, id: &str) -> Option<OAuthClient> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|(since, _)| since.elapsed() < BELIEVED).map(|(_, client)| client.clone())
    }

    fn keep(&self, client: &OAuthClient) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_DOCUMENTS {
            known.clear();
        }
        known.insert(client.id.clone(), (Instant::now(), client.clone()));
    }
}

impl Platform {
    /// Takes in a program that registers itself.
    pub async fn register_client(&self, description: ClientDescription) -> Result<OAuthClient, OAuthError> {
        if description.token_endpoint_auth_method.as_deref().is_some_and(|way| way != "none") {
            return Err(unfit("programs keep no secret here: `token_endpoint_auth_method` is `none`"));
        }
        let (name, redirect_uris) = description.checked("a program without a name")?;
        let id = format!("client_{}", random::text(24)?);
        let kept = serde_json::to_string(&redirect_uris).unwrap_or_default();
        let record = OAuthClientRecord { id: id.clone(), name: name.clone(), redirect_uris: kept };
        self.store.add_oauth_client(&self.house, &record).await?;
        Ok(OAuthClient { id, name, host: None, redirect_uris })
    }

    /// The program of this id. The document of one that is known by its address is fetched only when `web` is given: for
    /// somebody who is signed in and looks at the page.
    pub async fn oauth_client(&self, id: &str, web: Option<&WebClient>) -> Result<Option<OAuthClient>, OAuthError> {
        if id.starts_with("https://") {
            return match (self.documents.known(id), web) {
                (Some(known), _) => Ok(Some(known)),
                (None, None) => Ok(None),
                (None, Some(web)) => {
                    let client = fetched(id, web).await?;
                    self.documents.keep(&client);
                    Ok(Some(client))
                }
            };
        }
        let Some(record) = self.store.oauth_client(&self.house, id).await? else { return Ok(None) };
        let redirect_uris = serde_json::from_str(&record.redirect_uris).unwrap_or_default();
        Ok(Some(OAuthClient { id: record.id, name: record.name, host: None, redirect_uris }))
    }
}

/// What a program says of itself at its own address: public, by TLS, at that very address, soon and not much.
async fn fetched(id: &str, web: &WebClient) -> Result<OAuthClient, OAuthError> {
    let refused = |why: String| unfit(format!("the program's own description at `{id}` cannot be used: {why}"));
    let rules = WebRules { ports: vec![443], ..web.rules().clone() };
    let web = web.beside(rules, FetchLimits { connect: DOCUMENT_WITHIN, silence: DOCUMENT_WITHIN });
    let target = web.target(id).map_err(|refusal| refused(refusal.to_string()))?;
    let has_path = target.url().path() != "/" && target.url().fragment().is_none();
    if target.url().as_str() != id || !has_path {
        return Err(refused("its address is not written in the one way that counts".to_owned()));
    }
    let (host, until) = (target.host().to_owned(), tokio::time::Instant::now() + DOCUMENT_WITHIN);
    let (headers, body) = (HeaderMap::new(), Bytes::new());
    let request = Request { target, method: Method::GET, headers, body, until, silence: None };
    let response = web.send(&request).await.map_err(|err| refused(err.to_string()))?;
    if response.status != StatusCode::OK {
        return Err(refused(format!("it answers with status {}", response.status.as_u16())));
    }
    let read = response.read(LARGEST_DOCUMENT).await.map_err(|err| refused(err.to_string()))?;
    if !matches!(read.end, BodyEnd::Whole) {
        return Err(refused("it is too long, or broke off".to_owned()));
    }
    let described: ClientDescription = serde_json::from_slice(&read.bytes).map_err(|err| refused(err.to_string()))?;
    if described.client_id.as_deref() != Some(id) {
        return Err(refused("it names another `client_id`".to_owned()));
    }
    let (name, redirect_uris) = described.checked(&host)?;
    Ok(OAuthClient { id: id.to_owned(), name, host: Some(host), redirect_uris })
}

/// Whether a browser may be sent there with a code.
fn is_place_to_return_to(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let is_plain = address.len() <= LONGEST_ADDRESS && !address.contains(|letter: char| letter.is_control());
    let stands_for_itself = url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    let is_fit = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(&url),
        // Browsers run or show these themselves.
        "javascript" | "data" | "file" | "blob" | "about" | "vbscript" | "ws" | "wss" | "ftp" => false,
        _ => true,
    };
    is_plain && stands_for_itself && is_fit
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether two addresses on the program's own machine differ by nothing but their ports.
fn are_one_on_loopback(known: &str, given: &str) -> bool {
    let (Ok(known), Ok(given)) = (Url::parse(known), Url::parse(given)) else { return false };
    let same = |part: fn(&Url) -> Option<&str>| part(&known) == part(&given);
    [&known, &given].iter().all(|url| url.scheme() == "http" && is_loopback(url))
        && same(Url::host_str)
        && same(Url::query)
        && same(Url::fragment)
        && known.path() == given.path()
        && given.username().is_empty()
        && given.password().is_none()
}

fn unfit(description: impl Into<String>) -> OAuthError {
    OAuthError { code: "invalid_client_metadata", description: description.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(redirect_uris: &[&str]) -> OAuthClient {
        let redirect_uris = redirect_uris.iter().map(|address| (*address).to_owned()).collect();
        OAuthClient { id: "c".to_owned(), name: "c".to_owned(), host: None, redirect_uris }
    }

    #[test]
    fn people_are_sent_back_only_to_where_the_program_said() {
        let known = client(&["https://app.example/back?x=1", "http://127.0.0.1:1234/cb", "cursor://anything/cb"]);
        for right in [
            "https://app.example/back?x=1",
            "http://127.0.0.1:1234/cb",
            "http://127.0.0.1:9/cb",
            "http://127.0.0.1/cb",
            "cursor://anything/cb",
        ] {
            assert!(known.may_send_to(right), "{right}");
        }
        for wrong in [
            "https://app.example/back",
            "https://app.example/back?x=1&y=2",
            "https://app.example:444/back?x=1",
            "https://app.example/back/?x=1",
            "https://APP.example/back?x=1",
            "https://app.example.evil.example/back?x=1",
            "http://127.0.0.1:1234/cb#x",
            "http://127.0.0.1:1234/cb/",
            "http://127.0.0.1:1234/cb?x",
            "http://u@127.0.0.1:1234/cb",
            "http://localhost:1234/cb",
            "http://127.0.0.1.evil.example/cb",
            "cursor://anything/cb2",
            "",
        ] {
            assert!(!known.may_send_to(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_browsers_run_themselves_is_no_place_to_return_to() {
        for right in ["https://a.example/x", "http://localhost/x", "http://[::1]:5/x", "com.example.app:/back"] {
            assert!(is_place_to_return_to(right), "{right}");
        }
        for wrong in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "http://a.example/x",
            "https://a.example/x#y",
            "https://u:p@a.example/x",
            "/x",
            "",
        ] {
            assert!(!is_place_to_return_to(wrong), "{wrong}");
        }
    }
}

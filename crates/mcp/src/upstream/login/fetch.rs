//! Small documents and forms of authorization servers: never redirected, soon, and not much.

use std::time::Duration;

use haft_sandbox::web::{
    BodyEnd, Bytes, FetchLimits, HeaderMap, Method, Request, StatusCode, Url, WebClient,
    header::{self, HeaderValue},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// The largest answer, and how long it may take to come.
const LARGEST: usize = 256 << 10;
pub(super) const WITHIN: Duration = Duration::from_secs(10);

/// An answer of an authorization server, or of the server itself.
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Vec<u8>,
}

impl Fetched {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|_| "its answer is no JSON of the expected kind".to_owned())
    }
}

/// Fetches a document.
pub(super) async fn get(client: &WebClient, url: &str) -> Result<Fetched, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    sent(client, (Method::GET, url), headers, Bytes::new()).await
}

/// Posts a form, or JSON.
pub(super) async fn post(
    client: &WebClient,
    url: &str,
    (kind, body): (&'static str, String),
    mut headers: HeaderMap,
) -> Result<Fetched, String> {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
    sent(client, (Method::POST, url), headers, body.into()).await
}

async fn sent(
    client: &WebClient,
    (method, url): (Method, &str),
    headers: HeaderMap,
    body: Bytes,
) -> Result<Fetched, String> {
    let place = shown(url);
    let target = client.target(url).map_err(|refusal| refusal.to_string())?;
    let client = client.beside(client.rules().clone(), FetchLimits { silence: WITHIN, ..client.limits() });
    let request = Request { target, method, headers, body, until: Instant::now() + WITHIN, silence: None };
    let response = client.send(&request).await.map_err(|err| format!("`{place}` cannot be asked: {err}"))?;
    if response.status.is_redirection() {
        return Err(format!("`{place}` redirects elsewhere, which is not followed"));
    }
    let (status, headers) = (response.status, response.headers.clone());
    let read = response.read(LARGEST).await.map_err(|err| format!("`{place}` broke off: {err}"))?;
    match read.end {
        BodyEnd::Whole => Ok(Fetched { status, headers, body: read.bytes }),
        BodyEnd::Limit => Err(format!("`{place}` answers with more than {} KiB", LARGEST >> 10)),
        BodyEnd::Broken(why) => Err(format!("`{place}` broke off: {why}")),
    }
}

/// What may be shown of an address: where it is, and nothing that it carries.
pub(super) fn shown(url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return "an address that cannot be read".to_owned() };
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

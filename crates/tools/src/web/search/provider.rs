//! One search, asked in whichever language the provider speaks.

use std::{fmt, time::Duration};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::{
    Bytes, FetchLimits, HeaderMap, Method, Request, StatusCode, Url, WebClient, WebRules, WebTarget, header,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{SearchAccess, Secret, brave::Brave, exa::Exa, searxng::Searxng};
use crate::web::fault::{failed, refused};

/// The most bytes that an answer may have.
const LARGEST_ANSWER: usize = 4 << 20;
/// How long a provider may take.
const LONGEST: Duration = Duration::from_secs(20);

/// Whose language a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Exa, and what is compatible with it.
    Exa,
    /// Brave Search, and what is compatible with it.
    Brave,
    /// A SearXNG instance.
    Searxng,
}

impl Provider {
    /// Everyone there is.
    pub const ALL: &[Provider] = &[Self::Exa, Self::Brave, Self::Searxng];

    /// The word in the settings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exa => "exa",
            Self::Brave => "brave",
            Self::Searxng => "searxng",
        }
    }

    /// Where they are when nobody says; everybody runs a SearXNG of their own.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Exa => Some("https://api.exa.ai"),
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Searxng => None,
        }
    }

    /// Whether they answer only those who have a key.
    pub fn needs_key(self) -> bool {
        match self {
            Self::Exa | Self::Brave => true,
            Self::Searxng => false,
        }
    }

    fn language(self) -> &'static dyn SearchProvider {
        match self {
            Self::Exa => &Exa,
            Self::Brave => &Brave,
            Self::Searxng => &Searxng,
        }
    }
}

/// What is searched for.
pub(in crate::web) struct SearchQuery<'a> {
    pub(in crate::web) query: &'a str,
    pub(in crate::web) number: usize,
    pub(in crate::web) site: Option<&'a str>,
    pub(in crate::web) freshness: Option<Freshness>,
}

/// How old a result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::web) enum Freshness {
    Day,
    Week,
    Month,
    Year,
}

/// One result.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::web) struct SearchResult {
    pub(in crate::web) title: String,
    pub(in crate::web) url: String,
    /// A few words of the page.
    pub(in crate::web) snippet: String,
    /// When the page was published, as the provider says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) published_at: Option<String>,
    /// How well the provider thinks it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::web) score: Option<f64>,
}

/// A language that searches are asked in.
pub(super) trait SearchProvider: Sync {
    /// The question: where below the provider's URL, and what is sent.
    fn question(&self, wanted: &SearchQuery<'_>, key: Option<&Secret>) -> ProviderRequest;

    /// The results in an answer; `None` when it is not one.
    fn results(&self, answer: &Value) -> Option<Vec<SearchResult>>;

    /// What a person can do about an answer of 401 or 403.
    fn when_refused(&self) -> &'static str {
        "check `web.search.key`"
    }
}

/// A question on the wire.
pub(super) struct ProviderRequest {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) parameters: Vec<(&'static str, String)>,
    /// The name of the header that the key goes in, where it does.
    pub(super) key_header: Option<&'static str>,
    pub(super) body: Option<Value>,
}

/// A provider, ready to be asked.
pub(in crate::web) struct SearchClient {
    access: SearchAccess,
    client: WebClient,
}

impl fmt::Debug for SearchClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.fmt(f)
    }
}

impl SearchClient {
    /// The one host that the user has named may be asked, wherever it is, and nobody else.
    pub(in crate::web) fn new(access: SearchAccess, limits: FetchLimits) -> Self {
        let port = access.url.port_or_known_default().unwrap_or_default();
        let named = access.url.host_str().and_then(|host| format!("{host}:{port}").parse().ok());
        let rules = WebRules { allowed: named.into_iter().collect(), ..WebRules::default() };
        // Searching asks many others, which takes longer than reading one page.
        let limits = FetchLimits { silence: limits.silence.max(LONGEST), ..limits };
        Self { access, client: WebClient::new(rules, limits) }
    }

    pub(in crate::web) fn provider(&self) -> Provider {
        self.access.provider
    }

    pub(in crate::web) fn host(&self) -> &str {
        self.access.url.host_str().unwrap_or_default()
    }

    /// Asks, and gives at most as many results as were wanted.
    pub(in crate::web) async fn find(&self, wanted: &SearchQuery<'_>) -> Result<Vec<SearchResult>, ToolError> {
        let language = self.access.provider.language();
        let question = language.question(wanted, self.access.key.as_ref());
        let doing = format!("search with {}", self.access.provider.word());
        let request = self.request(&question)?;
        let response = self.client.send(&request).await.map_err(|error| failed(&doing, &error))?;
        let (status, retry_after) = (response.status, retry_after(&response.headers));
        let body = response.read(LARGEST_ANSWER).await.map_err(|error| failed(&doing, &error))?;
        let mut text = String::from_utf8_lossy(&body.bytes).into_owned();
        if let Some(key) = &self.access.key {
            text = key.out_of(&text);
        }
        if !status.is_success() {
            return Err(turned_down(&doing, status, retry_after, (&text, language)));
        }
        let answer: Option<Value> = serde_json::from_str(&text).ok();
        let mut results = answer.and_then(|answer| language.results(&answer)).ok_or_else(|| {
            let message = format!("cannot {doing}: its answer is none that it should give: {}", beginning(&text));
            ToolError::new(ErrorCode::ExecutionError, message)
        })?;
        results.truncate(wanted.number);
        Ok(results)
    }

    fn request(&self, question: &ProviderRequest) -> Result<Request, ToolError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
        if let (Some(name), Some(key)) = (question.key_header, &self.access.key) {
            let value = header::HeaderValue::from_str(key.reveal());
            let broken = || {
                ToolError::new(
                    ErrorCode::Unavailable,
                    "the key that `web.search.key` names is no key: it has letters that a header cannot have",
                )
            };
            let mut value = value.map_err(|_| ToolError { recoverable: false, ..broken() })?;
            value.set_sensitive(true);
            headers.insert(header::HeaderName::from_static(name), value);
        }
        if question.body.is_some() {
            headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        }
        let body = question.body.as_ref().map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let until = Instant::now() + LONGEST;
        Ok(Request {
            target: self.target(question)?,
            method: question.method.clone(),
            headers,
            body,
            until,
            silence: None,
        })
    }

    fn target(&self, question: &ProviderRequest) -> Result<WebTarget, ToolError> {
        let mut url: Url = self.access.url.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), question.path);
        url.set_path(&path);
        if !question.parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(&question.parameters);
        }
        self.client.target(url.as_str()).map_err(|refusal| refused(&refusal))
    }
}

/// An answer that is none, and what to do about it.
fn turned_down(
    doing: &str,
    status: StatusCode,
    retry_after: Option<Duration>,
    (text, language): (&str, &dyn SearchProvider),
) -> ToolError {
    let said = format!("cannot {doing}: it answered {status}");
    let unavailable = |next: &str| ToolError::new(ErrorCode::Unavailable, format!("{said}; {next}"));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ToolError { recoverable: false, ..unavailable(language.when_refused()) }
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let error = unavailable("it was asked too often; wait a while");
            retry_after.map_or(error.clone(), |delay| error.to_be_tried_after(delay))
        }
        status if status.is_server_error() => unavailable("try again later"),
        status if status.is_redirection() => {
            let next = "`web.search.url` must name the place itself, redirects are not followed";
            ToolError { recoverable: false, ..unavailable(next) }
        }
        _ => ToolError::new(ErrorCode::ExecutionError, format!("{said}: {}", beginning(text))),
    }
}

/// When to come back, in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(200).collect()
}

/// A text of an answer, empty where there is none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// The same, where none is none.
pub(super) fn text_or_none(value: &Value) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

//! `web_fetch`

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use haft_runtime::{
    Described, Effect, ErrorCode, ParameterAlias, Prepared, Ran, Reach, Stamp, Tool, ToolCtx, ToolError, ToolFacts,
};
use haft_sandbox::web::{
    BodyEnd, Bytes, FetchFailure, FetchOutcome, HeaderMap, Method, Request, StatusCode, Url, WebError, WebTarget,
    header, is_forbidden,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    access::Web,
    answer_cache::WebAnswer,
    answer_freshness, charset,
    fault::{failed, leads_astray, refused},
    html::{self, PageFormat},
};
use crate::{
    blocking::{StopFlag, StopWith, blocking},
    workspaces::Workspaces,
};

/// The most bytes that a call may ask for, and the most headers and bytes of them that it may send.
const MOST_BYTES: u64 = 10 << 20;
const MOST_HEADERS: usize = 64;
const MOST_HEADER_BYTES: usize = 16 << 10;

pub(crate) struct WebFetch(pub(crate) Arc<dyn Workspaces>);

/// Fetch a URL from the public web. Use `format` `markdown` to read a page, `raw` for data. Unlisted hosts and every
/// `POST` ask first; private addresses and this machine are refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({"url": "https://example.org/", "format": "markdown"}))]
pub(crate) struct Input {
    /// `http://` or `https://`.
    #[schemars(length(min = 1, max = 8192))]
    url: String,
    /// `POST` sends `body`.
    #[serde(default)]
    method: Verb,
    /// Headers to send.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// What `POST` sends.
    #[schemars(length(max = 1048576))]
    body: Option<String>,
    /// Time limit in milliseconds.
    #[schemars(range(min = 1, max = 600000))]
    timeout_ms: Option<u64>,
    /// Bytes of the body at most.
    #[serde(default = "two_mebibytes")]
    #[schemars(range(min = 1, max = 10485760))]
    max_bytes: u64,
    /// `text` and `markdown` give the readable part.
    #[serde(default)]
    format: Format,
}

fn two_mebibytes() -> u64 {
    2 << 20
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum Verb {
    #[default]
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "POST")]
    Post,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Raw,
    Text,
    Markdown,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// HTTP status code; 200 is success.
    status: u16,
    /// The headers of the answer, with names in lower case.
    headers: BTreeMap<String, String>,
    /// The body as text; empty for a binary one.
    body: String,
    /// The URL that answered, after redirects.
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// How many unpacked bytes of the body were read.
    bytes: u64,
    /// Whether the body goes on after that.
    truncated: bool,
    /// Whether the body is not text.
    binary: bool,
    #[serde(skip)]
    way: FetchTrace,
    /// Whether the body is an earlier one, which its host says still holds.
    #[serde(skip)]
    confirmed: bool,
}

/// An answer and how it was come to.
struct FetchedPage {
    status: u16,
    answer: WebAnswer,
    way: FetchTrace,
    url: Url,
    truncated: bool,
    confirmed: bool,
}

/// How an answer was come to, and what is missing of it.
#[derive(Debug, Default)]
struct FetchTrace {
    redirects: Vec<String>,
    not_followed: Option<(String, &'static str)>,
    broken: Option<String>,
}

impl Tool for WebFetch {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts {
        open_world: true,
        timeout: Duration::from_secs(600),
        parameter_aliases: &[ParameterAlias::in_seconds("timeout", "timeoutMs")],
        ..ToolFacts::new("web_fetch", "web", Effect::Write)
    };

    fn effect(&self, input: &Input) -> Effect {
        match input.method {
            Verb::Get => Effect::Read,
            Verb::Post => Effect::Write,
        }
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let request = request(&workspace.web, input)?;
        let target = &request.target;
        let sends = input.method == Verb::Post;
        let reach = Reach { host: target.host().to_owned(), listed: workspace.web.lists(target), sends };
        Ok(Prepared::Plain(Described { reach: Some(reach), ..Described::showing(preview(input, &request)) }))
    }

    async fn stamp(&self, ctx: &ToolCtx, input: &Input) -> Option<Stamp> {
        let workspace = self.0.of(ctx.scope()).ok()?;
        input.is_for_anybody().then(|| workspace.web.fresh.stamp(&input.as_question()))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.0.of(ctx.scope())?;
        let stopped = || ToolError::new(ErrorCode::Cancelled, "the fetch was stopped");
        tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => Err(stopped()),
            fetched = fetch(&workspace.web, ctx, &input) => Ok(Ran::plain(fetched?)),
        }
    }
}

impl Input {
    fn as_question(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What of it the answer of a host depends on.
    fn as_request(&self) -> String {
        json!([self.url, self.headers, self.max_bytes]).to_string()
    }

    /// Whether it asks its host by itself if an answer still holds.
    fn asks_by_itself(&self) -> bool {
        self.headers.keys().any(|name| WebAnswer::is_asked_about_by(name))
    }

    /// Whether whoever asks the same may be given the same answer.
    fn is_for_anybody(&self) -> bool {
        let private = |name: &String| ["authorization", "cookie"].iter().any(|word| name.eq_ignore_ascii_case(word));
        self.method == Verb::Get && !self.headers.keys().any(private)
    }

    /// How long it may take, where its caller says so. The host may then be silent as long.
    fn limit(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// The request that an input asks for, checked as far as that needs no packet.
fn request(web: &Web, input: &Input) -> Result<Request, ToolError> {
    let target = web.client.target(&input.url).map_err(|refusal| refused(&refusal))?;
    let mut headers = headers(&input.headers)?;
    let body = input.body.clone().unwrap_or_default();
    let method = match input.method {
        Verb::Get if input.body.is_some() => {
            return Err(invalid("only `POST` sends a `body`; leave it out for `GET`"));
        }
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
    };
    if !body.is_empty() && !headers.contains_key(header::CONTENT_TYPE) {
        let json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
        let kind = if json { "application/json" } else { "text/plain; charset=utf-8" };
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    }
    let until = Instant::now() + input.limit().unwrap_or(web.timeout);
    // The limit of the whole comes first, and says so.
    let silence = input.limit().map(|limit| limit.saturating_mul(2));
    Ok(Request { target, method, headers, body: Bytes::from(body), until, silence })
}

async fn fetch(web: &Web, ctx: &ToolCtx, input: &Input) -> Result<Output, ToolError> {
    let FetchedPage { status, answer, way, url, truncated, confirmed } = given(web, input).await?;
    let WebAnswer { headers, bytes } = answer;
    let is_whole = status == 200 && way.redirects.is_empty() && way.broken.is_none();
    let lasting = if is_whole { answer_freshness::lasting(&headers) } else { Duration::ZERO };
    web.fresh.answered(&input.as_question(), lasting);
    let may_be_kept = input.is_for_anybody() && !input.asks_by_itself() && answer_freshness::may_be_kept(&headers);
    if is_whole && !truncated && may_be_kept {
        let answer = WebAnswer { headers: headers.clone(), bytes: Arc::clone(&bytes) };
        web.earlier.keep(input.as_request(), answer);
    }
    let content_type = headers.get(header::CONTENT_TYPE).map(|kind| shown(kind.as_bytes()));
    let length = bytes.len() as u64;
    let text = text(ctx, bytes, content_type.clone(), (url.clone(), input.format)).await?;
    Ok(Output {
        status,
        headers: shown_headers(&headers),
        binary: text.is_none(),
        body: text.unwrap_or_default(),
        url: url.to_string(),
        content_type,
        bytes: length,
        truncated,
        way,
        confirmed,
    })
}

/// What a host answers, or has answered before and says that it still holds.
async fn given(web: &Web, input: &Input) -> Result<FetchedPage, ToolError> {
    let earlier = web.earlier.answer(&input.as_request());
    let fetched = send(web, input, earlier.as_deref()).await?;
    let holds = fetched.response.status == StatusCode::NOT_MODIFIED;
    let (fetched, earlier) = match earlier.filter(|_| holds) {
        // Somebody else says so, of something else.
        Some(_) if !fetched.redirects.is_empty() => (send(web, input, None).await?, None),
        earlier => (fetched, earlier),
    };
    let FetchOutcome { response, url, redirects, not_followed } = fetched;
    let redirects = redirects.iter().map(ToString::to_string).collect();
    let not_followed = not_followed.map(|not| (not.to.to_string(), not.why));
    let way = FetchTrace { redirects, not_followed, broken: None };
    if let Some(earlier) = earlier {
        let answer = earlier.confirmed(&response.headers);
        return Ok(FetchedPage { status: 200, answer, way, url, truncated: false, confirmed: true });
    }
    let (status, headers) = (response.status.as_u16(), response.headers.clone());
    let most = usize::try_from(input.max_bytes.min(MOST_BYTES)).unwrap_or(usize::MAX);
    let body = response.read(most).await.map_err(|error| failed(&doing(input), &error))?;
    let (truncated, broken) = match body.end {
        BodyEnd::Whole => (false, None),
        BodyEnd::Limit => (true, None),
        BodyEnd::Broken(why) => (true, Some(why)),
    };
    let answer = WebAnswer { headers, bytes: Arc::new(body.bytes) };
    Ok(FetchedPage { status, answer, way: FetchTrace { broken, ..way }, url, truncated, confirmed: false })
}

/// Sends the request, which asks whether an earlier answer still holds where there is one.
async fn send(web: &Web, input: &Input, earlier: Option<&WebAnswer>) -> Result<FetchOutcome, ToolError> {
    let mut request = request(web, input)?;
    if let Some(earlier) = earlier {
        earlier.ask(&mut request.headers);
    }
    let asked = request.target.clone();
    let may_go = |next: &WebTarget| is_same_site(&asked, next) || web.lists(next);
    web.client.fetch(request, may_go).await.map_err(|failure| told(input, &asked, &failure))
}

/// The body as it was asked for; `None` when it is binary. A large page takes a while to read.
async fn text(
    ctx: &ToolCtx,
    bytes: Arc<Vec<u8>>,
    content_type: Option<String>,
    (url, format): (Url, Format),
) -> Result<Option<String>, ToolError> {
    blocking(StopWith::Call(ctx), move |stop| Ok(as_asked(&bytes, content_type.as_deref(), &url, format, stop))).await
}

fn as_asked(bytes: &[u8], content_type: Option<&str>, url: &Url, format: Format, stop: &StopFlag) -> Option<String> {
    let text = charset::text(bytes, content_type)?;
    let form = match format {
        Format::Raw => return Some(text),
        Format::Text => PageFormat::Text,
        Format::Markdown => PageFormat::Markdown,
    };
    if !charset::is_page(&text, content_type) {
        return Some(text);
    }
    html::readable(&text, url, form, stop)
}

/// Whether a redirect stays with the host that was asked about; `www.` before it makes no other one.
fn is_same_site(asked: &WebTarget, next: &WebTarget) -> bool {
    let bare = |target: &WebTarget| target.host().trim_start_matches("www.").to_owned();
    let usual = |target: &WebTarget| [80, 443].contains(&target.port());
    bare(asked) == bare(next) && (asked.port() == next.port() || (usual(asked) && usual(next)))
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, ToolError> {
    let size: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if given.len() > MOST_HEADERS || size > MOST_HEADER_BYTES {
        return Err(invalid(&format!("`headers` has more than {MOST_HEADERS} entries or {MOST_HEADER_BYTES} bytes")));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let known = header::HeaderName::try_from(name.as_str());
        let known = known.map_err(|_| invalid(&format!("`{}` is no name of a header", name.escape_debug())))?;
        if is_forbidden(&known) {
            return Err(invalid(&format!("the header `{known}` is set by haft alone; leave it out")));
        }
        let value = header::HeaderValue::from_str(value);
        let value =
            value.map_err(|_| invalid(&format!("the value of the header `{known}` has letters that none may have")))?;
        headers.insert(known, value);
    }
    Ok(headers)
}

fn invalid(why: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, format!("`web_fetch`: {why}"))
}

/// What the approver is shown: where it goes and how much it sends. The values of headers stand in the input.
fn preview(input: &Input, request: &Request) -> String {
    let mut lines = vec![format!("{} {}", request.method, request.target.url())];
    if !input.headers.is_empty() {
        let names: Vec<&str> = request.headers.keys().map(header::HeaderName::as_str).collect();
        lines.push(format!("headers: {}", names.join(", ")));
    }
    if !request.body.is_empty() {
        lines.push(format!("sends {} bytes", request.body.len()));
    }
    lines.join("\n")
}

fn doing(input: &Input) -> String {
    format!("fetch `{}`", input.url)
}

fn told(input: &Input, asked: &WebTarget, failure: &FetchFailure) -> ToolError {
    let error = if let WebError::Refused(refusal) = &failure.error
        && refusal.url != asked.url().as_str()
    {
        leads_astray(&doing(input), refusal)
    } else {
        failed(&doing(input), &failure.error)
    };
    let Some(last) = failure.redirects.last() else { return error };
    let redirects: Vec<String> = failure.redirects.iter().map(ToString::to_string).collect();
    let mut error = error.with("redirects", redirects);
    // The first request has arrived, whatever became of the next.
    error.details.remove("nothingDone");
    error.message = format!("{}; redirects had led to `{last}`", error.message);
    error
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = shown(value.as_bytes());
        let joined = all.entry(name.as_str().to_owned()).or_default();
        *joined = if joined.is_empty() { value } else { format!("{joined}, {value}") };
    }
    all
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let kind = self.content_type.as_deref().unwrap_or("no content type");
        let mut text = format!("HTTP {} {} ({kind}, {} bytes)\n", self.status, self.url, self.bytes);
        if let Some((to, why)) = &self.way.not_followed {
            text.push_str(&format!("It points to {to}, which was not followed: {why}. Fetch that URL to go on.\n"));
        }
        if self.binary {
            text.push_str("The body is binary and left out.\n");
        } else if !self.body.is_empty() {
            text.push_str(&format!("\n{}", self.body));
        }
        match &self.way.broken {
            Some(why) => text.push_str(&format!("\n(the body is not whole: {why})")),
            None if self.truncated => text.push_str("\n(the body goes on; raise maxBytes to read more)"),
            None => {}
        }
        text
    }

    fn metadata(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("redirects".to_owned(), json!(self.way.redirects));
        if let Some((to, why)) = &self.way.not_followed {
            facts.insert("not_followed".to_owned(), json!({ "to": to, "why": why }));
        }
        if self.confirmed {
            facts.insert("confirmed".to_owned(), json!(true));
        }
        if let Some(why) = &self.way.broken {
            facts.insert("incomplete".to_owned(), json!(why));
        }
        facts
    }
}

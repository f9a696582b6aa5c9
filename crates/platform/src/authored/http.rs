//! A tool that is a request to an address, with the secrets that belong there.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, Described, Effect, ErrorCode, Prepared, Ran, Reach, Redactor, Shown, ToolCtx, ToolError, ToolOutput,
    ToolSpec, current_trace, secret_forms,
};
use haft_sandbox::web::{Bytes, HeaderMap, Method, Refusal, Request, Response, Url, WebClient, WebError, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    definition::{AuthoredTool, Execution},
    placeholder,
};
use crate::{Platform, platform::mistake};

/// Which call a request belongs to, after those that led to it.
const CALL_ID: &str = "x-haft-call-id";
/// The place in a trace that the request belongs to.
const TRACEPARENT: &str = "traceparent";
/// The most of an answer that is read, and of one that says that something went wrong.
const LARGEST: usize = 8 << 20;
const LARGEST_FAULT: usize = 4 << 10;

/// Sends one request.
pub(super) struct HttpTool {
    spec: ToolSpec,
    execution: Execution,
    platform: Arc<Platform>,
    client: Arc<WebClient>,
}

impl HttpTool {
    pub(super) fn new(
        tool: &AuthoredTool,
        execution: &Execution,
        (platform, client): (&Arc<Platform>, &Arc<WebClient>),
    ) -> Self {
        let (platform, client) = (platform.clone(), client.clone());
        Self { spec: tool.spec(), execution: execution.clone(), platform, client }
    }

    /// The request with everything filled in, and what takes its secrets out of an answer.
    async fn request(&self, ctx: &ToolCtx, input: &Value) -> Result<(Request, Redactor), ToolError> {
        let (host, names) = self.execution.sends()?;
        let mut secrets = HashMap::new();
        for name in names {
            let value = self.platform.secret_for(ctx.scope(), &name, &host).await?;
            secrets.insert(name, value);
        }
        let redactor = Redactor::knowing(Vec::new(), secrets.values().flat_map(|value| forms(value)).collect());
        let secret = |name: &str| secrets.get(name).cloned().unwrap_or_default();
        let url = placeholder::filled(&self.execution.url, |name| encoded(&secret(name)));
        let mut url = Url::parse(&url).map_err(|_| mistake("`execution.url` is no URL with its secrets"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.execution.headers {
            let unfit = || mistake(format!("the header `{name}` cannot be sent with what its secret holds"));
            let name = name.parse::<header::HeaderName>().map_err(|_| unfit())?;
            headers.insert(name, placeholder::filled(value, secret).parse().map_err(|_| unfit())?);
        }
        for call in ctx.caller.via.calls.iter().map(String::as_str).chain([ctx.call_id.as_str()]) {
            headers.append(CALL_ID, call.parse().map_err(|_| mistake("the call has no id that can be sent"))?);
        }
        if let Some(trace) = current_trace().and_then(|trace| trace.header().parse().ok()) {
            headers.entry(TRACEPARENT).or_insert(trace);
        }
        let method = self.execution.method();
        let mut body = Bytes::new();
        if [Method::GET, Method::DELETE].contains(&method) {
            for (name, value) in input.as_object().into_iter().flatten() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                url.query_pairs_mut().append_pair(name, &text);
            }
        } else {
            headers.entry(header::CONTENT_TYPE).or_insert(header::HeaderValue::from_static("application/json"));
            body = Bytes::from(input.to_string());
        }
        let target = self.client.target(url.as_str()).map_err(|refusal| refused(&refusal, &redactor))?;
        let until = Instant::from_std(ctx.deadline);
        Ok((Request { target, method, headers, body, until, silence: Some(self.spec.timeout) }, redactor))
    }

    async fn call(&self, ctx: &ToolCtx, input: &Value) -> Result<ToolOutput, ToolError> {
        let (request, redactor) = self.request(ctx, input).await.map_err(ToolError::having_done_nothing)?;
        let fetched = tokio::select! {
            fetched = self.client.fetch(request, |_| true) => fetched,
            () = ctx.cancel.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled")),
        };
        let response = fetched.map_err(|failure| failed(&failure.error, &redactor))?.response;
        self.answer(response, &redactor).await
    }

    async fn answer(&self, response: Response, redactor: &Redactor) -> Result<ToolOutput, ToolError> {
        let status = response.status;
        let most = if status.is_success() { LARGEST } else { LARGEST_FAULT };
        let read = response.read(most).await.map_err(|error| failed(&error, redactor))?;
        let text = String::from_utf8_lossy(&read.bytes);
        if !status.is_success() {
            let message = format!("`{}` answered with status {}", self.spec.name, status.as_u16());
            let error = ToolError::new(ErrorCode::UpstreamError, message).with("status", status.as_u16());
            return Err(error.with("body", redactor.known(&text).into_owned()));
        }
        let value = serde_json::from_slice(&read.bytes).unwrap_or_else(|_| json!({"text": text}));
        let value = redactor.known_out_of(value);
        let content =
            value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("text")?.as_str());
        let content = content.map_or_else(|| value.to_string(), str::to_owned);
        Ok(ToolOutput { content, structured: value.into(), ..ToolOutput::default() })
    }
}

impl AnyTool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn shown(&self) -> Shown {
        Shown::WhileThereIsRoom
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.spec.effect
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        let Execution { url, method, .. } = &self.execution;
        // Nobody is asked about what would not be sent.
        let checked = self.client.target(url).map_err(|refusal| refused(&refusal, &Redactor::default()));
        let described = checked.map(|target| {
            // Whoever wrote the tool has named the host, so that reading from it needs no other list.
            let reach = Reach { host: target.host().to_owned(), listed: true, sends: method != "GET" };
            let preview = format!("sends {method} to {url}; it cannot be undone");
            Prepared::Plain(Described { reach: Some(reach), ..Described::showing(preview) })
        });
        Box::pin(std::future::ready(described))
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async move { self.call(ctx, input).await.map(Ran::plain) })
    }
}

/// Every way in which a secret may come back.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = secret_forms(secret);
    forms.push(encoded(secret));
    forms
}

/// A secret as part of an address, in which it cannot lead elsewhere.
fn encoded(secret: &str) -> String {
    const INERT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    utf8_percent_encode(secret, INERT).to_string()
}

fn refused(refusal: &Refusal, redactor: &Redactor) -> ToolError {
    ToolError::new(ErrorCode::UrlNotAllowed, redactor.known(&refusal.to_string()).into_owned())
}

fn failed(error: &WebError, redactor: &Redactor) -> ToolError {
    if let WebError::Refused(refusal) = error {
        return refused(refusal, redactor);
    }
    let code = if matches!(error, WebError::Late) { ErrorCode::Timeout } else { ErrorCode::NetworkError };
    let told = ToolError::new(code, redactor.known(&error.to_string()).into_owned());
    if error.nothing_sent() { told.having_done_nothing() } else { told }
}

//! Sends spans to a collector, as OTLP in JSON over the sandbox's own client. Nothing waits for it: what it has no room for is
//! dropped and counted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use haft_runtime::{SpanKind, SpanRecord, SpanSink, TraceContext};
use haft_sandbox::web::{AllowedHost, Bytes, FetchLimits, HeaderMap, Method, Request, WebClient, WebRules, header};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::settings::SpanCollector;

/// How many spans wait to be sent at most, and how many are sent at once.
const MOST_WAITING: usize = 2048;
const BATCH: usize = 256;
/// How long spans are collected before they are sent.
const TOGETHER: Duration = Duration::from_millis(500);
/// How long the collector may take for one batch, and for the last ones when the server ends.
const SENT_WITHIN: Duration = Duration::from_secs(5);
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Takes spans from everybody and sends them.
pub(crate) struct Telemetry {
    waiting: mpsc::Sender<SpanRecord>,
    counts: Arc<SpanCounts>,
    sample: f64,
    content: bool,
    ends: CancellationToken,
    sending: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct SpanCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Telemetry {
    /// Begins to send to a collector, for the node of this name.
    pub(crate) fn start(collector: &SpanCollector, node: &str) -> Result<Arc<Self>> {
        let (waiting, spans) = mpsc::channel(MOST_WAITING);
        let (counts, ends) = (Arc::new(SpanCounts::default()), CancellationToken::new());
        let exporter = SpanExporter::new(collector, node, &counts)?;
        let sending = tokio::spawn(exporter.send_all(spans, ends.clone()));
        let (sample, content) = (collector.sample, collector.content);
        Ok(Arc::new(Self { waiting, counts, sample, content, ends, sending: Mutex::new(Some(sending)) }))
    }

    /// Sends what waits, for a moment.
    pub(crate) async fn finish(&self) {
        self.ends.cancel();
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sending) = sending {
            // Whoever ends the server waits no longer than this for a collector.
            let _in_time = timeout(LAST_WITHIN, sending).await;
        }
    }
}

impl SpanSink for Telemetry {
    fn place(&self, parent: Option<TraceContext>) -> TraceContext {
        let [trace, span] = [(); 2].map(|()| uuid::Uuid::now_v7().as_u128());
        // The last bits of such an id are random.
        let span = u64::try_from(span & u128::from(u64::MAX)).unwrap_or(1);
        match parent {
            Some(parent) => TraceContext { span, ..parent },
            None => {
                let chance = f64::from(u32::try_from(trace & u128::from(u32::MAX)).unwrap_or(0)) / f64::from(u32::MAX);
                TraceContext { trace, span, sampled: self.sample > 0.0 && chance <= self.sample }
            }
        }
    }

    fn ended(&self, span: SpanRecord) {
        if self.waiting.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wants_content(&self) -> bool {
        self.content
    }

    fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Ordering::Relaxed), self.counts.dropped.load(Ordering::Relaxed))
    }
}

struct SpanExporter {
    client: WebClient,
    url: String,
    headers: HeaderMap,
    resource: Value,
    counts: Arc<SpanCounts>,
}

impl SpanExporter {
    fn new(collector: &SpanCollector, node: &str, counts: &Arc<SpanCounts>) -> Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        for (name, value) in &collector.headers {
            let name = name.parse::<header::HeaderName>().context("a header for the collector has no name")?;
            let mut value: header::HeaderValue = value.parse().context("a header for the collector cannot be sent")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let resource = [
            ("service.name", json!(collector.service)),
            ("service.version", json!(env!("CARGO_PKG_VERSION"))),
            ("service.instance.id", json!(node)),
        ];
        let client = WebClient::new(rules(&collector.url)?, FetchLimits::default());
        let resource = json!({"attributes": attributes(&resource)});
        Ok(Self { client, url: collector.url.clone(), headers, resource, counts: Arc::clone(counts) })
    }

    async fn send_all(self, mut spans: mpsc::Receiver<SpanRecord>, ends: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                _some = spans.recv_many(&mut batch, BATCH) => {}
                () = ends.cancelled() => spans.close(),
            }
            if batch.len() < BATCH && !ends.is_cancelled() {
                tokio::select! {
                    () = sleep(TOGETHER) => {}
                    () = ends.cancelled() => {}
                }
            }
            while batch.len() < BATCH
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            self.send(&batch).await;
            batch.clear();
        }
    }

    async fn send(&self, batch: &[SpanRecord]) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        match timeout(SENT_WITHIN, self.post(batch)).await {
            Ok(Ok(())) => drop(self.counts.sent.fetch_add(count, Ordering::Relaxed)),
            failed => {
                self.counts.dropped.fetch_add(count, Ordering::Relaxed);
                let why = failed.map_or_else(
                    |_| "it did not answer in time".to_owned(),
                    |failed| match failed {
                        Ok(()) => String::new(),
                        Err(why) => why,
                    },
                );
                tracing::warn!(spans = count, why, "the collector did not take spans");
            }
        }
    }

    async fn post(&self, batch: &[SpanRecord]) -> Result<(), String> {
        let spans: Vec<Value> = batch.iter().map(written).collect();
        let scope = json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")});
        let body =
            json!({"resourceSpans": [{"resource": self.resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]});
        let request = Request {
            target: self.client.target(&self.url).map_err(|refusal| refusal.to_string())?,
            method: Method::POST,
            headers: self.headers.clone(),
            body: Bytes::from(body.to_string()),
            until: Instant::now() + SENT_WITHIN,
            silence: Some(SENT_WITHIN),
        };
        let response = self.client.send(&request).await.map_err(|error| error.to_string())?;
        match response.status.is_success() {
            true => Ok(()),
            false => Err(format!("it answered with status {}", response.status.as_u16())),
        }
    }
}

/// Only the collector may be reached, wherever the operator put it.
fn rules(url: &str) -> Result<WebRules> {
    let url: haft_sandbox::web::Url = url.parse().context("the address of the collector cannot be read")?;
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let allowed: AllowedHost = format!("{host}:{port}").parse().context("the host of the collector cannot be read")?;
    Ok(WebRules { ports: vec![port], allowed: vec![allowed], ..WebRules::default() })
}

fn written(span: &SpanRecord) -> Value {
    let mut written = json!({
        "traceId": format!("{:032x}", span.place.trace),
        "spanId": format!("{:016x}", span.place.span),
        "name": span.name,
        "kind": match span.kind { SpanKind::Internal => 1, SpanKind::Server => 2 },
        "startTimeUnixNano": span.began.as_nanosecond().to_string(),
        "endTimeUnixNano": span.ended.as_nanosecond().to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        written["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if let Some(error) = &span.error {
        written["status"] = json!({"code": 2, "message": error});
    }
    written
}

fn attributes(all: &[(&'static str, Value)]) -> Vec<Value> {
    let value = |value: &Value| match value {
        Value::Bool(flag) => json!({"boolValue": flag}),
        // Whole numbers of 64 bits are texts in JSON.
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        other @ (Value::Null | Value::Array(_) | Value::Object(_)) => json!({"stringValue": other.to_string()}),
    };
    all.iter().map(|(name, given)| json!({"key": name, "value": value(given)})).collect()
}

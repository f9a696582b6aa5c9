//! What an operator watches, as Prometheus reads it. Everything is counted in memory or by a bounded query, and nothing tells
//! a tenant, a person, or what somebody has called a tool.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::Method;
use futures_util::future::BoxFuture;
use haft_platform::{LatencyCounts, LatencyHistogram};
use haft_runtime::{Delivery, End, Outcome, Scope};

/// What every upstream tool's name begins with.
const UPSTREAM: &str = "mcp__";
/// What a request is counted under that no route is for.
pub(crate) const NO_ROUTE: &str = "none";
/// How far open questions and waiting calls are counted.
pub(crate) const COUNTED: u32 = 10_000;

/// Everything that is counted.
pub struct Metrics {
    began: Instant,
    /// The names of the tools that are part of the program.
    tools: BTreeSet<String>,
    /// Every route, by its own name.
    routes: HashMap<&'static str, &'static str>,
    calls: Mutex<BTreeMap<(String, &'static str), u64>>,
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    call_time: LatencyHistogram,
    request_time: LatencyHistogram,
    streams: AtomicI64,
    /// When the last request came that a person or a program made, in milliseconds since the beginning.
    last_request: AtomicU64,
}

/// What is looked up for each answer.
pub(crate) struct MetricsNow {
    pub(crate) questions: i64,
    pub(crate) waiting: i64,
    pub(crate) reads: LatencyCounts,
    pub(crate) commits: LatencyCounts,
    /// Spans that were sent and that were dropped, where somebody watches.
    pub(crate) spans: Option<(u64, u64)>,
}

impl Metrics {
    /// Counts the calls of these tools each by its name, and of all others by where they come from.
    pub fn new(tools: impl IntoIterator<Item = String>) -> Self {
        let routes = crate::routes::all().into_iter().map(|route| route.path).chain(["/mcp"]).map(|path| (path, path));
        Self {
            began: Instant::now(),
            tools: tools.into_iter().collect(),
            routes: routes.collect(),
            calls: Mutex::default(),
            requests: Mutex::default(),
            call_time: LatencyHistogram::default(),
            request_time: LatencyHistogram::default(),
            streams: AtomicI64::new(0),
            last_request: AtomicU64::new(0),
        }
    }

    /// For how long nobody has asked for anything, and no stream was open.
    pub fn idle_for(&self) -> Duration {
        if self.streams.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.began.elapsed().saturating_sub(Duration::from_millis(self.last_request.load(Ordering::Relaxed)))
    }

    /// The route that is meant by a pattern of the router.
    pub(crate) fn route(&self, pattern: Option<&str>) -> &'static str {
        pattern.and_then(|pattern| self.routes.get(pattern)).copied().unwrap_or(NO_ROUTE)
    }

    /// A request was answered.
    pub(crate) fn answered(&self, (method, route): (&Method, &'static str), status: u16, time: Duration) {
        *held(&self.requests).entry((route, method_label(method), status)).or_default() += 1;
        self.request_time.add(time);
    }

    /// Somebody is there.
    pub(crate) fn somebody_asked(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_request.fetch_max(now, Ordering::Relaxed);
    }

    /// A stream is open for as long as this is held.
    pub(crate) fn stream(self: &Arc<Self>) -> OpenStream {
        self.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    /// What a tool's calls are counted under.
    fn label(&self, tool: &str) -> String {
        match tool {
            known if self.tools.contains(known) => known.to_owned(),
            upstream if upstream.starts_with(UPSTREAM) => "upstream".to_owned(),
            _ => "authored".to_owned(),
        }
    }

    /// All of it in Prometheus' text.
    pub(crate) fn text(&self, now: &MetricsNow) -> String {
        let mut text = MetricsText::default();
        text.kind("haft_build_info", "gauge", "The version of this program.");
        text.line("haft_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        text.kind("haft_calls_total", "counter", "Calls that have ended, by tool and status.");
        for ((tool, status), count) in held(&self.calls).iter() {
            text.line("haft_calls_total", &[("tool", tool), ("status", status)], count);
        }
        text.histogram("haft_call_duration_seconds", "How long the work of calls took.", &self.call_time.counts());
        text.kind("haft_http_requests_total", "counter", "Requests, by route, method and status.");
        for ((route, method, status), count) in held(&self.requests).iter() {
            let labels = [("route", *route), ("method", *method), ("status", &status.to_string())];
            text.line("haft_http_requests_total", &labels, count);
        }
        let what = "How long requests took until their answer began.";
        text.histogram("haft_http_request_duration_seconds", what, &self.request_time.counts());
        text.kind("haft_open_streams", "gauge", "Streams of events that are open.");
        text.line("haft_open_streams", &[], self.streams.load(Ordering::Relaxed));
        text.kind("haft_open_questions", "gauge", "Open questions of all tenants, counted up to 10000.");
        text.line("haft_open_questions", &[], now.questions);
        text.kind("haft_waiting_calls", "gauge", "Calls that wait for an answer, counted up to 10000.");
        text.line("haft_waiting_calls", &[], now.waiting);
        text.histogram("haft_database_read_seconds", "How long reads of the database took.", &now.reads);
        text.histogram("haft_database_commit_seconds", "How long commits of the database took.", &now.commits);
        if let Some((sent, dropped)) = now.spans {
            text.kind("haft_spans_sent_total", "counter", "Spans that the collector took.");
            text.line("haft_spans_sent_total", &[], sent);
            text.kind("haft_spans_dropped_total", "counter", "Spans that the collector did not take in time.");
            text.line("haft_spans_dropped_total", &[], dropped);
        }
        of_process(&mut text);
        text.0
    }
}

impl Delivery for Metrics {
    fn ended<'a>(&'a self, _scope: &'a Scope, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        // What was handed back has not ended.
        if !matches!(outcome.end, End::Pending { .. }) {
            *held(&self.calls).entry((self.label(&outcome.tool), outcome.end.status())).or_default() += 1;
            self.call_time.add(Duration::from_millis(outcome.execution_time_ms));
        }
        Box::pin(std::future::ready(()))
    }
}

/// One open stream.
pub(crate) struct OpenStream(Arc<Metrics>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        // The time without anybody begins now.
        self.0.somebody_asked();
    }
}

/// A client may make methods up.
fn method_label(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

fn held<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory and open files of this process; what the system does not tell is left out.
fn of_process(text: &mut MetricsText) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    if let Some(resident) = kilobytes("VmRSS") {
        text.kind("process_resident_memory_bytes", "gauge", "Memory of the process, shared pages included.");
        text.line("process_resident_memory_bytes", &[], resident * 1024);
    }
    if let Some(private) = kilobytes("RssAnon") {
        text.kind("haft_private_memory_bytes", "gauge", "Memory that is the process's own.");
        text.line("haft_private_memory_bytes", &[], private * 1024);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.kind("process_open_fds", "gauge", "Open file descriptors.");
        text.line("process_open_fds", &[], files.count());
    }
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn kind(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _written = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Labels are words of ours: routes, methods, names of built-in tools. None needs escaping.
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(label, word)| format!("{label}=\"{word}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _written = writeln!(self.0, "{name}{labels} {value}");
    }

    fn histogram(&mut self, name: &str, help: &str, counts: &LatencyCounts) {
        self.kind(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (end, count) in &counts.up_to {
            self.line(&bucket, &[("le", &end.as_secs_f64().to_string())], count);
        }
        self.line(&bucket, &[("le", "+Inf")], counts.count);
        self.line(&format!("{name}_sum"), &[], counts.total.as_secs_f64());
        self.line(&format!("{name}_count"), &[], counts.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_named_is_never_a_label() {
        let metrics = Metrics::new(["read_file".to_owned()]);
        let labels = ["read_file", "my_tool", "mcp__github__search"].map(|tool| metrics.label(tool));
        assert_eq!(labels, ["read_file", "authored", "upstream"]);
        assert_eq!(metrics.route(Some("/api/calls/{id}")), "/api/calls/{id}");
        assert_eq!(metrics.route(Some("/s/secret-token")), NO_ROUTE);
    }

    #[test]
    fn an_open_stream_is_somebody_who_is_there() {
        let metrics = Arc::new(Metrics::new([]));
        let open = metrics.stream();
        assert_eq!(metrics.idle_for(), Duration::ZERO);
        let counts = LatencyHistogram::default().counts();
        let now = MetricsNow { questions: 3, waiting: 2, reads: counts.clone(), commits: counts, spans: None };
        assert!(metrics.text(&now).contains("\nhaft_open_streams 1\n"));
        drop(open);
        let text = metrics.text(&now);
        assert!(text.contains("\nhaft_open_streams 0\n") && text.contains("\nhaft_open_questions 3\n"), "{text}");
    }
}

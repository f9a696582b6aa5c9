//! What every route stands on.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, header};
use futures_util::future::BoxFuture;
use haft_platform::{AuthoredTools, MediaLimits, Platform, SignInsLast, TenantWeb, still_acting};
use haft_runtime::{
    Caller, Catalog, Guard, Journal, Pipeline, Questions, Redactor, SpanSink, ToolError, Workbench, current_trace,
    in_trace,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{client_address::AddressRange, large_bodies::LargeBodies, metrics::Metrics, rates::RateLimits};

/// Everything behind the HTTP door.
pub struct App {
    /// The rules of tenants, people and keys.
    pub platform: Arc<Platform>,
    /// The line.
    pub pipeline: Pipeline,
    /// Which tools.
    pub catalog: Arc<dyn Catalog>,
    /// The tools that people write.
    pub authored: Arc<AuthoredTools>,
    /// The upstream MCP servers of tenants.
    pub servers: Arc<dyn ServerConnections>,
    /// What tenants may reach.
    pub web: TenantWeb,
    /// Who may.
    pub guard: Arc<dyn Guard>,
    /// What is recorded.
    pub journal: Arc<dyn Journal>,
    /// What is asked.
    pub questions: Arc<dyn Questions>,
    /// What is staged.
    pub workbench: Arc<dyn Workbench>,
    /// Takes secrets out of what is shown.
    pub redactor: Redactor,
    /// Where it is reached.
    pub place: Place,
    /// How long people stay signed in.
    pub sign_ins_last: SignInsLast,
    /// The most that may be uploaded.
    pub media_limits: MediaLimits,
    /// Cancelled when no new requests are taken.
    pub stop: CancellationToken,
    /// Requests that are under way.
    pub requests: OpenRequests,
    /// Answered calls that are carried on, whether or not anybody waits for them.
    pub under_way: TaskTracker,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How much is taken from whom.
    pub limits: ServerLimits,
    /// Who watches how long each request takes, if anybody does.
    pub spans: Option<Arc<dyn SpanSink>>,
}

impl App {
    /// Goes on with work of a request whether or not anybody waits for it, in the same name and the same trace.
    pub(crate) fn carry_on<W>(&self, work: W) -> JoinHandle<W::Output>
    where
        W: Future<Output: Send + 'static> + Send + 'static,
    {
        self.under_way.spawn(still_acting(in_trace(current_trace(), work)))
    }
}

/// Requests that are under way.
#[derive(Clone, Debug, Default)]
pub struct OpenRequests {
    /// Each of them.
    pub each: TaskTracker,
    /// Cancelled when those that are left have had their time.
    pub cut: CancellationToken,
}

/// The connections with tenants' upstream MCP servers.
pub trait ServerConnections: Send + Sync {
    /// Takes in at once what was saved, and meets new servers in the background.
    fn notice<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Asks a server for its tools now. What came of it is in what is known of the server.
    fn refresh<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Accepts what a server said last of its tools, and says which tools that are.
    fn accept<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
        wanted: &'a AcceptedTools,
    ) -> BoxFuture<'a, Result<Vec<String>, ToolError>>;
}

/// What somebody accepts of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedTools {
    /// Only this tool; all without it.
    pub tool: Option<String>,
    /// What they were shown; whatever is there without it.
    pub digest: Option<String>,
}

/// How much is taken from whom.
pub struct ServerLimits {
    /// How many requests.
    pub rates: RateLimits,
    /// How many connections at a time.
    pub connections: usize,
    /// How many large requests are read at a time.
    pub bodies: LargeBodies,
    /// Whose word counts for where a request comes from.
    pub proxies: Arc<[AddressRange]>,
}

/// Where the server is reached.
#[derive(Clone, Debug)]
pub struct Place {
    /// The address it listens at.
    pub listens_at: SocketAddr,
    /// The address that people use, where that is another one.
    pub public_url: Option<String>,
}

impl Place {
    /// The address of its pages, without a slash at the end.
    pub fn url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listens_at),
        }
    }

    /// The address by which this request reached it: clients compare what they are told with what they asked.
    pub(crate) fn url_for(&self, headers: &HeaderMap) -> String {
        match (&self.public_url, headers.get(header::HOST).and_then(|host| host.to_str().ok())) {
            (None, Some(host)) => format!("http://{host}"),
            (Some(_), _) | (None, None) => self.url(),
        }
    }

    /// Whether cookies travel over TLS alone.
    pub(crate) fn is_secure(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// Whether a name, without its port, leads here by no trick of the DNS.
    pub(crate) fn is_host(&self, host: &str) -> bool {
        let is_public =
            self.public_url.as_deref().and_then(host_of).is_some_and(|ours| ours.eq_ignore_ascii_case(host));
        is_public || Self::is_local_host(host) || address_of(host) == Some(self.listens_at.ip())
    }

    /// Whether a name, without its port, means this machine itself.
    pub(crate) fn is_local_host(host: &str) -> bool {
        host.eq_ignore_ascii_case("localhost") || address_of(host).is_some_and(|address| address.is_loopback())
    }

    /// Whether a page of this origin is one of ours.
    pub(crate) fn is_origin(&self, origin: &str) -> bool {
        if self.public_url.is_some() {
            return origin.eq_ignore_ascii_case(&self.url());
        }
        let Some(rest) = origin.strip_prefix("http://") else { return false };
        let (host, port) = split_port(rest);
        self.is_host(host) && port == Some(self.listens_at.port())
    }
}

/// The address that a host is, if it is no name.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The host of an address, without its port.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    Some(split_port(rest.split('/').next().unwrap_or_default()).0)
}

/// A host and its port. An address of version 6 stands in brackets.
pub(crate) fn split_port(host: &str) -> (&str, Option<u16>) {
    let after_bracket = host.rfind(']').map_or(0, |end| end + 1);
    match host[after_bracket..].rfind(':') {
        Some(colon) => (&host[..after_bracket + colon], host[after_bracket + colon + 1..].parse().ok()),
        None => (host, None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn only_our_own_names_and_pages_are_ours() {
        let here = Place { listens_at: "127.0.0.1:7373".parse().unwrap(), public_url: None };
        for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
            assert!(here.is_host(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "192.168.0.1", ""] {
            assert!(!here.is_host(host), "{host}");
        }
        assert!(here.is_origin("http://127.0.0.1:7373") && here.is_origin("http://localhost:7373"));
        for origin in ["http://127.0.0.1:8080", "https://127.0.0.1:7373", "http://evil.example:7373", "null"] {
            assert!(!here.is_origin(origin), "{origin}");
        }
        let public = Place { public_url: Some("https://haft.example/".to_owned()), ..here };
        assert!(public.is_host("haft.example") && public.is_secure());
        assert!(public.is_origin("https://haft.example") && !public.is_origin("http://haft.example"));
    }

    #[test]
    fn ports_are_cut_off() {
        assert_eq!(split_port("[::1]:80"), ("[::1]", Some(80)));
        assert_eq!(split_port("[::1]"), ("[::1]", None));
        assert_eq!(split_port("a:1"), ("a", Some(1)));
        assert_eq!(split_port("a"), ("a", None));
    }
}

//! The server over HTTP, as a service that the HTTP door nests.

use std::{net::SocketAddr, sync::Arc};

use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio_util::sync::CancellationToken;

use crate::{frame, server::Server};

/// The longest message that is read.
const LONGEST: usize = 16 << 20;

/// Answers requests of both eras.
pub type HttpService = StreamableHttpService<Server, LocalSessionManager>;

impl Server {
    /// The service behind an address. Pages of other origins, and names that lead here by a trick of the DNS, are turned
    /// away.
    pub fn over_http(&self, address: SocketAddr, stop: CancellationToken) -> HttpService {
        over_http(self.clone(), address, stop)
    }
}

/// The same for whatever answers as our server does.
pub fn over_http<S: ServerHandler + Clone>(
    server: S,
    address: SocketAddr,
    stop: CancellationToken,
) -> StreamableHttpService<S, LocalSessionManager> {
    let mut config = StreamableHttpServerConfig::default().with_cancellation_token(stop).enforce_origin_validation();
    config.max_request_body_bytes = LONGEST;
    // A page of this very address is no stranger.
    config.allowed_origins.push(format!("http://{address}"));
    if !address.ip().is_unspecified() {
        config.allowed_hosts.push(address.ip().to_string());
    }
    StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config)
}

/// The JSON-RPC error for a body that is no message, as a line of standard input that is none has it.
pub fn misread(body: &[u8]) -> Option<String> {
    frame::refusal(body).and_then(|error| serde_json::to_string(&error).ok())
}

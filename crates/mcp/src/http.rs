//! The server over HTTP, as a service that the HTTP door nests.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::SessionConfig,
    },
};
use serde::{Deserialize, de::IgnoredAny};
use tokio_util::sync::CancellationToken;

use crate::{frame, server::Server, sessions::Sessions};

/// The longest message that is read.
pub const LONGEST_MESSAGE: usize = 16 << 20;

/// How long a session of the older era may say nothing. A call that says nothing must end before its session does.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// Answers requests of both eras.
pub type HttpService = StreamableHttpService<Server, Sessions>;

impl Server {
    /// The service behind an address. Pages of other origins, and names that lead here by a trick of the DNS, are turned
    /// away.
    pub fn over_http(&self, address: SocketAddr, stop: CancellationToken) -> HttpService {
        over_http(self.clone(), address, stop)
    }

    /// The service behind a door that has turned such pages and names away itself, and its sessions.
    pub fn behind_a_door(&self, stop: CancellationToken) -> (HttpService, Arc<Sessions>) {
        let config = StreamableHttpServerConfig::default().with_cancellation_token(stop).disable_allowed_hosts();
        let sessions = Arc::new(Sessions::new(lasting()));
        (service(self.clone(), &sessions, config.disable_allowed_origins()), sessions)
    }
}

/// The same for whatever answers as our server does.
pub fn over_http<S: ServerHandler + Clone>(
    server: S,
    address: SocketAddr,
    stop: CancellationToken,
) -> StreamableHttpService<S, Sessions> {
    let mut config = StreamableHttpServerConfig::default().with_cancellation_token(stop).enforce_origin_validation();
    // A page of this very address is no stranger.
    config.allowed_origins.push(format!("http://{address}"));
    if !address.ip().is_unspecified() {
        config.allowed_hosts.push(address.ip().to_string());
    }
    service(server, &Arc::new(Sessions::new(lasting())), config)
}

fn service<S: ServerHandler + Clone>(
    server: S,
    sessions: &Arc<Sessions>,
    mut config: StreamableHttpServerConfig,
) -> StreamableHttpService<S, Sessions> {
    config.max_request_body_bytes = LONGEST_MESSAGE;
    StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(sessions), config)
}

fn lasting() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(SILENCE);
    config
}

/// The JSON-RPC error for a body that is no message, as a line of standard input that is none has it.
pub fn misread(body: &[u8]) -> Option<String> {
    frame::refusal(body).and_then(|error| serde_json::to_string(&error).ok())
}

/// What tells an answer from everything else that a server says.
#[derive(Deserialize)]
struct MessageKind {
    method: Option<IgnoredAny>,
}

/// Whether a message of the server ends a request.
pub fn is_answer(message: &str) -> bool {
    serde_json::from_str::<MessageKind>(message).is_ok_and(|kind| kind.method.is_none())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::lasting;

    #[test]
    fn a_session_outlives_the_longest_silence_of_a_call() {
        let kept = lasting().keep_alive.unwrap();
        assert!(kept > haft_runtime::Limits::default().longest_work * 10 && kept < Duration::from_secs(48 * 3600));
    }
}

//! Which era of the protocol a server speaks. rmcp asks a server of which nothing is known `server/discover`, and after ten
//! seconds begins as the older era does. A server that is slow to start answers both by then, and in its own order.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    RoleClient,
    model::{ClientRequest, JsonRpcMessage, ProtocolVersion},
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, RxJsonRpcMessage,
        TxJsonRpcMessage,
    },
    transport::Transport,
};

use super::notifications::Notifications;

/// A conversation with a server.
pub(super) type UpstreamService = RunningService<RoleClient, Arc<Notifications>>;

/// Begins a conversation: as the same command began before, or by trying.
pub(super) async fn begin<T: Transport<RoleClient> + 'static>(
    transport: impl Fn() -> Result<T, String>,
    notifications: &Arc<Notifications>,
    known: Option<&str>,
    told: impl Fn(&ClientInitializeError) -> String,
) -> Result<UpstreamService, String> {
    let probe = EraProbe { inner: transport()?, asked: None, gave_up: Arc::default() };
    let gave_up = Arc::clone(&probe.gave_up);
    let failed = match Arc::clone(notifications).serve_with_lifecycle(probe, lifecycle(known)).await {
        Ok(conversation) => return Ok(conversation),
        Err(failed) => failed,
    };
    let refused = matches!(failed, ClientInitializeError::JsonRpcError(_));
    if !(refused && gave_up.load(Ordering::SeqCst)) {
        return Err(told(&failed));
    }
    // It was slow and does not begin as the older era does, so it may be of the newer one.
    let newer = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let begun = Arc::clone(notifications).serve_with_lifecycle(transport()?, newer).await;
    begun.map_err(|_| told(&failed))
}

fn lifecycle(known: Option<&str>) -> ClientLifecycleMode {
    let latest = || vec![ProtocolVersion::LATEST];
    let spoke =
        known.and_then(|known| ProtocolVersion::KNOWN_VERSIONS.iter().find(|version| version.as_str() == known));
    match spoke {
        Some(version) if version.has_initialize() => ClientLifecycleMode::Initialize,
        Some(_) => ClientLifecycleMode::Discover { preferred_versions: latest() },
        None => ClientLifecycleMode::Auto {
            preferred_versions: latest(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

/// Keeps an answer from rmcp that comes when the question is no longer open: it would take it for a wrong one.
struct EraProbe<T> {
    inner: T,
    /// The id of the question for the newer era, until it is answered.
    asked: Option<String>,
    /// Whether the older era was begun before the answer came.
    gave_up: Arc<AtomicBool>,
}

impl<T> EraProbe<T> {
    fn note(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
            self.asked = Some(request.id.to_string());
        } else if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            self.gave_up.store(self.asked.is_some(), Ordering::SeqCst);
        }
    }

    /// Whether a message is the answer to a question that was given up.
    fn is_late(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let answers = id.is_some_and(|id| self.asked.as_ref() == Some(&id.to_string()));
        if answers {
            self.asked = None;
        }
        answers && self.gave_up.load(Ordering::SeqCst)
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for EraProbe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.note(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        sync::{Arc, OnceLock},
    };

    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
        net::{
            UnixStream,
            unix::{OwnedReadHalf, OwnedWriteHalf},
        },
    };

    use super::{
        super::{
            cause, child::StderrTail, notifications::Notifications, secret_filter::SecretFilter, wire::SocketTransport,
        },
        begin,
    };

    /// The other end of the conversation.
    struct SlowServer {
        heard: Lines<BufReader<OwnedReadHalf>>,
        says: OwnedWriteHalf,
    }

    impl SlowServer {
        /// The next request, which must be this one; gives its id.
        async fn hears(&mut self, method: &str) -> Value {
            let line = self.heard.next_line().await.unwrap().unwrap();
            let heard: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(heard["method"], method, "{heard}");
            heard["id"].clone()
        }

        async fn says(&mut self, id: &Value, what: &str, said: Value) {
            let line = json!({ "jsonrpc": "2.0", "id": id, what: said });
            self.says.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
    }

    const NO: &str = "error";
    const YES: &str = "result";

    fn unknown() -> Value {
        json!({ "code": -32601, "message": "Method not found" })
    }

    fn discovered() -> Value {
        json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0,
            "cacheScope": "private" })
    }

    /// The version of a conversation with a server that does so. Time passes when everybody waits.
    async fn spoken<F: Future<Output = SlowServer>>(serve: impl FnOnce(SlowServer) -> F) -> Result<String, String> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (heard, says) = theirs.into_split();
        let server = serve(SlowServer { heard: BufReader::new(heard).lines(), says });
        let wire = SocketTransport::new(ours, StderrTail::default(), Arc::new(OnceLock::new()));
        let filter = Arc::new(SecretFilter::new("slow", haft_runtime::Redactor::default(), None));
        let notifications = Arc::new(Notifications::new(filter));
        let begun = begin(|| Ok(wire.clone()), &notifications, None, cause::of_beginning);
        let (begun, _server) = tokio::join!(begun, server);
        begun.map(|service| service.peer_info().unwrap().protocol_version.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_no_to_the_newer_era_is_no_answer_to_the_older_one() {
        let version = spoken(|mut server| async move {
            let probe = server.hears("server/discover").await;
            let begins = server.hears("initialize").await;
            server.says(&probe, NO, unknown()).await;
            let info = json!({ "name": "slow", "version": "1" });
            let said = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info });
            server.says(&begins, YES, said).await;
            server.hears("notifications/initialized").await;
            server
        });
        assert_eq!(version.await.unwrap(), "2025-06-18");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_of_the_newer_era_is_known_by_its_answers_in_either_order() {
        for late_first in [true, false] {
            let version = spoken(|mut server| async move {
                let probe = server.hears("server/discover").await;
                let begins = server.hears("initialize").await;
                if late_first {
                    server.says(&probe, YES, discovered()).await;
                }
                server.says(&begins, NO, unknown()).await;
                let asked = server.hears("server/discover").await;
                server.says(&asked, YES, discovered()).await;
                server
            });
            assert_eq!(version.await.unwrap(), "2026-07-28", "{late_first}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_refuses_both_is_told_in_its_own_words() {
        let refused = spoken(|mut server| async move {
            server.hears("server/discover").await;
            let begins = server.hears("initialize").await;
            server.says(&begins, NO, json!({ "code": -32000, "message": "no licence" })).await;
            let asked = server.hears("server/discover").await;
            server.says(&asked, NO, unknown()).await;
            server
        });
        assert_eq!(refused.await.unwrap_err(), "it answers with an error: no licence");
    }
}

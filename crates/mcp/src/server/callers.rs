//! Whose each request is.

use std::ops::Deref;

use futures_util::future::BoxFuture;
use haft_runtime::{Caller, ToolError, TraceContext};
use rmcp::{ErrorData, RoleServer, model::Extensions, service::RequestContext};

use super::{Server, asking};

/// Makes a caller of what came with a request. Nothing that a client says of itself makes one: its name is only shown.
pub trait Callers: Send + Sync {
    /// Who asks.
    fn caller<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>>;

    /// Who answers what a call of this client asks: the person behind it.
    fn answerer<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>>;
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct ClientPeer<'a> {
    /// What the client calls itself.
    pub name: String,
    /// Whom the HTTP door has let in; `None` over standard input and output, where the client is its owner's.
    pub admitted: Option<&'a Caller>,
}

impl<'a> ClientPeer<'a> {
    /// Of a request.
    pub(super) fn of(context: &'a RequestContext<RoleServer>) -> Self {
        Self { name: asking::client(context), admitted: admitted(&context.extensions) }
    }
}

/// The HTTP door puts the caller beside the request, before its body is read.
pub(super) fn admitted(extensions: &Extensions) -> Option<&Caller> {
    extensions.get::<http::request::Parts>()?.extensions.get()
}

/// The place in a trace that the HTTP door knows of.
pub(super) fn trace(extensions: &Extensions) -> Option<TraceContext> {
    extensions.get::<http::request::Parts>()?.extensions.get().copied()
}

/// One request: the server, and whose it is.
pub(super) struct ClientRequest {
    server: Server,
    /// Who asks.
    pub(super) caller: Caller,
    /// Who answers what is asked about it.
    pub(super) answerer: Caller,
}

impl Deref for ClientRequest {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Server {
    /// The request of whoever is at the other end. Whom nobody knows is refused.
    pub(super) async fn request(&self, client: ClientPeer<'_>) -> Result<ClientRequest, ErrorData> {
        let unknown = |error: ToolError| ErrorData::invalid_request(error.message, None);
        let caller = self.ground.callers.caller(client.clone()).await.map_err(unknown)?;
        let answerer = self.ground.callers.answerer(client).await.map_err(unknown)?;
        Ok(ClientRequest { server: self.clone(), caller, answerer })
    }
}

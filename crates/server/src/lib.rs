//! The HTTP door: one route, `/mcp`, for whoever has the token.

mod misread;
mod patience;
mod reply;
mod token;

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use haft_mcp::Server;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use patience::HeadTimeout;
pub use token::Token;

const JSON: &str = "application/json";

/// Serves until it is told to stop; what is under way then is ended.
pub async fn serve(listener: TcpListener, server: &Server, token: Token, stop: CancellationToken) -> io::Result<()> {
    let address = listener.local_addr()?;
    let app = shaped(Router::new().route_service("/mcp", server.over_http(address, stop.clone())))
        .layer(from_fn_with_state(Arc::new(token), admit));
    axum::serve(HeadTimeout(listener), app).with_graceful_shutdown(stop.cancelled_owned()).await
}

/// The same service with replies as clients want them.
pub fn shaped(service: Router) -> Router {
    service.layer(from_fn(reply::fit)).layer(from_fn(misread::answer))
}

/// Nobody gets past without the token, not even to a page that does not exist.
async fn admit(State(token): State<Arc<Token>>, headers: HeaderMap, mut request: Request, next: Next) -> Response {
    // Of two, only one would be looked at.
    let told_once = [header::HOST, header::ORIGIN, header::AUTHORIZATION];
    if told_once.iter().any(|name| headers.get_all(name).iter().count() > 1) {
        return (StatusCode::BAD_REQUEST, [(header::CONNECTION, "close")], "a header stands there twice")
            .into_response();
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    let given = given.and_then(|given| given.split_once(' ')).filter(|(way, _)| way.eq_ignore_ascii_case("bearer"));
    match given {
        Some((_, given)) if token.is(given.trim()) => {
            // From here on it is known who asks, before anything of the body is read.
            request.extensions_mut().insert(token.caller().clone());
            next.run(request).await
        }
        Some(_) => refused("the token is not the one of this server; `haft mcp --http` prints where it is kept"),
        None => refused("send `Authorization: Bearer TOKEN`; `haft mcp --http` prints where the token is kept"),
    }
}

fn refused(why: &'static str) -> Response {
    // Whoever has no token keeps no connection either.
    let headers = [(header::WWW_AUTHENTICATE, "Bearer realm=\"haft\""), (header::CONNECTION, "close")];
    (StatusCode::UNAUTHORIZED, headers, why).into_response()
}

//! The HTTP door: REST, events, MCP over HTTP, small pages.

mod admit;
mod app;
mod client_address;
mod connections;
mod event_view;
mod large_bodies;
mod mcp_sessions;
mod metrics;
mod misread;
mod observe;
mod openapi;
mod pace;
mod problem;
mod rates;
mod refusal;
mod reply;
mod route;
mod routes;
mod token;
#[cfg(test)]
mod typescript;

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use haft_mcp::Server;
use haft_runtime::{CallerKind, ErrorCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use admit::Admission;
pub use app::{AcceptedTools, App, OpenRequests, Place, ServerConnections, ServerLimits};
pub use client_address::AddressRange;
pub use connections::listen;
pub use large_bodies::LargeBodies;
use mcp_sessions::SessionOwners;
pub use metrics::Metrics;
use problem::Problem;
pub use rates::{Rate, RateLimits, Rates};
pub use routes::servers::server_view;
pub use token::Token;

const JSON: &str = "application/json";
/// How many connections one owner's clients have at a time.
const CONNECTIONS_OF_ONE: usize = 1000;

/// Serves everything that there is for tenants, until no new connections shall be taken. Before that, `App::stop` says that no
/// new requests are, and whoever asks is told so.
pub async fn serve_tenants(
    listener: TcpListener,
    app: Arc<App>,
    mcp: &Server,
    closing: CancellationToken,
) -> io::Result<()> {
    let (mcp, sessions) = mcp.behind_a_door(app.stop.clone());
    let known = McpDoor { owners: SessionOwners::default(), sessions, app: Arc::clone(&app) };
    let mcp = shaped(Router::new().route_service("/mcp", mcp)).layer(from_fn_with_state(Arc::new(known), known_only));
    let everything = route::router(&routes::all())
        .with_state(Arc::clone(&app))
        .merge(mcp)
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), admit::admit))
        .layer(from_fn_with_state(Arc::clone(&app), guarded))
        .layer(from_fn_with_state(Arc::clone(&app), observe::observe))
        .layer(from_fn_with_state(Arc::clone(&app.limits.proxies), client_address::locate));
    connections::serve(listener, everything, app.limits.connections, closing).await
}

/// What stands before MCP.
struct McpDoor {
    owners: SessionOwners,
    sessions: Arc<haft_mcp::Sessions>,
    app: Arc<App>,
}

/// MCP is for those who are known, whatever they ask, each with the sessions that they began.
async fn known_only(State(door): State<Arc<McpDoor>>, mut request: Request, next: Next) -> Response {
    let (caller, tenant) = match request.extensions().get::<Admission>() {
        Some(Admission::Known(identity)) if identity.caller.id.kind == CallerKind::Token => {
            return route::only_a_token().into_response();
        }
        Some(Admission::Known(identity)) => (identity.caller.id.clone(), identity.caller.scope.tenant().clone()),
        Some(Admission::Refused(error)) => return Problem::from(error.clone()).into_response(),
        Some(Admission::Nobody) | None => return route::nobody().into_response(),
    };
    if !door.owners.admit(request.headers(), &caller) {
        return Problem::not_found("such session").into_response();
    }
    match door.app.limits.bodies.place(request.headers(), &tenant) {
        Ok(place) => _ = request.extensions_mut().insert(place),
        Err(problem) => return problem.into_response(),
    }
    let response = next.run(request).await;
    if let Some(oldest) = door.owners.note(response.headers(), &caller) {
        door.sessions.end(&oldest).await;
    }
    response
}

/// What holds for every request and every answer, whoever asks for whatever.
async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let url = app.place.url_for(request.headers());
    let mut response = refusal::shape(request, next).await;
    admit::protect(response.headers_mut());
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().extend(challenge(&url).map(|challenge| (header::WWW_AUTHENTICATE, challenge)));
    }
    response
}

/// Tells whoever is not known where to look for how to get in.
fn challenge(url: &str) -> Option<HeaderValue> {
    let metadata = format!("{url}/.well-known/oauth-protected-resource/mcp");
    HeaderValue::from_str(&format!("Bearer realm=\"haft\", resource_metadata=\"{metadata}\"")).ok()
}

async fn unknown_route() -> Problem {
    Problem::not_found("such route; /openapi.json lists them all")
}

async fn wrong_method() -> Problem {
    Problem::new(ErrorCode::InvalidArgs, "this route has no such method; /openapi.json lists them all")
        .status(StatusCode::METHOD_NOT_ALLOWED)
}

/// Serves one owner's tools until it is told to stop; what is under way then is ended.
pub async fn serve(listener: TcpListener, server: &Server, token: Token, stop: CancellationToken) -> io::Result<()> {
    let address = listener.local_addr()?;
    let app = shaped(Router::new().route_service("/mcp", server.over_http(address, stop.clone())))
        .layer(from_fn_with_state(Arc::new(token), admit_owner))
        .layer(from_fn(refusal::survive));
    connections::serve(listener, app, CONNECTIONS_OF_ONE, stop).await
}

/// The same service with replies as clients want them.
pub fn shaped(service: Router) -> Router {
    service.layer(from_fn(reply::fit)).layer(from_fn(misread::answer))
}

/// Nobody gets past without the token, not even to a page that does not exist.
async fn admit_owner(
    State(token): State<Arc<Token>>,
    headers: HeaderMap,
    mut request: Request,
    next: Next,
) -> Response {
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

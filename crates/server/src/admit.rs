//! Before anything of a body is read: whether the request may come here at all, and who asks.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use haft_platform::{Actor, CallerIdentity, Credential, acting_as};
use haft_runtime::{CallId, ErrorCode, Source, TenantId, ToolError};

use crate::{
    app::{App, Place, split_port},
    client_address::ClientAddress,
    problem::Problem,
};

/// The cookie of a signed-in person.
pub(crate) const COOKIE: &str = "haft";
/// The call of an http tool that a request comes from, and those before it.
const CALL_ID: HeaderName = HeaderName::from_static("x-haft-call-id");
/// How many calls may lead to a request, one by the other.
const MOST_CALLS_BEFORE: usize = 5;
/// What a page sends with every change.
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// Who asks, as far as that is known.
#[derive(Clone)]
pub(crate) enum Admission {
    /// Somebody.
    Known(Box<CallerIdentity>),
    /// Nobody said.
    Nobody,
    /// Somebody with a credential that does not count.
    Refused(ToolError),
}

/// Looks at the head of every request.
pub(crate) async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_health = matches!(path, "/healthz" | "/readyz");
    let watches = path == "/metrics";
    // Whoever signs in shows something else than who they are now.
    let signs_in = matches!(path, "/api/sign-in" | "/sign-in");
    let client = request.extensions().get::<ClientAddress>().copied();
    if !is_health && let Err(problem) = look_at_head(&app, &request) {
        return app.limits.rates.count_unknown(client).err().unwrap_or(problem).into_response();
    }
    let source = if path == "/mcp" { Source::Mcp } else { Source::Api };
    // A body cannot be looked at from two places, so that only the head is held meanwhile.
    let (parts, body) = request.into_parts();
    let identified = match signs_in {
        true => Ok(Admission::Nobody),
        false => identify(&app, (&parts.method, &parts.headers), source).await,
    };
    let mut request = Request::from_parts(parts, body);
    let mut admission = match identified {
        Ok(admission) => admission,
        Err(problem) => return app.limits.rates.count_unknown(client).err().unwrap_or(problem).into_response(),
    };
    if !is_health && let Err(problem) = app.limits.rates.count(client, &admission) {
        return problem.into_response();
    }
    if watches && !may_watch(&request, &admission) {
        let message = "metrics are for this machine itself, and for keys of tenant `local`";
        return Problem::new(ErrorCode::Forbidden, message).into_response();
    }
    let mut caller = None;
    if let Admission::Known(identity) = &mut admission {
        identity.caller.via.calls = match calls_before(request.headers()) {
            Ok(calls) => calls,
            Err(problem) => return problem.into_response(),
        };
        caller = Some(identity.caller.id.clone());
        // The MCP server takes its caller from here.
        request.extensions_mut().insert(identity.caller.clone());
    }
    let actor = actor(&admission, source, client);
    request.extensions_mut().insert(admission);
    let mut response = acting_as(actor, next.run(request)).await;
    if let Some(caller) = caller {
        // The log takes its caller from here.
        response.extensions_mut().insert(caller);
    }
    response
}

/// In whose name everything is done that a request asks for.
fn actor(admission: &Admission, source: Source, client: Option<ClientAddress>) -> Actor {
    let address = client.map(|client| client.0.to_string());
    let Admission::Known(identity) = admission else {
        return Actor { by: None, source, via: None, address };
    };
    let via = match (&identity.consent, &identity.sign_in) {
        (Some(consent), _) => Some(format!("program:{consent}")),
        (None, Some(_)) => Some("page".to_owned()),
        (None, None) => Some(identity.caller.id.to_string()),
    };
    Actor { by: Some(identity.caller.who()), source: identity.caller.source, via, address }
}

/// The calls that led to this request; tools that call each other in a circle come to an end here.
fn calls_before(headers: &HeaderMap) -> Result<Vec<String>, Problem> {
    let told = headers.get_all(CALL_ID).iter().filter_map(|told| told.to_str().ok());
    let calls: Vec<&str> = told.flat_map(|told| told.split(',')).map(str::trim).collect();
    if calls.len() > MOST_CALLS_BEFORE {
        let message = format!("{} calls led to this one, which looks like a circle of tools", calls.len());
        return Err(Problem::new(ErrorCode::Forbidden, message));
    }
    match calls.iter().find(|call| CallId::parse(call).is_none()) {
        Some(_) => Err(Problem::mistake("`X-Haft-Call-Id` is no id of a call")),
        None => Ok(calls.into_iter().map(str::to_owned).collect()),
    }
}

fn look_at_head(app: &App, request: &Request) -> Result<(), Problem> {
    let (method, headers, path) = (request.method(), request.headers(), request.uri().path());
    // Of two, only one would be looked at.
    let told_once = [header::HOST, header::ORIGIN, header::AUTHORIZATION, header::CONTENT_TYPE, CSRF];
    if let Some(name) = told_once.iter().find(|name| headers.get_all(*name).iter().count() > 1) {
        return Err(Problem::mistake(format!("the header `{name}` stands there twice")));
    }
    let host = text(headers, &header::HOST).map(|host| split_port(host).0);
    // A whole address in the place of the path counts more than the header.
    let named = [request.uri().host(), host].into_iter().flatten();
    if host.is_none() || !named.into_iter().all(|host| app.place.is_host(host)) {
        let message = "this server is not called that; open the address that it printed, or set serve.public_url";
        return Err(Problem::new(ErrorCode::Forbidden, message).status(StatusCode::MISDIRECTED_REQUEST));
    }
    let changes = !matches!(*method, Method::GET | Method::HEAD);
    if changes && headers.contains_key(header::ORIGIN) {
        let origin = text(headers, &header::ORIGIN);
        // The file by which `haft open` signs in has no origin. It shows a code that only this machine's user knows.
        let is_from_file = path == "/sign-in" && origin == Some("null") && app.place.public_url.is_none();
        if !is_from_file && !origin.is_some_and(|origin| app.place.is_origin(origin)) {
            return Err(Problem::new(ErrorCode::Forbidden, "pages of another origin change nothing here"));
        }
    }
    Ok(())
}

/// Whether somebody may see what is counted here: whoever is on this machine and comes by no proxy, and the operator's keys.
fn may_watch(request: &Request, admission: &Admission) -> bool {
    let is_operator = match admission {
        Admission::Known(identity) => *identity.caller.scope.tenant() == TenantId::local(),
        Admission::Nobody | Admission::Refused(_) => false,
    };
    let headers = request.headers();
    let client = request.extensions().get::<ClientAddress>();
    let is_near = client.is_some_and(|client| client.0.is_loopback());
    let by_proxy = headers.contains_key("x-forwarded-for") || headers.contains_key(header::FORWARDED);
    let host = text(headers, &header::HOST).map(|host| split_port(host).0);
    is_operator || (is_near && !by_proxy && host.is_some_and(Place::is_local_host))
}

async fn identify(app: &App, (method, headers): (&Method, &HeaderMap), source: Source) -> Result<Admission, Problem> {
    if let Some(given) = text(headers, &header::AUTHORIZATION) {
        let bearer = given.split_once(' ').filter(|(way, _)| way.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = bearer else { return Ok(Admission::Refused(not_a_bearer())) };
        return Ok(admitted(app.platform.identify(Credential::Bearer(token.trim()), source).await));
    }
    let Some(cookie) = cookie(headers) else { return Ok(Admission::Nobody) };
    let admission = admitted(app.platform.identify(Credential::Cookie(cookie), source).await);
    if let Admission::Known(identity) = &admission
        && !matches!(*method, Method::GET | Method::HEAD)
    {
        let csrf = text(headers, &CSRF).unwrap_or_default();
        let is_ours = identity.sign_in.as_ref().is_some_and(|known| app.platform.is_from_its_page(known, csrf));
        if !is_ours {
            let message = "a change by cookie needs the X-CSRF-Token that the sign-in gave its page";
            return Err(Problem::new(ErrorCode::Forbidden, message));
        }
    }
    Ok(admission)
}

fn admitted(identified: Result<CallerIdentity, ToolError>) -> Admission {
    match identified {
        Ok(identity) => Admission::Known(Box::new(identity)),
        Err(error) => Admission::Refused(error),
    }
}

fn not_a_bearer() -> ToolError {
    ToolError::new(ErrorCode::Unauthorized, "send `Authorization: Bearer KEY`")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The value of our cookie.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// What keeps browsers from doing more with an answer than it is for.
pub(crate) fn protect(headers: &mut HeaderMap) {
    let set = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; \
             object-src 'none'",
        ),
    ];
    for (name, value) in set {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

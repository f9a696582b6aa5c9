//! One route is one line: from it come the router, the check of the permission and the description in `openapi.json`.

use std::{
    borrow::Cow, collections::HashMap, future::Future, marker::PhantomData, net::IpAddr, sync::Arc, time::Duration,
};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{FromRequestParts, Path, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use futures_util::future::BoxFuture;
use haft_platform::{CallerIdentity, Permission};
use haft_runtime::{Caller, CallerKind, ErrorCode};
use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{admit::Admission, app::App, client_address::ClientAddress, problem::Problem};

/// The longest body of a request that is no upload.
pub(crate) const LONGEST_BODY: usize = 8 << 20;
/// The same of somebody who is not known.
const LONGEST_OF_STRANGERS: usize = 16 << 10;
/// How long a body may take to come.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// Anybody, known or not.
    Open,
    /// Whoever is known, as person or key.
    Known,
    /// Whoever is known, and holders of a token that ends one call: the handler looks at what they may.
    KnownOrToken,
    /// Whoever has this permission.
    Needs(Permission),
}

/// One route with everything that is known of it.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: RouteAccess,
    /// What it does, in a sentence.
    pub(crate) what: &'static str,
    pub(crate) query: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) body: fn(&mut SchemaGenerator) -> Schema,
    /// `None` where it answers with something else than JSON.
    pub(crate) reply: Option<fn(&mut SchemaGenerator) -> Schema>,
    answer: Answering,
}

type Answering = Arc<dyn Fn(Arc<App>, Admission, Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// A request that was let in, read as far as its route says.
pub(crate) struct Asked<Q = NoFields, B = NoFields> {
    pub(crate) app: Arc<App>,
    /// Who asks; `None` only on open routes.
    pub(crate) identity: Option<Box<CallerIdentity>>,
    /// The parts of the path that vary.
    pub(crate) path: HashMap<String, String>,
    pub(crate) query: Q,
    pub(crate) body: B,
    pub(crate) headers: HeaderMap,
    /// Where the request comes from, where that tells one client from another.
    pub(crate) from: Option<IpAddr>,
}

impl<Q, B> Asked<Q, B> {
    /// Who asks, and how that is known.
    pub(crate) fn known(&self) -> Result<&CallerIdentity, Problem> {
        self.identity.as_deref().ok_or_else(nobody)
    }

    /// Who asks.
    pub(crate) fn caller(&self) -> Result<&Caller, Problem> {
        self.identity.as_deref().map(|identity| &identity.caller).ok_or_else(nobody)
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> Result<&str, Problem> {
        self.path.get(name).map(String::as_str).ok_or_else(|| Problem::mistake(format!("`{name}` is missing")))
    }
}

/// No query, or no body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct NoFields {}

/// JSON that reads as a `T`: because its secrets were taken out, or because it is checked later.
pub(crate) struct JsonOf<T> {
    pub(crate) value: Value,
    of: PhantomData<fn() -> T>,
}

impl<T> JsonOf<T> {
    /// What somebody is shown of a `T`.
    pub(crate) fn new(value: Value) -> Self {
        Self { value, of: PhantomData }
    }
}

impl<T> Serialize for JsonOf<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for JsonOf<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

impl<T: JsonSchema> JsonSchema for JsonOf<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// What a handler answers.
pub(crate) struct JsonReply<R> {
    status: StatusCode,
    body: R,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<R> JsonReply<R> {
    /// 200.
    pub(crate) fn ok(body: R) -> Self {
        Self::with(StatusCode::OK, body)
    }

    /// 201.
    pub(crate) fn created(body: R) -> Self {
        Self::with(StatusCode::CREATED, body)
    }

    /// Another status.
    pub(crate) fn with(status: StatusCode, body: R) -> Self {
        Self { status, body, headers: Vec::new() }
    }

    /// What it says.
    pub(crate) fn into_body(self) -> R {
        self.body
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl<R: Serialize> JsonReply<R> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

/// A route whose query, body and reply are JSON.
pub(crate) fn route<Q, B, R, F, A>(
    method: Method,
    path: &'static str,
    access: RouteAccess,
    what: &'static str,
    handle: F,
) -> Route
where
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    B: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize + JsonSchema + 'static,
    F: Fn(Asked<Q, B>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<JsonReply<R>, Problem>> + Send + 'static,
{
    let answer: Answering = Arc::new(move |app, admission, request| {
        let handle = handle.clone();
        Box::pin(async move {
            let answered = async { handle(read(app, admission, access, request).await?).await };
            answered.await.map_or_else(IntoResponse::into_response, JsonReply::into_response)
        })
    });
    let (query, body) = (schema::<Q>, schema::<B>);
    Route { method, path, access, what, query, body, reply: Some(schema::<R>), answer }
}

/// A route that answers with something else than JSON: a stream, a page, a file. Its body is read by the handler.
pub(crate) fn raw_route<Q, F, A>(
    method: Method,
    path: &'static str,
    access: RouteAccess,
    what: &'static str,
    handle: F,
) -> Route
where
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Asked<Q, Body>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let answer: Answering = Arc::new(move |app, admission, request| {
        let handle = handle.clone();
        Box::pin(async move {
            let answered = async {
                let (asked, body) = head(app, admission, access, request).await?;
                handle(with_body(asked, body)).await
            };
            answered.await.unwrap_or_else(IntoResponse::into_response)
        })
    });
    Route { method, path, access, what, query: schema::<Q>, body: schema::<NoFields>, reply: None, answer }
}

/// The same for one that answers with JSON, and on request with something else.
pub(crate) fn raw_route_of<R, Q, F, A>(
    method: Method,
    path: &'static str,
    access: RouteAccess,
    what: &'static str,
    handle: F,
) -> Route
where
    R: JsonSchema + 'static,
    Q: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Asked<Q, Body>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    Route { reply: Some(schema::<R>), ..raw_route(method, path, access, what, handle) }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The router of all routes.
pub(crate) fn router(routes: &[Route]) -> Router<Arc<App>> {
    let mut router = Router::new();
    for route in routes {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let answer = Arc::clone(&route.answer);
        let handler =
            move |State(app): State<Arc<App>>, Extension(admission): Extension<Admission>, request: Request| {
                let answer = Arc::clone(&answer);
                async move { answer(app, admission, request).await }
            };
        router = router.route(route.path, on(filter, handler));
    }
    router
}

async fn read<Q, B>(
    app: Arc<App>,
    admission: Admission,
    access: RouteAccess,
    request: Request,
) -> Result<Asked<Q, B>, Problem>
where
    Q: DeserializeOwned,
    B: DeserializeOwned,
{
    let (asked, body) = head(app, admission, access, request).await?;
    let body = match &asked.identity {
        Some(identity) => {
            let _place = asked.app.limits.bodies.place(&asked.headers, identity.caller.scope.tenant())?;
            json_body(&asked.headers, body, LONGEST_BODY).await?
        }
        None => json_body(&asked.headers, body, LONGEST_OF_STRANGERS).await?,
    };
    Ok(with_body(asked, body))
}

/// Who asks for what, before anything of the body is read.
async fn head<Q: DeserializeOwned>(
    app: Arc<App>,
    admission: Admission,
    access: RouteAccess,
    request: Request,
) -> Result<(Asked<Q, ()>, Body), Problem> {
    let identity = let_in(&app, admission, access)?;
    let (mut parts, body) = request.into_parts();
    let unreadable = |_| Problem::mistake("the path cannot be read");
    let path = Path::<HashMap<String, String>>::from_request_parts(&mut parts, &app).await.map_err(unreadable)?.0;
    if path.values().any(|part| part.contains(char::is_control)) {
        return Err(Problem::mistake("the path has characters that nothing is called by"));
    }
    let text = parts.uri.query().unwrap_or_default();
    if percent_decode_str(text).decode_utf8().is_err() {
        return Err(Problem::mistake("the query is no UTF-8"));
    }
    let query = serde_urlencoded::from_str(text).map_err(|err| Problem::mistake(format!("the query: {err}")))?;
    let from = parts.extensions.get::<ClientAddress>().and_then(|client| client.outside_address());
    Ok((Asked { app, identity, path, query, body: (), headers: parts.headers, from }, body))
}

fn with_body<Q, B>(asked: Asked<Q, ()>, body: B) -> Asked<Q, B> {
    let Asked { app, identity, path, query, body: (), headers, from } = asked;
    Asked { app, identity, path, query, body, headers, from }
}

fn let_in(app: &App, admission: Admission, access: RouteAccess) -> Result<Option<Box<CallerIdentity>>, Problem> {
    let identity = match (admission, access) {
        (Admission::Known(identity), _) => identity,
        (Admission::Nobody | Admission::Refused(_), RouteAccess::Open) => return Ok(None),
        (Admission::Nobody, _) => return Err(nobody()),
        (Admission::Refused(error), _) => return Err(error.into()),
    };
    let is_token = identity.caller.id.kind == CallerKind::Token;
    let (may, needs) = match access {
        RouteAccess::Open | RouteAccess::KnownOrToken => (true, None),
        RouteAccess::Known => (!is_token, None),
        RouteAccess::Needs(permission) => (identity.caller.permissions.allow(permission.word()), Some(permission)),
    };
    if may {
        return Ok(Some(identity));
    }
    tracing::info!(caller = %identity.caller.id, needs = needs.map(Permission::word), place = %app.place.url(), "refused");
    Err(needs.map_or_else(only_a_token, |permission| {
        let message = format!("{} may not do this: it needs `{}`", identity.caller.name, permission.word());
        Problem::new(ErrorCode::Forbidden, message)
    }))
}

/// Whoever ends one call may do nothing else.
pub(crate) fn only_a_token() -> Problem {
    Problem::new(ErrorCode::Forbidden, "this token ends one call and opens nothing else")
}

/// Who asks must be known.
pub(crate) fn nobody() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "sign in, or send `Authorization: Bearer KEY`")
}

/// The body as JSON. An empty one without a type is `{}`.
pub(crate) async fn json_body<B: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    longest: usize,
) -> Result<B, Problem> {
    let bytes = whole_body(headers, body, longest).await?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json =
        kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json"));
    let bytes: &[u8] = match (is_json, bytes.is_empty()) {
        (Some(true), false) => &bytes,
        (None | Some(true), true) => b"{}",
        (Some(false), _) | (None, false) => {
            let message = "the body must be JSON: send `Content-Type: application/json`";
            return Err(Problem::mistake(message).status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
    };
    serde_json::from_slice(bytes).map_err(|err| Problem::mistake(format!("the body does not fit: {}", plain(&err))))
}

/// What is wrong with a body, without the names that its parts have in the source.
fn plain(err: &serde_json::Error) -> String {
    let said = err.to_string();
    match said.split_once("expected struct ") {
        Some((before, after)) => {
            format!("{before}expected an object{}", after.find(' ').map_or("", |end| &after[end..]))
        }
        None => said,
    }
}

/// All of a body that is no longer than it may be and does not take for ever.
pub(crate) async fn whole_body(headers: &HeaderMap, body: Body, longest: usize) -> Result<axum::body::Bytes, Problem> {
    let too_long = || Problem::new(ErrorCode::TooLarge, format!("the body has more than {longest} bytes"));
    let told = headers.get(header::CONTENT_LENGTH).and_then(|told| told.to_str().ok()?.parse::<usize>().ok());
    if told.is_some_and(|told| told > longest) {
        return Err(too_long());
    }
    match tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, longest)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_long()),
        Err(_) => {
            let message = format!("the body did not come within {} s", BODY_WITHIN.as_secs());
            Err(Problem::new(ErrorCode::Timeout, message).status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

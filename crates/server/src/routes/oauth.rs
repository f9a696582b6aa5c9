//! OAuth: what clients look up, the page on which people let programs in, and where tokens are given.

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use haft_platform::{
    ClientDescription, CodeExchange, ConsentPlace, ConsentView, ConsentWish, DEVICE_GRANT, KeyScope, OAuthClient,
    OAuthError, SignInRecord, resource_parts, with_answer,
};
use haft_runtime::ErrorCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    DONE, Done, ListPage, me,
    page::{escaped, script, task_page},
};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route, whole_body},
};

/// The longest form or registration.
const LONGEST: usize = 16 << 10;
/// What clients of the tools ask for when nobody tells them.
const USUAL: [KeyScope; 2] = [KeyScope::ToolsRead, KeyScope::ToolsExecute];

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Open};
    let resource = "Says who gives tokens for this server.";
    vec![
        raw_route(Method::GET, "/.well-known/oauth-protected-resource", Open, resource, protected_resource),
        raw_route(Method::GET, "/.well-known/oauth-protected-resource/mcp", Open, resource, protected_resource),
        raw_route(
            Method::GET,
            "/.well-known/oauth-authorization-server",
            Open,
            "Says how tokens are given.",
            authorization_server,
        ),
        raw_route(Method::POST, "/oauth/register", Open, "Registers a program.", register),
        raw_route(Method::GET, "/oauth/authorize", Open, "The page on which a person lets a program in.", authorize),
        raw_route(Method::GET, "/oauth/consent.js", Open, "What that page does.", consent_script),
        route(Method::POST, "/api/oauth/consents", Known, "Lets a program in, or refuses it.", consent),
        raw_route(Method::POST, "/oauth/token", Open, "Gives tokens for a code, or new ones for old ones.", token),
        raw_route(Method::POST, "/oauth/revoke", Open, "Ends a program's tokens.", revoke),
        route(Method::GET, "/api/me/programs", Known, "Lists the programs that one let in.", programs),
        route(Method::DELETE, "/api/me/programs/{id}", Known, "Lets a program in no longer.", end_program),
    ]
}

fn words(scopes: &[KeyScope]) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.word()).collect()
}

/// Who gives tokens for this server.
async fn protected_resource(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let url = asked.app.place.url_for(&asked.headers);
    Ok(document(json!({
        "resource": format!("{url}/mcp"),
        "resource_name": "haft",
        "authorization_servers": [url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": words(&USUAL),
    })))
}

/// How tokens are given.
async fn authorization_server(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let url = asked.app.place.url_for(&asked.headers);
    Ok(document(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/oauth/authorize"),
        "token_endpoint": format!("{url}/oauth/token"),
        "registration_endpoint": format!("{url}/oauth/register"),
        "device_authorization_endpoint": format!("{url}/oauth/device"),
        "revocation_endpoint": format!("{url}/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": words(KeyScope::ALL),
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    })))
}

/// JSON as OAuth sends it, which nobody keeps.
pub(super) fn document(value: Value) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(value)).into_response()
}

/// What OAuth says when something is wrong.
pub(super) fn refused(error: &OAuthError) -> Response {
    let status = match error.code {
        "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "invalid_client" => StatusCode::UNAUTHORIZED,
        _ => StatusCode::BAD_REQUEST,
    };
    let body = json!({"error": error.code, "error_description": error.description});
    (status, document(body)).into_response()
}

/// Registers a program.
async fn register(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, headers, body, .. } = asked;
    let bytes = whole_body(&headers, body, LONGEST).await?;
    let unreadable = |err: serde_json::Error| OAuthError::new("invalid_client_metadata", err.to_string());
    let described = serde_json::from_slice::<ClientDescription>(&bytes).map_err(unreadable);
    let registered = match described {
        Ok(described) => {
            let told =
                (described.redirect_uris.clone(), described.grant_types.iter().any(|grant| grant == DEVICE_GRANT));
            app.platform.register_client(described).await.map(|client| (client, told))
        }
        Err(error) => Err(error),
    };
    let (client, (addresses, on_devices)) = match registered {
        Ok(registered) => registered,
        Err(error) => return Ok(refused(&error)),
    };
    let mut grants = vec!["authorization_code", "refresh_token"];
    if on_devices {
        grants.push(DEVICE_GRANT);
    }
    if addresses.is_empty() {
        grants.retain(|grant| *grant != "authorization_code");
    }
    let reply = json!({
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": addresses,
        "response_types": if addresses.is_empty() { json!([]) } else { json!(["code"]) },
        "grant_types": grants,
        "token_endpoint_auth_method": "none",
    });
    Ok((StatusCode::CREATED, document(reply)).into_response())
}

/// What a program asks for, as it stands in the address of the page. `state` goes back as it came.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(super) struct AuthorizeQuery {
    response_type: Option<String>,
    client_id: Option<String>,
    redirect_uri: Option<String>,
    code_challenge: Option<String>,
    code_challenge_method: Option<String>,
    state: Option<String>,
    scope: Option<String>,
    resource: Option<String>,
}

/// A request that was looked at.
struct Wanted {
    client: OAuthClient,
    redirect_uri: String,
    challenge: String,
    scopes: Vec<KeyScope>,
    resource: String,
}

/// What is wrong with a request: for the person alone, or for the program, which then hears of it.
enum Wrong {
    Shown(String),
    Told(OAuthError),
}

impl AuthorizeQuery {
    /// Looks at everything. Nobody is sent to an address before the program is known to live there.
    async fn wanted(&self, app: &App, url: &str) -> Result<Wanted, Wrong> {
        let needed = |value: &Option<String>, name: &str| {
            value.clone().filter(|value| !value.is_empty()).ok_or_else(|| format!("`{name}` is missing"))
        };
        let id = needed(&self.client_id, "client_id").map_err(Wrong::Shown)?;
        let redirect_uri = needed(&self.redirect_uri, "redirect_uri").map_err(Wrong::Shown)?;
        let found = app.platform.oauth_client(&id, Some(app.web.everybody())).await;
        let client = found.map_err(|error| Wrong::Shown(error.description))?;
        let client = client.ok_or_else(|| Wrong::Shown("no program is known by this `client_id`".to_owned()))?;
        if !client.may_send_to(&redirect_uri) {
            return Err(Wrong::Shown(format!("{} did not say that it lives at `{redirect_uri}`", client.name)));
        }
        let told = |code, description: String| Wrong::Told(OAuthError::new(code, description));
        if self.response_type.as_deref() != Some("code") {
            return Err(told("unsupported_response_type", "`response_type` is `code`".to_owned()));
        }
        let challenge = needed(&self.code_challenge, "code_challenge").map_err(|why| told("invalid_request", why))?;
        let is_challenge = challenge.len() == 43
            && challenge.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if self.code_challenge_method.as_deref() != Some("S256") || !is_challenge {
            let why = "`code_challenge` is a SHA-256 in base64url, and `code_challenge_method` is `S256`";
            return Err(told("invalid_request", why.to_owned()));
        }
        let resource = asked_resource(app, url, self.resource.as_deref()).map_err(Wrong::Told)?;
        let scopes = asked_scopes(self.scope.as_deref()).map_err(Wrong::Told)?;
        Ok(Wanted { client, redirect_uri, challenge, scopes, resource })
    }

    /// Where a person goes back to, with an answer.
    fn back(&self, url: &str, answer: &[(&str, &str)]) -> Result<String, Problem> {
        let to = self.redirect_uri.as_deref().unwrap_or_default();
        let state = self.state.as_deref().map(|state| ("state", state));
        let answer: Vec<(&str, &str)> = answer.iter().copied().chain(state).chain([("iss", url)]).collect();
        with_answer(to, &answer).ok_or_else(|| Problem::mistake("`redirect_uri` is no address"))
    }
}

/// The address that tokens are asked for, which is one of this server.
pub(super) fn asked_resource(app: &App, url: &str, asked: Option<&str>) -> Result<String, OAuthError> {
    let resource = asked.map_or_else(|| format!("{url}/mcp"), str::to_owned);
    match is_ours(app, &resource) {
        true => Ok(resource),
        false => Err(OAuthError::new("invalid_target", format!("tokens are given for `{url}/mcp` alone"))),
    }
}

/// What a program asks to do; the usual where it does not say.
pub(super) fn asked_scopes(asked: Option<&str>) -> Result<Vec<KeyScope>, OAuthError> {
    let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else { return Ok(USUAL.to_vec()) };
    let unknown = |word: &str| {
        OAuthError::new("invalid_scope", format!("`{word}` is none of {}", words(KeyScope::ALL).join(", ")))
    };
    let asked = asked.split(' ').filter(|word| !word.is_empty());
    asked.map(|word| KeyScope::parse(word).ok_or_else(|| unknown(word))).collect()
}

/// Whether a token for this address is one for this server.
fn is_ours(app: &App, resource: &str) -> bool {
    let parts = resource_parts(resource);
    parts.is_some_and(|(origin, path)| matches!(&*path, "/" | "/mcp" | "/mcp/") && app.place.is_origin(&origin))
}

/// Asks whoever is signed in whether a program may come in for them.
async fn authorize(asked: Asked<AuthorizeQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, query, headers, .. } = asked;
    let Some(sign_in) = identity.as_ref().and_then(|identity| identity.sign_in.as_ref()) else {
        let here = format!("/oauth/authorize?{}", serde_urlencoded::to_string(&query).unwrap_or_default());
        let to = serde_urlencoded::to_string([("to", here)]).unwrap_or_default();
        return Ok(Redirect::to(&format!("/sign-in?{to}")).into_response());
    };
    let url = app.place.url_for(&headers);
    match query.wanted(&app, &url).await {
        Ok(wanted) => {
            let places = app.platform.consent_places(&sign_in.person).await?;
            Ok(consent_page(&query, &wanted, sign_in, &places))
        }
        Err(Wrong::Shown(why)) => {
            let shown = task_page("This program cannot be let in", &format!("<p>{}</p>", escaped(&why)));
            Ok((StatusCode::BAD_REQUEST, shown).into_response())
        }
        Err(Wrong::Told(error)) => {
            let told = [("error", error.code), ("error_description", error.description.as_str())];
            Ok(Redirect::to(&query.back(&url, &told)?).into_response())
        }
    }
}

/// Where the program may be let in: a tenant, alone or with one of its workspaces.
fn place_options(places: &[ConsentPlace], current: &str) -> String {
    let option = |slug: &str, workspace: &str, label: &str, chosen: &str| {
        let place = escaped(&json!({"tenant": slug, "workspace": workspace}).to_string());
        format!("<option value=\"{place}\"{chosen}>{}</option>", escaped(label))
    };
    let mut options = String::new();
    for ConsentPlace { tenant, workspaces } in places {
        // Most programs need files, so that the first workspace is chosen.
        let mut chosen = if tenant.slug == current { " selected" } else { "" };
        for name in workspaces {
            options += &option(&tenant.slug, name, &format!("{}, in the workspace {name}", tenant.name), chosen);
            chosen = "";
        }
        options += &option(&tenant.slug, "", &format!("{}, without a workspace", tenant.name), chosen);
    }
    options
}

fn consent_page(query: &AuthorizeQuery, wanted: &Wanted, sign_in: &SignInRecord, places: &[ConsentPlace]) -> Response {
    let request = json!(query);
    task_page(
        &format!("Let {} in?", wanted.client.name),
        &format!(
            "<p>{known} It would act for you, <b>{who}</b>. Afterwards you are sent back to <code>{back}</code>.</p>{form}",
            known = known_by(&wanted.client),
            who = escaped(&sign_in.name),
            back = escaped(&wanted.redirect_uri),
            form = consent_form(("/api/oauth/consents", &request), &wanted.scopes, (places, &sign_in.slug)),
        ),
    )
}

/// By what a program is known, in a sentence.
pub(super) fn known_by(client: &OAuthClient) -> String {
    match &client.host {
        Some(host) => format!("It describes itself at <b>{}</b>.", escaped(host)),
        None => "It registered itself: nobody vouches for its name.".to_owned(),
    }
}

/// What somebody chooses for a program: where it may come in, and what it may do. The answer goes to a route here, with what
/// was asked.
pub(super) fn consent_form(
    (route, request): (&str, &Value),
    scopes: &[KeyScope],
    (places, current): (&[ConsentPlace], &str),
) -> String {
    let scopes: String = scopes
        .iter()
        .map(|scope| {
            // Whoever may answer their own questions is asked nothing any more: that is chosen, not left as it is.
            let chosen = if *scope == KeyScope::ApprovalsDecide { "" } else { " checked" };
            let (word, what) = (scope.word(), scope.what());
            format!("<label><input type=\"checkbox\" name=\"scope\" value=\"{word}\"{chosen}> {what}</label>")
        })
        .collect();
    format!(
        "<form id=\"consent\" data-route=\"{route}\" data-request=\"{request}\">\
         <label>Where <select name=\"place\">{options}</select></label>\
         <fieldset><legend>It may</legend>{scopes}</fieldset>\
         <p id=\"said\" class=\"said\" role=\"alert\"></p>\
         <p class=\"choice\"><button value=\"yes\">Let it in</button> <button value=\"no\" class=\"quiet\">Refuse</button></p></form>\
         <p class=\"facts\">You can take this back at any time: <code>DELETE /api/me/programs/ID</code>.</p>\
         <noscript><p>This page needs JavaScript to send your answer.</p></noscript>\
         <script src=\"/oauth/consent.js\"></script>",
        request = escaped(&request.to_string()),
        options = place_options(places, current),
    )
}

/// What the page does.
async fn consent_script(_asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    Ok(script(include_str!("consent.js")))
}

/// The answer of whoever was asked.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ConsentBody {
    #[serde(flatten)]
    request: AuthorizeQuery,
    /// Which of one's tenants.
    tenant: String,
    /// The workspace there; none when it is empty or absent.
    workspace: Option<String>,
    /// What the program may do, of what it asked for.
    scopes: Vec<String>,
    allow: bool,
}

/// Where to go next.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConsentReply {
    pub(super) to: String,
}

/// Lets a program in, or refuses it. Only a page of this server sends this, for whoever is signed in there.
async fn consent(asked: Asked<NoFields, ConsentBody>) -> Result<JsonReply<ConsentReply>, Problem> {
    let sign_in = me::own_sign_in(&asked)?;
    let (app, body) = (&asked.app, &asked.body);
    let url = app.place.url_for(&asked.headers);
    let wanted = body.request.wanted(app, &url).await.map_err(|wrong| match wrong {
        Wrong::Shown(why) => Problem::mistake(why),
        Wrong::Told(error) => Problem::mistake(error.description),
    })?;
    if !body.allow {
        let told = [("error", "access_denied"), ("error_description", "the person said no")];
        return Ok(JsonReply::ok(ConsentReply { to: body.request.back(&url, &told)? }));
    }
    let scopes: Vec<KeyScope> =
        wanted.scopes.iter().copied().filter(|scope| body.scopes.iter().any(|word| word == scope.word())).collect();
    if scopes.is_empty() {
        return Err(Problem::mistake("choose something that it may do, or refuse it"));
    }
    let wish = ConsentWish {
        client: &wanted.client,
        redirect_uri: &wanted.redirect_uri,
        challenge: &wanted.challenge,
        scopes: &scopes,
        resource: &wanted.resource,
    };
    let workspace = body.workspace.as_deref().filter(|name| !name.is_empty());
    let code = app.platform.consent(sign_in, (&body.tenant, workspace), &wish).await?;
    Ok(JsonReply::ok(ConsentReply { to: body.request.back(&url, &[("code", &code)])? }))
}

/// What a program sends for tokens.
#[derive(Debug, Default, Deserialize)]
struct TokenForm {
    grant_type: Option<String>,
    code: Option<String>,
    client_id: Option<String>,
    redirect_uri: Option<String>,
    code_verifier: Option<String>,
    refresh_token: Option<String>,
    device_code: Option<String>,
    resource: Option<String>,
}

/// A form, which is how OAuth sends things.
pub(super) async fn form<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let bytes = whole_body(headers, body, LONGEST).await?;
    serde_urlencoded::from_bytes(&bytes).map_err(|_| Problem::mistake("the body must be a form, with each field once"))
}

/// Gives tokens.
async fn token(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, headers, body, .. } = asked;
    let sent: TokenForm = match form(&headers, body).await {
        Ok(sent) => sent,
        Err(problem) if problem.error().code == ErrorCode::InvalidArgs => {
            return Ok(refused(&OAuthError::new("invalid_request", problem.error().message.clone())));
        }
        Err(problem) => return Err(problem),
    };
    let given = match sent.grant_type.as_deref() {
        Some("authorization_code") => {
            let field = |field: &'_ Option<String>| field.clone().unwrap_or_default();
            let [code, client_id, redirect_uri, verifier] =
                [&sent.code, &sent.client_id, &sent.redirect_uri, &sent.code_verifier].map(field);
            let shown = CodeExchange {
                code: &code,
                client_id: &client_id,
                redirect_uri: &redirect_uri,
                verifier: &verifier,
                resource: sent.resource.as_deref(),
            };
            app.platform.exchange_code(&shown).await
        }
        Some("refresh_token") => {
            let (refresh, client) = (sent.refresh_token.unwrap_or_default(), sent.client_id.unwrap_or_default());
            app.platform.refresh(&refresh, &client).await
        }
        Some(DEVICE_GRANT) => {
            let (code, client) = (sent.device_code.unwrap_or_default(), sent.client_id.unwrap_or_default());
            app.platform.exchange_device_code(&code, &client).await
        }
        _ => {
            let known = format!("`grant_type` is `authorization_code`, `refresh_token` or `{DEVICE_GRANT}`");
            Err(OAuthError::new("unsupported_grant_type", known))
        }
    };
    Ok(given.map_or_else(|error| refused(&error), |tokens| document(json!(tokens))))
}

/// A token that is to end.
#[derive(Debug, Deserialize)]
struct RevokeForm {
    token: String,
}

/// Ends a program's tokens. Nobody learns whether there were any.
async fn revoke(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, headers, body, .. } = asked;
    let RevokeForm { token } = form(&headers, body).await?;
    app.platform.revoke(&token).await?;
    Ok(document(json!({})))
}

/// The programs that one let in.
async fn programs(asked: Asked) -> Result<JsonReply<ListPage<ConsentView>>, Problem> {
    only_a_person(&asked)?;
    Ok(JsonReply::ok(ListPage { items: asked.app.platform.consents(asked.caller()?).await?, next: None }))
}

/// Lets a program in no longer: at its next request it is nobody.
async fn end_program(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    only_a_person(&asked)?;
    asked.app.platform.end_consent(asked.caller()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(DONE))
}

/// Programs do not look at each other.
fn only_a_person(asked: &Asked) -> Result<(), Problem> {
    me::own_sign_in(asked).map(drop)
}

//! Programs on devices without a browser: where they ask, and the page on which somebody types their code and lets them in.

use std::net::IpAddr;

use axum::{
    body::Body,
    http::{Method, header},
    response::{IntoResponse, Redirect, Response},
};
use haft_platform::{ConsentPlace, DeviceView, DeviceWish, KeyScope, OAuthClient, OAuthError, SignInRecord};
use haft_runtime::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    me,
    oauth::{ConsentReply, asked_resource, asked_scopes, consent_form, document, form, known_by, refused},
    oidc::sentence,
    page::{escaped, task_page},
};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Open};
    let allow = "Lets the program on a device in, or refuses it.";
    vec![
        raw_route(Method::POST, "/oauth/device", Open, "Gives codes to a program on a device.", begin),
        raw_route(Method::GET, "/device", Open, "The page on which somebody types the code of a device.", page),
        route(Method::POST, "/api/oauth/devices", Known, allow, answer),
    ]
}

/// What a program on a device sends.
#[derive(Debug, Default, Deserialize)]
struct DeviceForm {
    client_id: Option<String>,
    scope: Option<String>,
    resource: Option<String>,
}

/// Gives codes to a program on a device.
async fn begin(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, headers, body, from, .. } = asked;
    let sent: DeviceForm = match form(&headers, body).await {
        Ok(sent) => sent,
        Err(problem) if problem.error().code == ErrorCode::InvalidArgs => {
            return Ok(refused(&OAuthError::new("invalid_request", problem.error().message.clone())));
        }
        Err(problem) => return Err(problem),
    };
    let url = app.place.url_for(&headers);
    let given = async {
        let scopes = asked_scopes(sent.scope.as_deref())?;
        let resource = asked_resource(&app, &url, sent.resource.as_deref())?;
        let client_id = sent.client_id.unwrap_or_default();
        app.platform
            .begin_device(&DeviceWish { client_id: &client_id, scopes: &scopes, resource: &resource, from })
            .await
    };
    Ok(match given.await {
        Ok(given) => document(json!({
            "device_code": given.device_code,
            "user_code": given.user_code,
            "verification_uri": format!("{url}/device"),
            "verification_uri_complete": format!("{url}/device?code={}", given.user_code),
            "expires_in": given.expires_in,
            "interval": given.interval,
        })),
        Err(error) => refused(&error),
    })
}

/// What the page is asked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct DeviceQuery {
    /// The code that the device shows.
    code: Option<String>,
    /// What somebody has just answered.
    answered: Option<String>,
}

/// Asks whoever is signed in for a code, and then whether the program that shows it may come in.
async fn page(asked: Asked<DeviceQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, query, from, .. } = asked;
    match query.answered.as_deref() {
        Some("yes") => return Ok(task_page("The device is let in", GO_BACK)),
        Some(_) => return Ok(task_page("The device is refused", "<p>It gets nothing. You can close this page.</p>")),
        None => {}
    }
    let code = query.code.as_deref().map(str::trim).filter(|code| !code.is_empty());
    let Some(sign_in) = identity.as_ref().and_then(|identity| identity.sign_in.as_ref()) else {
        let here = serde_urlencoded::to_string([("code", code)]).unwrap_or_default();
        let to = serde_urlencoded::to_string([("to", format!("/device?{here}"))]).unwrap_or_default();
        return Ok(Redirect::to(&format!("/sign-in?{to}")).into_response());
    };
    let Some(code) = code else { return Ok(code_page("", "")) };
    match looked_up(&app, sign_in, (code, from)).await {
        Ok((device, client)) => {
            let places = app.platform.consent_places(&sign_in.person).await?;
            Ok(device_page(&device, &client, sign_in, &places))
        }
        Err(problem) => {
            let page = code_page(code, &sentence(&problem.error().message));
            Ok(with_status_of(problem, page))
        }
    }
}

const GO_BACK: &str = "<p>Go back to it: it goes on by itself within a few seconds. You can close this page.</p>";

/// A page with the status of a problem, and with how long to wait.
fn with_status_of(problem: Problem, page: Response) -> Response {
    let problem = problem.into_response();
    let wait = problem.headers().get(header::RETRY_AFTER).cloned();
    let mut page = (problem.status(), page).into_response();
    page.headers_mut().extend(wait.map(|wait| (header::RETRY_AFTER, wait)));
    page
}

/// The program that shows a code, and what it says of itself.
async fn looked_up(
    app: &App,
    sign_in: &SignInRecord,
    (code, from): (&str, Option<IpAddr>),
) -> Result<(DeviceView, OAuthClient), Problem> {
    let device = app.platform.device_asking(sign_in, code, from).await?;
    let found = app.platform.oauth_client(&device.client, Some(app.web.everybody())).await;
    let client = found.map_err(|error| Problem::mistake(error.description))?;
    let client = client.ok_or_else(|| Problem::not_found("program of this device any more; begin again on it"))?;
    Ok((device, client))
}

fn code_page(code: &str, said: &str) -> Response {
    task_page(
        "Let a device in",
        &format!(
            "<p class=\"said\" role=\"alert\">{}</p><form action=\"/device\">\
             <label>Code that the device shows <input name=\"code\" class=\"code\" value=\"{}\" placeholder=\"BCDF-GHJK\" \
             autocomplete=\"off\" autocapitalize=\"characters\" spellcheck=\"false\" maxlength=\"20\" required autofocus></label>\
             <button>Continue</button></form>\
             <p class=\"facts\">Type only a code from a device of yours, where you have just started something yourself. \
             If somebody sent you a code or a link to this page, close it: they want to act in your name.</p>",
            escaped(said),
            escaped(&code.chars().take(20).collect::<String>())
        ),
    )
}

fn device_page(device: &DeviceView, client: &OAuthClient, sign_in: &SignInRecord, places: &[ConsentPlace]) -> Response {
    let (name, code) = (escaped(&client.name), escaped(&device.user_code));
    let from = match &device.asked_from {
        Some(from) => format!(" from the address <b>{}</b>", escaped(from)),
        None => String::new(),
    };
    let since = device.since.strftime("%H:%M UTC");
    let request = json!({"code": device.user_code});
    task_page(
        &format!("Let {} in?", client.name),
        &format!(
            "<p>Does your device show this code?</p><p class=\"code\">{code}</p>\
             <p>{known} It asked at {since}{from}, and would act for you, <b>{who}</b>.</p>\
             <p class=\"warning\">Let it in only if you have just started {name} yourself. If somebody sent you this code \
             or this page, refuse it: they would act in your name.</p>{form}",
            known = known_by(client),
            who = escaped(&sign_in.name),
            form = consent_form(("/api/oauth/devices", &request), &device.scopes, (places, &sign_in.slug)),
        ),
    )
}

/// The answer of whoever was asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceAnswerBody {
    /// The code that the device shows.
    code: String,
    /// Which of one's tenants.
    tenant: String,
    /// The workspace there; none when it is empty or absent.
    workspace: Option<String>,
    /// What the program may do, of what it asked for.
    scopes: Vec<String>,
    allow: bool,
}

/// Lets a program on a device in, or refuses it. Only a page of this server sends this, for whoever is signed in there.
async fn answer(asked: Asked<NoFields, DeviceAnswerBody>) -> Result<JsonReply<ConsentReply>, Problem> {
    let sign_in = me::own_sign_in(&asked)?;
    let (app, body, from) = (&asked.app, &asked.body, asked.from);
    if !body.allow {
        app.platform.deny_device(sign_in, (&body.code, from)).await?;
        return Ok(JsonReply::ok(ConsentReply { to: "/device?answered=no".to_owned() }));
    }
    let (device, client) = looked_up(app, sign_in, (&body.code, from)).await?;
    let scopes: Vec<KeyScope> =
        device.scopes.iter().copied().filter(|scope| body.scopes.iter().any(|word| word == scope.word())).collect();
    if scopes.is_empty() {
        return Err(Problem::mistake("choose something that it may do, or refuse it"));
    }
    let place = (body.tenant.as_str(), body.workspace.as_deref().filter(|name| !name.is_empty()));
    app.platform.allow_device(sign_in, (&body.code, from), place, (&client, &scopes)).await?;
    Ok(JsonReply::ok(ConsentReply { to: "/device?answered=yes".to_owned() }))
}

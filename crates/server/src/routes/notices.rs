//! Of what people and a tenant are told, where, and how that went last.

use axum::http::Method;
use haft_platform::{CallerIdentity, MailWish, NoticeChannel, Permission, PersonNotices, TenantNotices};
use haft_runtime::{CallerKind, ErrorCode, Scope};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Needs};
    let update = Needs(Permission::SettingsUpdate);
    vec![
        route(Method::GET, "/api/notices", update, "Shows of what the tenant is told, and how that went.", show),
        route(Method::PUT, "/api/notices", update, "Changes of what the tenant is told.", set),
        route(Method::POST, "/api/notices/test", Known, "Sends a notice to try it.", test),
        route(Method::GET, "/api/me/notices", Known, "Shows of what one is told oneself.", own),
        route(Method::PUT, "/api/me/notices", Known, "Changes of what one is told oneself.", set_own),
    ]
}

/// What a tenant is told.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NoticesView {
    #[serde(flatten)]
    wanted: TenantNotices,
    channels: ChannelViews,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChannelViews {
    mail: ChannelView,
    webhook: ChannelView,
}

/// How a channel went last.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChannelView {
    /// Whether it is set up.
    available: bool,
    /// How many notices wait to be sent.
    waiting: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// How often notices were given up.
    given_up: i64,
}

/// Of what the tenant is told.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<NoticesView>, Problem> {
    Ok(JsonReply::ok(view(&asked.app, &asked.caller()?.scope).await?))
}

/// Puts other wishes in the place of those before. What is not named has its default.
pub(super) async fn set(asked: Asked<NoFields, TenantNotices>) -> Result<JsonReply<NoticesView>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    app.platform.set_tenant_notices(caller, &asked.body).await?;
    Ok(JsonReply::ok(view(app, &caller.scope).await?))
}

async fn view(app: &App, scope: &Scope) -> Result<NoticesView, Problem> {
    let wanted = app.platform.tenant_notices(scope).await?;
    let mail = channel(app, scope, NoticeChannel::Mail, app.notices.has_mail()).await?;
    let webhook = channel(app, scope, NoticeChannel::Webhook, wanted.webhook.is_some()).await?;
    Ok(NoticesView { wanted, channels: ChannelViews { mail, webhook } })
}

async fn channel(app: &App, scope: &Scope, channel: NoticeChannel, available: bool) -> Result<ChannelView, Problem> {
    let (known, waiting) = app.notices.channel_state(scope, channel).await?;
    let (failed_at, failure) = known.failed.unzip();
    Ok(ChannelView { available, waiting, sent_at: known.sent_at, failed_at, failure, given_up: known.given_up })
}

/// What is to be tried.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TestBody {
    /// `mail` (the default), to oneself, or `webhook`.
    #[serde(default)]
    channel: TestChannel,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TestChannel {
    #[default]
    Mail,
    Webhook,
}

/// What was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestReply {
    channel: TestChannel,
    sent: bool,
    /// The address that it went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

/// Sends one notice now; an error says why it did not go out.
pub(super) async fn test(asked: Asked<NoFields, TestBody>) -> Result<JsonReply<TestReply>, Problem> {
    let (app, identity) = (&asked.app, asked.known()?);
    let (scope, channel) = (&identity.caller.scope, asked.body.channel);
    let to = match channel {
        TestChannel::Mail => Some(app.notices.test_mail(scope, person(identity)?).await?),
        TestChannel::Webhook => {
            let needed = Permission::SettingsUpdate.word();
            if !identity.caller.permissions.allow(needed) {
                let message = format!("{} may not do this: it needs `{needed}`", identity.caller.name);
                return Err(Problem::new(ErrorCode::Forbidden, message));
            }
            app.notices.test_webhook(scope).await?;
            None
        }
    };
    Ok(JsonReply::ok(TestReply { channel, sent: true, to }))
}

/// Of what somebody is told.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OwnNoticesView {
    /// Of which questions one hears by mail.
    mail: MailWish,
    /// Whether one has chosen that, and not the tenant.
    chosen: bool,
    /// Where mail goes.
    address: String,
    /// Whether there is a server that takes mail.
    available: bool,
}

/// Of what one is told oneself.
pub(super) async fn own(asked: Asked) -> Result<JsonReply<OwnNoticesView>, Problem> {
    own_view(&asked.app, asked.known()?).await
}

/// Changes that; only somebody who is signed in does.
pub(super) async fn set_own(asked: Asked<NoFields, PersonNotices>) -> Result<JsonReply<OwnNoticesView>, Problem> {
    let (app, identity) = (&asked.app, asked.known()?);
    if identity.sign_in.is_none() {
        return Err(Problem::new(ErrorCode::Forbidden, "only somebody who is signed in changes what they are told"));
    }
    app.platform.set_person_notices(&identity.caller.scope, person(identity)?, asked.body).await?;
    own_view(app, identity).await
}

async fn own_view(app: &App, identity: &CallerIdentity) -> Result<JsonReply<OwnNoticesView>, Problem> {
    let scope = &identity.caller.scope;
    let (own, address) = app.platform.person_notices(scope, person(identity)?).await?;
    let mail = match own.mail {
        Some(mail) => mail,
        None => app.platform.tenant_notices(scope).await?.mail,
    };
    Ok(JsonReply::ok(OwnNoticesView { mail, chosen: own.mail.is_some(), address, available: app.notices.has_mail() }))
}

/// The person who asks; keys get no mail.
fn person(identity: &CallerIdentity) -> Result<&str, Problem> {
    match identity.caller.id.kind {
        CallerKind::Person => Ok(&identity.caller.id.id),
        CallerKind::Owner | CallerKind::Agent | CallerKind::Key | CallerKind::Token | CallerKind::House => {
            Err(Problem::mistake("only people are told of questions by mail; sign in"))
        }
    }
}

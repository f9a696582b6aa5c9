//! Telling a tenant's webhook: a text as Slack takes it, and the same as fields.

use std::{collections::HashMap, time::Duration};

use haft_runtime::{ErrorCode, Question, Redactor, Scope, ToolError};
use haft_sandbox::web::{Bytes, HeaderMap, Method, Request, WebError, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Notices,
    message::{LISTED, Notice},
    wishes::{NoticeWebhook, secrets_of},
};
use crate::{authored::placeholder, plain_text::plain_line, random};

/// How long a webhook may take.
const WITHIN: Duration = Duration::from_secs(10);
/// The most that is told of what went wrong.
const MOST_TOLD: usize = 300;

/// What is told at once.
pub(super) struct WebhookNotice<'a> {
    /// What tells this delivery from every other one, also when it is sent twice.
    pub(super) id: &'a str,
    pub(super) questions: &'a [(Question, bool)],
    /// How many more there are.
    pub(super) more: usize,
}

impl Notices {
    /// Sends one notice; otherwise says why not, and whether it is of use to try again.
    pub(super) async fn call_webhook(
        &self,
        scope: &Scope,
        webhook: &NoticeWebhook,
        notice: &WebhookNotice<'_>,
    ) -> Result<(), ToolError> {
        let body = self.webhook_body(scope, notice).await?;
        self.post(scope, webhook, (notice.id, &body)).await
    }

    /// What a webhook is sent. Slack shows `text`; programs read the rest.
    async fn webhook_body(&self, scope: &Scope, notice: &WebhookNotice<'_>) -> Result<Value, ToolError> {
        let tenant = self.platform.tenant_of(scope).await?;
        let mut lines = Vec::new();
        let mut items = Vec::new();
        for (question, escalated) in notice.questions.iter().take(LISTED) {
            let link = format!("{}/?tenant={}#{}", self.url, tenant.slug, question.call);
            let told = Notice::of(question, *escalated, link);
            let passed_on = if *escalated { " Nobody has answered in time." } else { "" };
            lines.push(format!(
                "*{}* asks to use *{}* in {}: {}.{passed_on} <{}|Look and answer>",
                for_slack(&told.asked_by),
                for_slack(&told.tool),
                for_slack(&plain_line(&tenant.name, 60)),
                for_slack(told.reason.trim_end_matches('.')),
                told.link
            ));
            items.push(json!({"id": question.call, "number": question.number, "kind": question.kind(),
                "tool": told.tool, "effect": question.effect, "reason": told.reason, "files": told.files,
                "askedBy": question.asked_by, "workspace": question.workspace, "askedAt": question.asked_at,
                "expiresAt": question.expires_at, "escalated": escalated, "link": told.link}));
        }
        if notice.more > 0 {
            lines.push(format!("{} more questions wait: <{}/|haft>", notice.more, self.url));
        }
        Ok(json!({"text": lines.join("\n"), "tenant": tenant.slug, "delivery": notice.id, "questions": items,
            "more": notice.more}))
    }

    /// Sends one word to see whether it arrives.
    pub(super) async fn try_webhook(&self, scope: &Scope, webhook: &NoticeWebhook) -> Result<(), ToolError> {
        let tenant = self.platform.tenant_of(scope).await?;
        let text = format!("haft can reach this place. It tells of questions in {} here.", for_slack(&tenant.name));
        let body = json!({"text": text, "tenant": tenant.slug, "questions": [], "more": 0, "test": true});
        self.post(scope, webhook, ("test", &body)).await
    }

    async fn post(&self, scope: &Scope, webhook: &NoticeWebhook, (id, body): (&str, &Value)) -> Result<(), ToolError> {
        let (host, names) = secrets_of(webhook)?;
        let mut secrets = HashMap::new();
        for name in names {
            let value = self.platform.secret_for(scope, &name, &host).await?;
            secrets.insert(name, value);
        }
        let redactor = Redactor::knowing(Vec::new(), secrets.values().cloned().collect());
        let told = |code, why: &str| ToolError::new(code, plain_line(&redactor.known(why), MOST_TOLD));
        let encoded = |name: &str| {
            utf8_percent_encode(secrets.get(name).map_or("", String::as_str), NON_ALPHANUMERIC).to_string()
        };
        // Slack's own addresses have slashes in what is secret of them.
        let url = placeholder::filled(&webhook.url, |name| encoded(name).replace("%2F", "/"));
        let client = self.web.client(scope).await?;
        let target = client.target(&url).map_err(|refusal| told(ErrorCode::UrlNotAllowed, &refusal.to_string()))?;
        let body = Bytes::from(body.to_string());
        let headers = headers(id, &body, webhook.secret.as_ref().and_then(|name| secrets.get(name)))?;
        let until = Instant::now() + WITHIN;
        let request = Request { target, method: Method::POST, headers, body, until, silence: Some(WITHIN) };
        match client.send(&request).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(told(ErrorCode::UpstreamError, &format!("`{host}` answered {}", answer.status))),
            Err(err @ WebError::Refused(_)) => Err(told(ErrorCode::UrlNotAllowed, &err.to_string())),
            Err(err) => Err(told(ErrorCode::NetworkError, &err.to_string())),
        }
    }
}

/// What goes with a delivery. Whoever knows the secret can tell that it is ours, whole and recent.
fn headers(id: &str, body: &Bytes, secret: Option<&String>) -> Result<HeaderMap, ToolError> {
    let unfit = |_| ToolError::new(ErrorCode::Internal, "the headers of a webhook cannot be written");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert("x-haft-delivery", id.parse().map_err(unfit)?);
    if let Some(secret) = secret {
        let at = jiff::Timestamp::now().as_second();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{at}.").as_bytes());
        context.update(body);
        let signed = format!("t={at},v1={}", random::hex(context.sign().as_ref()));
        headers.insert("x-haft-signature", signed.parse().map_err(unfit)?);
    }
    Ok(headers)
}

/// A text in which nothing is a link or a mention.
fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

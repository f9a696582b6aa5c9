//! Which notices a tenant and its people want.

use haft_runtime::{Caller, ErrorCode, Scope, ToolError};
use haft_sandbox::web::Url;
use haft_store::MemberRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Platform,
    authored::placeholder,
    platform::{mistake, not_found},
    secrets::host_of,
};

/// Under which name they are set.
const SETTING: &str = "notices";
/// The longest address.
const LONGEST_URL: usize = 2000;

/// Of which questions somebody hears by mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MailWish {
    /// Of none.
    Off,
    /// Of those that a rule names them for, and of those of their own calls.
    Mine,
    /// Of all that they may answer.
    #[default]
    All,
}

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// A yes or a no.
    Approval,
    /// A form to be filled in.
    Form,
    /// A result that somebody outside gives.
    Result,
}

impl NoticeKind {
    fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Form => "form",
            Self::Result => "result",
        }
    }
}

/// Where a tenant is told of questions by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoticeWebhook {
    /// An address that takes what Slack's incoming webhooks take. `{{secret:NAME}}` stands for a secret of the tenant.
    pub url: String,
    /// The name of the secret that each request is signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// What a tenant wants to be told, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TenantNotices {
    /// What holds for people who have not chosen.
    pub mail: MailWish,
    /// Where the tenant itself is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<NoticeWebhook>,
    /// Of which kinds of questions people are told.
    pub kinds: Vec<NoticeKind>,
}

impl Default for TenantNotices {
    fn default() -> Self {
        Self { mail: MailWish::All, webhook: None, kinds: vec![NoticeKind::Approval, NoticeKind::Form] }
    }
}

impl TenantNotices {
    /// Whether people are told of this kind of question.
    pub(crate) fn cover(&self, kind: &str) -> bool {
        self.kinds.iter().any(|known| known.word() == kind)
    }
}

/// What somebody wants for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonNotices {
    /// `None` for what the tenant has set.
    pub mail: Option<MailWish>,
}

impl PersonNotices {
    pub(crate) fn of(member: &MemberRecord) -> Self {
        member.notices.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

impl Platform {
    /// What a tenant wants to be told.
    pub async fn tenant_notices(&self, scope: &Scope) -> Result<TenantNotices, ToolError> {
        let Some(text) = self.store.tenant_setting(scope, SETTING).await? else { return Ok(TenantNotices::default()) };
        let damaged = |err| ToolError::new(ErrorCode::Internal, format!("the notices of the tenant: {err}"));
        serde_json::from_str(&text).map_err(damaged)
    }

    /// Changes what the caller's tenant wants to be told.
    pub async fn set_tenant_notices(&self, caller: &Caller, wanted: &TenantNotices) -> Result<(), ToolError> {
        if let Some(webhook) = &wanted.webhook {
            let (host, names) = secrets_of(webhook)?;
            self.bind_secrets(caller, &names, &host).await?;
        }
        let text = serde_json::to_string(wanted).map_err(|_| mistake("these settings cannot be kept"))?;
        let before = self.store.tenant_setting(&caller.scope, SETTING).await?;
        match self.store.change_tenant_setting(&caller.scope, (SETTING, before.as_deref()), &text).await? {
            true => Ok(()),
            false => {
                let message = "somebody else has changed the notices meanwhile; read them again";
                Err(ToolError::new(ErrorCode::Conflict, message))
            }
        }
    }

    /// A member of a tenant.
    pub(crate) async fn member(&self, scope: &Scope, person: &str) -> Result<MemberRecord, ToolError> {
        let found = self.store.members(scope).await?.into_iter().find(|member| member.person.id == person);
        found.ok_or_else(|| not_found("such person here"))
    }

    /// What a person wants, and the address that mail goes to.
    pub async fn person_notices(&self, scope: &Scope, person: &str) -> Result<(PersonNotices, String), ToolError> {
        let member = self.member(scope, person).await?;
        Ok((PersonNotices::of(&member), member.person.email))
    }

    /// Changes what a person wants.
    pub async fn set_person_notices(
        &self,
        scope: &Scope,
        person: &str,
        wanted: PersonNotices,
    ) -> Result<(), ToolError> {
        let text = serde_json::to_string(&wanted).map_err(|_| mistake("this cannot be kept"))?;
        match self.store.set_notices(scope, person, &text).await? {
            true => Ok(()),
            false => Err(not_found("such person here")),
        }
    }
}

/// The host of a webhook, and the secrets that go there.
pub(super) fn secrets_of(webhook: &NoticeWebhook) -> Result<(String, Vec<String>), ToolError> {
    if webhook.url.len() > LONGEST_URL {
        return Err(mistake(format!("`webhook.url` has more than {LONGEST_URL} characters")));
    }
    let names =
        placeholder::names(&webhook.url)?.into_iter().map(str::to_owned).chain(webhook.secret.clone()).collect();
    let url = placeholder::filled(&webhook.url, |_| "secret".to_owned());
    let fits = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = Url::parse(&url).ok().filter(fits);
    let url = url.ok_or_else(|| mistake("`webhook.url` is an address such as https://hooks.example.org/T1/B1"))?;
    // A secret in the place of the host would lead anywhere.
    let host = host_of(&url);
    match placeholder::filled(&webhook.url, |_| "another".to_owned()).parse::<Url>().map(|url| host_of(&url)) {
        Ok(same) if same == host => Ok((host, names)),
        Ok(_) | Err(_) => Err(mistake("a secret may stand in the path or query of `webhook.url`, not in its host")),
    }
}

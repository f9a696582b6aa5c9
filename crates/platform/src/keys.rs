//! Keys of programs: shown once, kept as a hash, never more than whoever made them may.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use haft_runtime::{Caller, CallerKind, Scope, ToolError};
use haft_store::{ApiKeyRecord, NewApiKey};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    KeyScope, Permission, Platform, QuotaKind,
    platform::{mistake, not_found},
    random,
};

const DAY: Duration = Duration::from_secs(24 * 3600);
const LONGEST_GRACE: Duration = Duration::from_secs(30 * 24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);
/// For how many keys and secrets it is remembered when their use was noted.
const MOST_NOTED: usize = 10_000;

/// A key right after it was made; its secret is never shown again.
#[derive(Clone, Debug, Serialize)]
pub struct MadeKey {
    /// What it is found by.
    pub id: String,
    /// The whole key.
    pub key: String,
}

/// A key to be made.
#[derive(Clone, Copy, Debug)]
pub struct KeyWish<'a> {
    /// The name that people give it.
    pub name: &'a str,
    /// What it is for.
    pub scopes: &'a [KeyScope],
    /// Until when; until it is removed where the tenant lets it.
    pub expires_at: Option<Timestamp>,
}

/// A key as others see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// What it is found by.
    pub id: String,
    /// The name that people gave it.
    pub name: String,
    /// What it is for.
    pub scopes: Vec<String>,
    /// The workspace that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Who made it; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Until when the secret counts that it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<Timestamp>,
}

impl From<ApiKeyRecord> for KeyView {
    fn from(record: ApiKeyRecord) -> Self {
        Self {
            id: record.id,
            name: record.name,
            scopes: record.scopes.split(',').map(str::to_owned).collect(),
            workspace: record.scope.workspace().map(ToString::to_string),
            made_by: record.made_by.map(|(person, _)| person),
            created_at: record.created_at,
            expires_at: record.expires_at,
            last_used_at: record.last_used_at,
            old_secret_until: record.old_secret.map(|(_, until)| until).filter(|until| *until > Timestamp::now()),
        }
    }
}

impl Platform {
    /// Makes a key of the operator, for the workspace of the scope where it has one.
    pub async fn add_key(&self, scope: &Scope, wish: &KeyWish<'_>) -> Result<MadeKey, ToolError> {
        self.make_key(scope, wish, None).await
    }

    /// Makes a key of somebody; it may never do more than they may, and lasts no longer than their tenant lets it.
    pub async fn add_own_key(&self, caller: &Caller, scope: &Scope, wish: &KeyWish<'_>) -> Result<MadeKey, ToolError> {
        if caller.id.kind != CallerKind::Person {
            return Err(mistake("only a person makes keys; the operator makes them with `haft admin key add`"));
        }
        let mut wish = *wish;
        if let Some(days) = self.settings(scope).await?.key_days {
            let last = Timestamp::now().checked_add(DAY * days).unwrap_or(Timestamp::MAX);
            if wish.expires_at.is_some_and(|wanted| wanted > last) {
                return Err(mistake(format!("`expiresAt` is too late: keys here last {days} days at most")));
            }
            wish.expires_at = wish.expires_at.or(Some(last));
        }
        self.make_key(scope, &wish, Some(caller.id.id.clone())).await
    }

    async fn make_key(&self, scope: &Scope, wish: &KeyWish<'_>, made_by: Option<String>) -> Result<MadeKey, ToolError> {
        let name = wish.name.trim();
        if name.is_empty() || name.chars().count() > 100 {
            return Err(mistake("a key has a name of 1 to 100 characters"));
        }
        if wish.scopes.is_empty() {
            return Err(mistake("a key is for something: name its scopes"));
        }
        if wish.expires_at.is_some_and(|until| until <= Timestamp::now()) {
            return Err(mistake("`expiresAt` has passed already"));
        }
        let (id, secret) = (random::text(12)?, random::text(random::SECRET)?);
        let words: Vec<&str> = wish.scopes.iter().map(|scope| scope.word()).collect();
        let new = NewApiKey {
            id: id.clone(),
            name: name.to_owned(),
            secret: random::hash(&secret),
            scopes: words.join(","),
            made_by,
            expires_at: wish.expires_at,
        };
        if !self.store.add_api_key(scope, &new).await? {
            let full = self.reached_quota(scope, QuotaKind::Keys).await?;
            return Err(full.unwrap_or_else(|| mistake("the key could not be added; try once more")));
        }
        Ok(MadeKey { key: format!("haft_{id}_{secret}"), id })
    }

    /// Gives a key that a caller may see another secret.
    pub async fn rotate_key(&self, caller: &Caller, id: &str, grace: Option<Duration>) -> Result<MadeKey, ToolError> {
        let keys = self.store.api_keys(&caller.scope).await?;
        if !keys.iter().any(|key| key.id == id && may_manage(caller, key)) {
            return Err(not_found(&format!("key `{id}`")));
        }
        self.rotate_key_of(&caller.scope, id, grace).await
    }

    /// Gives a key of a tenant another secret, for the operator. The one before counts for this long, and not at all
    /// without it.
    pub async fn rotate_key_of(&self, scope: &Scope, id: &str, grace: Option<Duration>) -> Result<MadeKey, ToolError> {
        let grace = grace.unwrap_or_default();
        if grace > LONGEST_GRACE {
            return Err(mistake("`grace` is too long: the old secret of a key counts for 30 days at most"));
        }
        let until = Timestamp::now().checked_add(grace).unwrap_or(Timestamp::MAX);
        let secret = random::text(random::SECRET)?;
        match self.store.rotate_api_key(scope, (id, &random::hash(&secret)), until).await? {
            true => Ok(MadeKey { key: format!("haft_{id}_{secret}"), id: id.to_owned() }),
            false => Err(not_found(&format!("key `{id}`"))),
        }
    }

    /// Whether the use of something is noted now: once a minute.
    pub(crate) fn is_noted_now(&self, of: &str) -> bool {
        let now = Instant::now();
        let mut noted = self.noted_uses.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(of).is_some_and(|last| now - *last < MINUTE) {
            return false;
        }
        if noted.len() >= MOST_NOTED {
            noted.retain(|_, last| now - *last < MINUTE);
        }
        noted.insert(of.to_owned(), now);
        true
    }

    /// Notes that a key was used. Nobody waits for it, and nothing fails by it.
    pub(crate) async fn note_use(&self, id: &str) {
        if !self.is_noted_now(id) {
            return;
        }
        if let Err(error) = self.store.note_use_of_key(&self.house, id).await {
            tracing::warn!(%error, "the use of a key could not be noted");
        }
    }

    /// The keys of a tenant, as far as a caller may see them.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<KeyView>, ToolError> {
        let keys = self.store.api_keys(&caller.scope).await?;
        Ok(keys.into_iter().filter(|key| may_manage(caller, key)).map(KeyView::from).collect())
    }

    /// Every key of a tenant, for the operator.
    pub async fn keys_of(&self, scope: &Scope) -> Result<Vec<KeyView>, ToolError> {
        Ok(self.store.api_keys(scope).await?.into_iter().map(KeyView::from).collect())
    }

    /// Removes a key that a caller may see.
    pub async fn remove_key(&self, caller: &Caller, id: &str) -> Result<(), ToolError> {
        let keys = self.store.api_keys(&caller.scope).await?;
        if !keys.iter().any(|key| key.id == id && may_manage(caller, key)) {
            return Err(not_found(&format!("key `{id}`")));
        }
        self.remove_key_of(&caller.scope, id).await
    }

    /// Removes a key of a tenant, for the operator.
    pub async fn remove_key_of(&self, scope: &Scope, id: &str) -> Result<(), ToolError> {
        match self.store.remove_api_key(scope, id).await? {
            true => Ok(()),
            false => Err(not_found(&format!("key `{id}`"))),
        }
    }
}

/// Everybody's keys for whoever may manage them, else one's own.
fn may_manage(caller: &Caller, key: &ApiKeyRecord) -> bool {
    let own = key.made_by.as_ref().is_some_and(|(person, _)| *person == caller.id.id);
    caller.permissions.allow(Permission::KeysTenantManage.word()) || own
}

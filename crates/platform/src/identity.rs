//! Who asks: a credential becomes a caller, and nothing else makes one.

use std::{collections::BTreeSet, sync::PoisonError};

use haft_runtime::{Caller, CallerId, CallerKind, ErrorCode, Permissions, Source, ToolError, Via};
use haft_store::ApiKeyRecord;
use jiff::Timestamp;

use crate::{
    KeyScope, Permission, Platform, Role, SubmitToken, random,
    roles::granted,
    sign_in::{SignInRecord, length},
};

/// For how many different scopes and roles what a key may do is kept at hand.
const MOST_KINDS_OF_KEYS: usize = 1024;

/// What came with a request.
#[derive(Clone, Copy, Debug)]
pub enum Credential<'a> {
    /// `Authorization: Bearer …`: a key, or a token that ends one call.
    Bearer(&'a str),
    /// The cookie of a signed-in person.
    Cookie(&'a str),
}

/// Who asks, and how that is known.
#[derive(Clone, Debug)]
pub struct CallerIdentity {
    /// Who.
    pub caller: Caller,
    /// What their tenant is called.
    pub tenant: String,
    /// How they signed in; `None` for programs.
    pub sign_in: Option<SignInRecord>,
    /// The yes by which a program asks for a person.
    pub consent: Option<String>,
    /// The hash of the secret of the key that was used.
    pub key_secret: Option<String>,
    /// When the credential ends by itself.
    pub until: Option<Timestamp>,
}

impl Platform {
    /// Who holds a credential; refused alike, whatever is wrong with it.
    pub async fn identify(&self, credential: Credential<'_>, source: Source) -> Result<CallerIdentity, ToolError> {
        let found = match credential {
            Credential::Bearer(text) => self.bearer(text, source).await?,
            Credential::Cookie(text) => self.cookie(text).await?,
        };
        found.ok_or_else(unknown)
    }

    async fn bearer(&self, text: &str, source: Source) -> Result<Option<CallerIdentity>, ToolError> {
        if let Some(token) = SubmitToken::read(self, text).await? {
            return Ok(Some(token));
        }
        if let Some(person) = self.by_access_token(text, source).await? {
            return Ok(Some(person));
        }
        let Some((id, secret)) = text.strip_prefix("haft_").and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        let known = self.store.api_key(&self.house, id).await?;
        let Some(key) = known else { return Ok(None) };
        let Some(by) = KeySecret::of(&key, |known| random::is_secret(known, secret)) else { return Ok(None) };
        self.note_use(id).await;
        Ok(self.of_key(key, source, by))
    }

    async fn cookie(&self, text: &str) -> Result<Option<CallerIdentity>, ToolError> {
        let Some(known) = self.store.sign_in(&self.house, &random::hash(text)).await? else { return Ok(None) };
        self.of_sign_in(known).await
    }

    /// Whether somebody still is who they were when their request came, and what they may do now.
    pub async fn identify_again(&self, identity: &CallerIdentity) -> Result<Option<CallerIdentity>, ToolError> {
        let caller = &identity.caller;
        if let Some(consent) = &identity.consent {
            let known = self.store.consent(&self.house, consent).await?;
            let until = identity.until.filter(|until| *until > Timestamp::now());
            return Ok(known.zip(until).map(|(known, until)| self.of_consent(&known, caller.source, Some(until))));
        }
        match (&identity.sign_in, caller.id.kind) {
            (Some(sign_in), _) => match self.store.sign_in(&self.house, &sign_in.id).await? {
                // Whoever looks at another tenant now listens there.
                Some(known) if known.scope.tenant() == caller.scope.tenant() => self.of_sign_in(known).await,
                Some(_) | None => Ok(None),
            },
            (None, CallerKind::Key) => {
                let known = self.store.api_key(&self.house, &caller.id.id).await?;
                // Whoever came with a secret that was replaced stays only as long as that one counts.
                let used = identity.key_secret.as_deref();
                let Some(key) = known else { return Ok(None) };
                let by = KeySecret::of(&key, |known| used == Some(known));
                Ok(by.and_then(|by| self.of_key(key, caller.source, by)))
            }
            (None, _) => Ok(None),
        }
    }

    /// What a key may do. Keys of the same scopes and role share one set, so that it is not made for every request.
    pub(crate) fn permissions_of_key(&self, key: &ApiKeyRecord) -> Permissions {
        let kind = (key.scopes.clone(), key.made_by.as_ref().map(|(_, role)| role.clone()));
        let mut known = self.key_permissions.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KINDS_OF_KEYS {
            known.clear();
        }
        known.entry(kind).or_insert_with(|| permissions_of_key(key)).clone()
    }

    /// Who asks by a key; nobody once it is over or whoever made it has left.
    fn of_key(&self, key: ApiKeyRecord, source: Source, by: KeySecret) -> Option<CallerIdentity> {
        if !counts(&key) {
            return None;
        }
        self.saw_version(&key.scope, key.version);
        let caller = Caller {
            id: CallerId { kind: CallerKind::Key, id: key.id.clone() },
            name: key.name.clone(),
            scope: key.scope.clone(),
            permissions: self.permissions_of_key(&key),
            source,
            via: Via::default(),
        };
        let until = [key.expires_at, by.until].into_iter().flatten().min();
        let key_secret = Some(by.hash);
        Some(CallerIdentity { caller, tenant: key.slug, sign_in: None, consent: None, key_secret, until })
    }

    async fn of_sign_in(&self, mut known: SignInRecord) -> Result<Option<CallerIdentity>, ToolError> {
        self.saw_version(&known.scope, known.version);
        // The tenant may have set another time since.
        let until = known.created_at.checked_add(length(self.settings(&known.scope).await?)).unwrap_or(Timestamp::MAX);
        known.expires_at = known.expires_at.min(until);
        if !self.counts(&known) {
            return Ok(None);
        }
        let caller = Caller {
            id: CallerId { kind: CallerKind::Person, id: known.person.clone() },
            name: known.name.clone(),
            scope: known.scope.clone(),
            permissions: permissions_of_role(&known.role),
            source: Source::Web,
            via: Via::default(),
        };
        let until = Some(known.expires_at);
        let (tenant, key_secret) = (known.slug.clone(), None);
        Ok(Some(CallerIdentity { caller, tenant, sign_in: Some(known), consent: None, key_secret, until }))
    }
}

/// One of the secrets of a key that count now.
struct KeySecret {
    hash: String,
    /// Until when, for one that was replaced.
    until: Option<Timestamp>,
}

impl KeySecret {
    /// The one that was used, by its hash.
    fn of(key: &ApiKeyRecord, is_used: impl Fn(&str) -> bool) -> Option<Self> {
        if is_used(&key.secret) {
            return Some(Self { hash: key.secret.clone(), until: None });
        }
        let (hash, until) = key.old_secret.clone().filter(|(_, until)| *until > Timestamp::now())?;
        is_used(&hash).then_some(Self { hash, until: Some(until) })
    }
}

/// Whether a key is one: it has not ended, and whoever made it is still there.
pub(crate) fn counts(key: &ApiKeyRecord) -> bool {
    let has_left = matches!(&key.made_by, Some((_, None)));
    !has_left && key.expires_at.is_none_or(|until| until > Timestamp::now())
}

/// What a role may do; one that nobody knows may nothing.
pub(crate) fn permissions_of_role(role: &str) -> Permissions {
    Role::parse(role).map_or_else(Permissions::none, |role| granted(&role.permissions()))
}

/// What a key is for, as far as whoever made it may do so now.
fn permissions_of_key(key: &ApiKeyRecord) -> Permissions {
    let scopes = key.scopes.split(',').filter_map(KeyScope::parse);
    let wanted: BTreeSet<Permission> = scopes.flat_map(KeyScope::permissions).collect();
    match &key.made_by {
        None => granted(&wanted),
        Some((_, None)) => Permissions::none(),
        Some((_, Some(role))) => {
            let may = Role::parse(role).map(Role::permissions).unwrap_or_default();
            granted(&wanted.intersection(&may).copied().collect())
        }
    }
}

fn unknown() -> ToolError {
    ToolError::new(ErrorCode::Unauthorized, "the credential is not known here; sign in, or send a valid key")
}

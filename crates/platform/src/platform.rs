//! Everything that is multi-user, around one store.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, HouseWide, Permissions, Scope, TenantId, ToolError};
pub use haft_store::{LatencyCounts, LatencyHistogram};
use haft_store::{OpenCounts, Store};
use tokio::sync::Semaphore;

use crate::{MasterKey, TenantSettings, attempts::Attempts, oauth::client::ClientDocuments, quota_cache::QuotaCache};

/// How many passwords are hashed at once.
const HASHES_AT_ONCE: usize = 4;

/// How long a version is believed that nobody has seen again.
const BELIEVED: Duration = Duration::from_secs(1);

/// The rules of tenants, people and keys, on one store.
pub struct Platform {
    pub(crate) store: Store,
    pub(crate) house: HouseWide,
    pub(crate) key: MasterKey,
    /// The newest version of each tenant that somebody has seen; whoever keeps something of a tenant compares with it.
    versions: Mutex<HashMap<TenantId, SeenVersion>>,
    /// The settings of tenants, each as of a version.
    settings: Mutex<HashMap<TenantId, (i64, TenantSettings)>>,
    /// The quotas of tenants, each as of a version.
    pub(crate) quota_cache: QuotaCache,
    /// How often passwords were tried.
    pub(crate) attempts: Attempts,
    /// Hashing a password takes memory and time on purpose: only so many at once.
    pub(crate) hashing: Semaphore,
    /// When the use of each key was last noted.
    pub(crate) noted_uses: Mutex<HashMap<String, Instant>>,
    /// What keys may do, by their scopes and, of those that somebody made, by the role of whoever made them.
    pub(crate) key_permissions: Mutex<HashMap<KeyKind, Permissions>>,
    /// What programs say of themselves at their own addresses.
    pub(crate) documents: ClientDocuments,
}

/// The scopes of a key, and the role of whoever made it: of the operator's none, and of somebody who left `Some(None)`.
pub(crate) type KeyKind = (String, Option<Option<String>>);

/// The version of a tenant, and when somebody saw it in the database.
#[derive(Clone, Copy)]
struct SeenVersion {
    version: i64,
    at: Instant,
}

impl Platform {
    /// On this store.
    pub fn new(store: Store, house: HouseWide, key: MasterKey) -> Self {
        Self {
            store,
            house,
            key,
            versions: Mutex::default(),
            settings: Mutex::default(),
            quota_cache: QuotaCache::default(),
            attempts: Attempts::default(),
            hashing: Semaphore::new(HASHES_AT_ONCE),
            noted_uses: Mutex::default(),
            key_permissions: Mutex::default(),
            documents: ClientDocuments::default(),
        }
    }

    /// The journal, the questions and everything else that lasts.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What secrets are sealed by and tokens derived from.
    pub fn master_key(&self) -> &MasterKey {
        &self.key
    }

    /// How many questions are open and how many calls wait, of all tenants, counted up to this many.
    pub async fn open_counts(&self, most: u32) -> Result<(i64, i64), ToolError> {
        let OpenCounts { questions, waiting } = self.store.open_counts(&self.house, most).await?;
        Ok((questions, waiting))
    }

    /// How long reads and commits of the database took.
    pub fn database_latency(&self) -> (LatencyCounts, LatencyCounts) {
        self.store.latency(&self.house)
    }

    /// Notes the version of a tenant that came with a credential, so that nobody need ask for it once more.
    pub(crate) fn saw_version(&self, scope: &Scope, version: i64) {
        let seen = SeenVersion { version, at: Instant::now() };
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = versions.entry(scope.tenant().clone()).or_insert(seen);
        if version >= newest.version {
            *newest = seen;
        }
    }

    /// The newest version of a tenant that is known here. The database is asked where nobody has seen it for a second: so a
    /// change counts everywhere by then, also for calls that no credential came with.
    pub async fn version(&self, scope: &Scope) -> Result<i64, ToolError> {
        self.version_as_of(scope, BELIEVED).await
    }

    /// The version of a tenant as it was no longer ago than this. All who ask share one look at the database.
    pub async fn version_as_of(&self, scope: &Scope, age: Duration) -> Result<i64, ToolError> {
        let known = self.versions.lock().unwrap_or_else(PoisonError::into_inner).get(scope.tenant()).copied();
        match known {
            Some(seen) if seen.at.elapsed() < age => Ok(seen.version),
            Some(_) | None => self.look_at_version(scope).await,
        }
    }

    /// The settings of a tenant, if they are known as of this version.
    pub(crate) fn known_settings(&self, scope: &Scope, version: i64) -> Option<TenantSettings> {
        let known = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(scope.tenant()).filter(|(known, _)| *known == version).map(|(_, settings)| *settings)
    }

    pub(crate) fn keep_settings(&self, scope: &Scope, known: (i64, TenantSettings)) {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.tenant().clone(), known);
    }

    /// The version of a tenant as the database has it now.
    pub async fn look_at_version(&self, scope: &Scope) -> Result<i64, ToolError> {
        let version = self.store.tenant_version(scope).await?;
        self.saw_version(scope, version);
        Ok(version)
    }
}

/// Somebody else's things, and things that never were, look alike.
pub(crate) fn not_found(what: &str) -> ToolError {
    ToolError::new(ErrorCode::NotFound, format!("there is no {what}"))
}

/// A mistake in what somebody wrote.
pub(crate) fn mistake(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, message)
}

//! What a tenant sets for itself.

use haft_runtime::{ErrorCode, Scope, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Platform, platform::mistake};

/// What the settings are kept as.
pub const TENANT_SETTINGS: &str = "own";
/// The longest that somebody stays signed in.
const MOST_HOURS: u32 = 30 * 24;
/// The longest that keys can be made to last.
const MOST_DAYS: u32 = 3650;

/// The settings of a tenant. What is not set has its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TenantSettings {
    /// After how many hours people must sign in again, from 1 to 720.
    pub sign_in_hours: u32,
    /// After how many days a new key ends at the latest, from 1 to 3650; without it a key lasts until it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_days: Option<u32>,
    /// How long what is past is kept, where that is shorter than the operator keeps it.
    #[serde(skip_serializing_if = "TenantRetention::is_empty")]
    pub retention: TenantRetention,
}

/// For how many days a tenant keeps what is past, each from 1 to 3650. What is not set is kept as long as the operator says;
/// nothing is kept longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TenantRetention {
    /// Ended calls, with their questions and events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_days: Option<u32>,
    /// The whole of long results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs_days: Option<u32>,
    /// What was uploaded; without it, until somebody removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_days: Option<u32>,
    /// Items of inboxes that were read; without it, for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbox_days: Option<u32>,
}

impl TenantRetention {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn check(self) -> Result<(), ToolError> {
        let days = [
            ("journalDays", self.journal_days),
            ("outputsDays", self.outputs_days),
            ("mediaDays", self.media_days),
            ("inboxDays", self.inbox_days),
        ];
        match days.iter().find(|(_, days)| days.is_some_and(|days| !(1..=MOST_DAYS).contains(&days))) {
            Some((name, _)) => Err(mistake(format!("`retention.{name}` is a number from 1 to {MOST_DAYS}"))),
            None => Ok(()),
        }
    }
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self { sign_in_hours: MOST_HOURS, key_days: None, retention: TenantRetention::default() }
    }
}

impl TenantSettings {
    fn check(self) -> Result<Self, ToolError> {
        if !(1..=MOST_HOURS).contains(&self.sign_in_hours) {
            return Err(mistake(format!("`signInHours` is a number from 1 to {MOST_HOURS}")));
        }
        if self.key_days.is_some_and(|days| !(1..=MOST_DAYS).contains(&days)) {
            return Err(mistake(format!("`keyDays` is a number from 1 to {MOST_DAYS}")));
        }
        self.retention.check()?;
        Ok(self)
    }
}

impl Platform {
    /// The settings of a tenant.
    pub async fn settings(&self, scope: &Scope) -> Result<TenantSettings, ToolError> {
        let version = self.version(scope).await?;
        if let Some(known) = self.known_settings(scope, version) {
            return Ok(known);
        }
        let settings = tenant_settings(self.store.tenant_setting(scope, TENANT_SETTINGS).await?.as_deref())?;
        self.keep_settings(scope, (version, settings));
        Ok(settings)
    }

    /// Puts other settings in the place of those of a tenant.
    pub async fn set_settings(&self, scope: &Scope, settings: TenantSettings) -> Result<TenantSettings, ToolError> {
        let settings = settings.check()?;
        let text = serde_json::to_string(&settings).map_err(|_| mistake("these settings cannot be kept"))?;
        let before = self.store.tenant_setting(scope, TENANT_SETTINGS).await?;
        if !self.store.change_tenant_setting(scope, (TENANT_SETTINGS, before.as_deref()), &text).await? {
            let message = "somebody else has changed the settings meanwhile; read them again";
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        self.look_at_version(scope).await?;
        Ok(settings)
    }
}

/// The settings of a tenant as they are kept; what was never set has its default.
pub fn tenant_settings(text: Option<&str>) -> Result<TenantSettings, ToolError> {
    let Some(text) = text else { return Ok(TenantSettings::default()) };
    let damaged =
        |err| ToolError::new(ErrorCode::Internal, format!("the settings of the tenant cannot be read: {err}"));
    serde_json::from_str(text).map_err(damaged)
}

//! A remembered yes: a lease that covers what lies within its bounds, until it ends, is used up or taken back.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bounds, CallerId};

/// The id of a grant: `g_` and a UUIDv7.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GrantId(String);

impl GrantId {
    /// A new id, later than every earlier one of this process.
    pub fn new() -> Self {
        Self(format!("g_{}", uuid::Uuid::now_v7().simple()))
    }

    /// What was typed, when it can be an id at all.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.strip_prefix("g_")?;
        let fits = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for GrantId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A remembered yes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Which one.
    pub id: GrantId,
    /// For which tool.
    pub tool: String,
    /// What it covers.
    pub bounds: Bounds,
    /// For which caller; `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerId>,
    /// Who gave it; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_by: Option<CallerId>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How often it may still be used; `None` means without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_left: Option<u32>,
    /// How often it has been used.
    #[serde(default)]
    pub used: u32,
    /// When it was used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
    /// When it was given.
    pub created_at: Timestamp,
    /// Whether it was taken back.
    #[serde(default)]
    pub revoked: bool,
}

/// Whether a grant still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantStatus {
    /// It does.
    Usable,
    /// It was taken back.
    Revoked,
    /// Its time is over.
    Expired,
    /// It was used as often as it could be.
    Spent,
}

impl GrantStatus {
    /// The word that people read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Spent => "spent",
        }
    }
}

impl Grant {
    /// A grant for anybody, without an end, that was never used.
    pub fn new(tool: impl Into<String>, bounds: Bounds) -> Self {
        Self {
            id: GrantId::new(),
            tool: tool.into(),
            bounds,
            caller: None,
            given_by: None,
            until: None,
            uses_left: None,
            used: 0,
            last_used: None,
            created_at: Timestamp::now(),
            revoked: false,
        }
    }

    /// Whether it counts at a moment.
    pub fn standing(&self, now: Timestamp) -> GrantStatus {
        if self.revoked {
            GrantStatus::Revoked
        } else if self.uses_left == Some(0) {
            GrantStatus::Spent
        } else if self.until.is_some_and(|until| until <= now) {
            GrantStatus::Expired
        } else {
            GrantStatus::Usable
        }
    }
}

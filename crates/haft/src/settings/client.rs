//! What MCP clients get: which tools they always show, and whether their people's yes counts.

use anyhow::{Context, Result};
use haft_runtime::Pins;

use super::values::texts;

/// What MCP clients get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whether a question that was accepted in a client counts as the person's yes.
    pub may_approve: ClientMayApprove,
    /// The tools of upstream servers that are always shown.
    pub pins: Pins,
}

impl ClientSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "mcp.client_may_approve" => self.may_approve = ClientMayApprove::parse(value)?,
            "mcp.pins" => self.pins = Pins(texts(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What may be approved through a client. Ordered: a later one lets more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientMayApprove {
    /// Nothing: questions are answered in haft's own doors.
    Nothing,
    /// All but what destroys, and changes that are flagged.
    #[default]
    Safe,
    /// Everything.
    Everything,
}

impl ClientMayApprove {
    fn parse(text: &str) -> Result<Self> {
        let known = [Self::Nothing, Self::Safe, Self::Everything].into_iter().find(|known| known.word() == text);
        known.with_context(|| format!("`{text}` does not say what a client may approve: none, safe or all"))
    }

    /// As a file says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Safe => "safe",
            Self::Everything => "all",
        }
    }
}

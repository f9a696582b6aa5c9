//! What MCP clients get: which tools they always show, and whether their people's yes counts.

use anyhow::{Context, Result};
use haft_mcp::MayApprove;
use haft_runtime::PinnedTools;

use super::values::texts;

/// What MCP clients get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whether a question that was accepted in a client counts as the person's yes.
    pub may_approve: MayApprove,
    /// The tools of upstream servers that are always shown.
    pub pins: PinnedTools,
}

impl ClientSettings {
    /// `false` when the key is none of these.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "mcp.client_may_approve" => self.may_approve = parse(value)?,
            "mcp.pins" => self.pins = PinnedTools(texts(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn parse(text: &str) -> Result<MayApprove> {
    let known = [MayApprove::Nothing, MayApprove::Harmless, MayApprove::Everything];
    let meant = known.into_iter().find(|known| known.word() == text);
    meant.with_context(|| format!("`{text}` does not say what a client may approve: none, safe or all"))
}

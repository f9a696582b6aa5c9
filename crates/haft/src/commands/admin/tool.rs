//! `haft admin tool`: switches tools off and on, for one tenant or for all.

use anyhow::Result;
use haft_platform::AuthoredTools;
use haft_runtime::Scope;
use serde_json::json;

use super::Told;

#[derive(clap::Subcommand)]
pub(super) enum ToolCommand {
    /// Switch a tool off: nobody sees it or can call it
    Disable(ToolArgs),
    /// Switch a tool on again
    Enable(ToolArgs),
}

#[derive(clap::Args)]
pub(super) struct ToolArgs {
    /// The tool
    pub(super) name: String,
    /// For this tenant
    #[arg(long, required_unless_present = "all_tenants")]
    pub(super) tenant: Option<String>,
    /// For all tenants, which cannot switch it on again themselves
    #[arg(long, conflicts_with = "tenant")]
    pub(super) all_tenants: bool,
}

impl ToolCommand {
    pub(super) fn args(&self) -> &ToolArgs {
        match self {
            Self::Disable(args) | Self::Enable(args) => args,
        }
    }

    /// Does it where the scope says.
    pub(super) async fn run(&self, tools: &AuthoredTools, scope: &Scope) -> Result<Told> {
        let ToolArgs { name, tenant, .. } = self.args();
        let (enabled, word) = match self {
            Self::Disable(_) => (false, "off"),
            Self::Enable(_) => (true, "on"),
        };
        tools.switch(scope, name, enabled).await?;
        let whom = tenant.as_deref().unwrap_or("all tenants");
        let mut sentence = format!("{name} is {word} for {whom}");
        if enabled && tenant.is_some() && tools.is_off_for_all(name).await? {
            sentence
                .push_str(&format!(", but off for all; `haft admin tool enable {name} --all-tenants` changes that"));
        }
        Ok(Told::One(json!({"tool": name, "tenant": tenant, "enabled": enabled}), sentence))
    }
}

//! The tenant `demo`: something to try, all of it data. What is there already stays as it is.

use std::{fs, os::unix::fs::DirBuilderExt};

use anyhow::{Context, Result};
use haft_platform::{Role, WorkspaceFolder};
use haft_runtime::{Caller, ErrorCode, Scope, Source, ToolError};
use serde_json::Value;

use crate::{house::TenantHouse, settings::Settings};

const SLUG: &str = "demo";
const TOOLS: &str = include_str!("demo/tools.json");
const README: &str = include_str!("demo/README.md");

/// Adds the tenant with its tools and a workspace; its owner is this machine's own user.
pub(crate) async fn add(house: &TenantHouse, settings: &Settings) -> Result<()> {
    let platform = &house.app.platform;
    there_already(platform.add_tenant(SLUG, Some("Demo")).await.map(drop))?;
    let scope = platform.tenant(SLUG).await?.scope;
    platform.have_local_user(&scope, &settings.user, Role::Owner).await?;
    let caller = Caller::owner(settings.user.clone(), scope.clone(), Source::House);
    let tools: Vec<Value> = serde_json::from_str(TOOLS).context("the demo's tools are no JSON")?;
    for tool in tools {
        there_already(house.app.authored.add(&caller, tool).await.map(drop))?;
    }
    there_already(platform.add_workspace(&scope, SLUG, None).await.map(drop))?;
    write_readme(house, &scope).await
}

/// Once, when the folder is made: what its people remove stays removed.
async fn write_readme(house: &TenantHouse, scope: &Scope) -> Result<()> {
    let workspace = house.app.platform.workspace_named(scope, SLUG).await?;
    let WorkspaceFolder::Managed(folder) = house.folder_of(&workspace.scope).await? else { return Ok(()) };
    if folder.exists() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    fs::write(folder.join("README.md"), README).with_context(|| format!("cannot write to {}", folder.display()))
}

fn there_already(done: Result<(), ToolError>) -> Result<()> {
    match done {
        Err(error) if error.code == ErrorCode::AlreadyExists => Ok(()),
        done => Ok(done?),
    }
}

//! Workspaces of tenants: folders that haft keeps, or folders of the host.

use std::path::{Path, PathBuf};

use haft_runtime::{CallId, Caller, ErrorCode, Scope, TenantId, ToolError, WorkspaceId};
use haft_store::WorkspaceRecord;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    Platform,
    platform::{mistake, not_found},
};

/// A workspace as others see it. Where its folder lies is the operator's to know.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceSummary {
    /// What it is found by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// `managed` by haft, or `mapped` to a folder of the host.
    pub kind: &'static str,
    /// The node where it lives, once one has worked in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
}

impl From<&WorkspaceRecord> for WorkspaceSummary {
    fn from(record: &WorkspaceRecord) -> Self {
        Self {
            id: record.scope.workspace().map(ToString::to_string).unwrap_or_default(),
            name: record.name.clone(),
            kind: if record.folder.is_some() { "mapped" } else { "managed" },
            node: record.node.clone(),
            created_at: record.created_at,
        }
    }
}

impl Platform {
    /// Adds a workspace: a folder of the host where one is given.
    pub async fn add_workspace(
        &self,
        scope: &Scope,
        name: &str,
        folder: Option<&Path>,
    ) -> Result<WorkspaceSummary, ToolError> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if name.is_empty() || name.len() > 64 || !plain || name.starts_with('.') {
            return Err(mistake(format!("`{name}` is no name of a workspace: letters, digits, `-`, `_` and `.`")));
        }
        let folder =
            folder.map(|folder| folder.to_str().ok_or_else(|| mistake("its folder is no text"))).transpose()?;
        // Whoever uses haft in a folder of this machine by other commands has that folder as its workspace.
        let is_local = *scope.tenant() == TenantId::local();
        let id = match folder {
            Some(folder) if is_local => WorkspaceId::new(folder),
            Some(_) | None => WorkspaceId::new(format!("ws_{}", uuid::Uuid::now_v7().simple())),
        };
        if !self.store.add_workspace(scope, &id, (name, folder)).await? {
            return Err(ToolError::new(ErrorCode::AlreadyExists, format!("there is a workspace `{name}` already")));
        }
        Ok(WorkspaceSummary::from(&self.workspace_named(scope, name).await?))
    }

    /// The workspaces of a tenant.
    pub async fn workspaces(&self, scope: &Scope) -> Result<Vec<WorkspaceRecord>, ToolError> {
        Ok(self.store.workspaces(scope).await?)
    }

    /// The workspace with this name, or with this id.
    pub async fn workspace_named(&self, scope: &Scope, name: &str) -> Result<WorkspaceRecord, ToolError> {
        if let Some(found) = self.store.workspace_by_name(scope, name).await? {
            return Ok(found);
        }
        let all = self.store.workspaces(scope).await?;
        let is_meant =
            |record: &WorkspaceRecord| record.scope.workspace().is_some_and(|workspace| workspace.as_str() == name);
        all.into_iter().find(is_meant).ok_or_else(|| not_found(&format!("workspace `{name}`")))
    }

    /// Removes a workspace from the list. Its folder stays where it is.
    pub async fn remove_workspace(&self, scope: &Scope, name: &str) -> Result<(), ToolError> {
        let found = self.workspace_named(scope, name).await?;
        self.store.remove_workspace(&found.scope).await?;
        Ok(())
    }

    /// The same caller in another workspace of their tenant. On this machine every folder in which its user has used haft
    /// is one.
    pub async fn in_workspace(&self, caller: Caller, name: &str) -> Result<Caller, ToolError> {
        let scope = match self.workspace_named(&caller.scope, name).await {
            Ok(found) => found.scope,
            Err(unknown) if *caller.scope.tenant() == TenantId::local() => {
                self.store.folder_in_use(&caller.scope, name).await?.ok_or(unknown)?
            }
            Err(unknown) => return Err(unknown),
        };
        Ok(Caller { scope, ..caller })
    }

    /// Gives a workspace to a node that sees the same folder.
    pub async fn move_workspace(&self, scope: &Scope, name: &str, node: &str) -> Result<(), ToolError> {
        if !is_node_name(node) {
            return Err(mistake(format!("`{node}` is no name of a node; it is what `serve.node` says there")));
        }
        let found = self.workspace_named(scope, name).await?;
        self.store.move_workspace(&found.scope, node).await?;
        Ok(())
    }

    /// The node that has to carry an answered call on, where that is another one.
    pub async fn waiting_for_node(&self, scope: &Scope, call: &CallId) -> Result<Option<String>, ToolError> {
        Ok(self.store.waiting_for_node(scope, call).await?)
    }

    /// The folder of a scope's workspace, and whether what lies in it may say how haft behaves there. A workspace that lives
    /// on another node has none here.
    pub async fn folder_of(&self, scope: &Scope, managed: &Path) -> Result<WorkspaceFolder, ToolError> {
        let Some(workspace) = scope.workspace() else { return Err(not_found("workspace for this call")) };
        if let Some(node) = self.store.workspace_elsewhere(scope).await? {
            let message = format!("the workspace of this call lives on node {node}; send the call there");
            return Err(ToolError::new(ErrorCode::Unavailable, message).with("node", node));
        }
        // The folders of this machine's own user are named by their paths, and those that haft keeps are not.
        if *scope.tenant() == TenantId::local() && Path::new(workspace.as_str()).is_absolute() {
            return Ok(WorkspaceFolder::OfThisUser(PathBuf::from(workspace.as_str())));
        }
        let unknown = || not_found(&format!("workspace `{workspace}`"));
        let record = self.store.workspace_of(scope).await?.ok_or_else(unknown)?;
        Ok(match record.folder {
            Some(folder) => WorkspaceFolder::Mapped(folder.into()),
            None => WorkspaceFolder::Managed(managed.join(scope.tenant().as_str()).join(workspace.as_str())),
        })
    }
}

/// Whether a text can be the name of a node.
pub fn is_node_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(plain)
}

/// Where a workspace lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceFolder {
    /// A folder of this machine's own user, with the settings that were trusted there.
    OfThisUser(PathBuf),
    /// A folder of the host that the operator gave to a tenant.
    Mapped(PathBuf),
    /// A folder that haft makes when it is first used.
    Managed(PathBuf),
}

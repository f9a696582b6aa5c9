//! Saving, changing, restoring and deleting the tools that people write, and what they change of those that are code.

use std::sync::Arc;

use haft_runtime::{Caller, ErrorCode, RegisteredTool, Scope, ToolError};
use haft_store::{NewToolRow, ToolRow, ToolRowKind, ToolVersion};
use jiff::Timestamp;
use ring::digest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    AuthoredTool, AuthoredTools,
    overrides::{self, ToolOverride, in_force, refuse_loosening, without_loosening},
};
use crate::{QuotaKind, platform::not_found, random};

/// Who saves what nobody in the tenant saved.
const OPERATOR: &str = "operator";

/// What somebody has saved.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedTool {
    /// What that is.
    pub content: SavedContent,
    /// How often it was saved.
    pub version: i64,
    /// Who saved it last.
    pub saved_by: String,
    /// When.
    pub saved_at: Timestamp,
}

/// A whole tool, or what is changed of one.
#[derive(Clone, Debug, PartialEq)]
pub enum SavedContent {
    /// A tool that somebody wrote.
    Tool(Box<AuthoredTool>),
    /// What is changed of a tool that is code.
    Override(Box<ToolOverride>),
}

impl SavedTool {
    /// What is told of it beside the tool itself. What stands for a secret stays what it is.
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = match &self.content {
            SavedContent::Tool(tool) => {
                let mut fields = json!(tool).as_object().cloned().unwrap_or_default();
                let title = tool.name.clone().unwrap_or_else(|| tool.slug.clone());
                fields.insert("name".to_owned(), json!(tool.slug));
                fields.insert("title".to_owned(), json!(title));
                fields.insert("effect".to_owned(), json!(tool.effect()));
                fields.insert("visible".to_owned(), json!(tool.is_visible()));
                fields.insert("enabled".to_owned(), json!(tool.enabled != Some(false)));
                fields
            }
            SavedContent::Override(changed) => Map::from_iter([("override".to_owned(), json!(changed))]),
        };
        let saved =
            [("version", json!(self.version)), ("savedBy", json!(self.saved_by)), ("savedAt", json!(self.saved_at))];
        fields.extend(saved.map(|(name, value)| (name.to_owned(), value)));
        fields
    }

    fn read(row: &ToolRow) -> Result<Self, ToolError> {
        let content = match row.kind {
            ToolRowKind::Custom => SavedContent::Tool(Box::new(read(&row.slug, &row.body)?)),
            ToolRowKind::Override => SavedContent::Override(Box::new(overrides::read(row)?)),
        };
        Ok(Self { content, version: row.version, saved_by: row.saved_by.clone(), saved_at: row.saved_at })
    }
}

/// One save of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    /// Its number, from 1.
    pub version: i64,
    /// The hash of what was saved.
    pub hash: String,
    /// Who saved it.
    pub saved_by: String,
    /// When.
    pub saved_at: Timestamp,
}

impl From<ToolVersion> for VersionView {
    fn from(one: ToolVersion) -> Self {
        Self { version: one.version, hash: one.hash, saved_by: one.saved_by, saved_at: one.saved_at }
    }
}

/// What is changed of a tool that is code: its name, what one tenant says and in which version, and what is said for all.
struct OverrideRow {
    tool: Arc<RegisteredTool>,
    own: ToolOverride,
    version: i64,
    for_all: ToolOverride,
}

impl AuthoredTools {
    /// Makes a tool.
    pub async fn add(&self, caller: &Caller, written: Value) -> Result<SavedTool, ToolError> {
        let tool = AuthoredTool::read(written)?;
        // Two names that differ by large letters alone are one name to most readers.
        let is_taken = self.code_names().iter().any(|name| name.eq_ignore_ascii_case(&tool.slug));
        if is_taken || self.code(&tool.slug).is_some() || !self.save(caller, &tool, 0).await? {
            let message = format!("there is a tool `{}` already; choose another slug", tool.slug);
            return Err(ToolError::new(ErrorCode::AlreadyExists, message));
        }
        self.find(&caller.scope, &tool.slug).await
    }

    /// Changes some fields of a tool.
    pub async fn change(
        &self,
        caller: &Caller,
        slug: &str,
        fields: &Map<String, Value>,
    ) -> Result<SavedTool, ToolError> {
        if let Some(row) = self.override_row(&caller.scope, slug).await? {
            let mut fields = fields.clone();
            fields.remove("slug");
            let changed = row.own.changed(&fields)?;
            return self.replace_override(caller, &row, changed).await;
        }
        let (tool, version) = self.authored(&caller.scope, slug).await?;
        self.replace(caller, &tool.changed(fields)?, version).await
    }

    /// Makes an old version the newest.
    pub async fn restore(&self, caller: &Caller, slug: &str, version: i64) -> Result<SavedTool, ToolError> {
        let content = async |kind, slug: &str| {
            let content = self.platform.store.tool_content(&caller.scope, (kind, slug), version).await?;
            content.ok_or_else(|| not_found(&format!("version {version} of `{slug}`")))
        };
        if let Some(row) = self.override_row(&caller.scope, slug).await? {
            let content = content(ToolRowKind::Override, row.name()).await?;
            return self.replace_override(caller, &row, read(slug, &content)?).await;
        }
        let (_, over) = self.authored(&caller.scope, slug).await?;
        let content = content(ToolRowKind::Custom, slug).await?;
        self.replace(caller, &read(slug, &content)?, over).await
    }

    /// Deletes a tool with its versions, or takes back what the tenant changed of one that is code.
    pub async fn remove(&self, caller: &Caller, slug: &str) -> Result<(), ToolError> {
        let (scope, store) = (&caller.scope, &self.platform.store);
        if let Some(row) = self.override_row(scope, slug).await? {
            row.refuse_loosening(caller, &ToolOverride::default())?;
            let removed = store.remove_tool(scope, ToolRowKind::Override, row.name()).await?;
            return if removed { self.changed(scope).await } else { Err(unchanged(slug)) };
        }
        self.refuse_referred(scope, slug).await?;
        match store.remove_tool(scope, ToolRowKind::Custom, slug).await? {
            true => self.changed(scope).await,
            false => Err(unwritten(slug)),
        }
    }

    /// Switches a tool on or off, for one tenant or, where it is code, for all.
    pub async fn switch(&self, scope: &Scope, slug: &str, enabled: bool) -> Result<(), ToolError> {
        if let Some(row) = self.override_row(scope, slug).await? {
            let changed = ToolOverride { enabled: Some(enabled), ..row.own.clone() };
            let saved = self.save_override(scope, &row, &changed, OPERATOR).await?;
            return if saved { Ok(()) } else { Err(outrun(slug)) };
        }
        if scope.tenant().is_all() {
            return Err(not_found(&format!("tool `{slug}` that every tenant has")));
        }
        let (mut tool, version) = self.authored(scope, slug).await?;
        tool.enabled = Some(enabled);
        if self.save_row(scope, &tool, OPERATOR, version).await? { Ok(()) } else { Err(outrun(slug)) }
    }

    /// Whether a tool that is code is switched off for all tenants.
    pub async fn is_off_for_all(&self, slug: &str) -> Result<bool, ToolError> {
        let row = self.override_row(&self.platform.house.all_tenants(), slug).await?;
        Ok(row.is_some_and(|row| row.own.enabled == Some(false)))
    }

    /// What somebody saved under a name.
    pub async fn find(&self, scope: &Scope, slug: &str) -> Result<SavedTool, ToolError> {
        let (kind, name) = self.row_of(slug);
        let found = self.platform.store.tool_row(scope, kind, &name).await?;
        SavedTool::read(&found.ok_or_else(|| missing(kind, slug))?)
    }

    /// Every save of a tool, or of what is changed of one, newest first.
    pub async fn versions(&self, scope: &Scope, slug: &str) -> Result<Vec<VersionView>, ToolError> {
        let (kind, name) = self.row_of(slug);
        let all = self.platform.store.tool_versions(scope, kind, &name).await?;
        if all.is_empty() { Err(missing(kind, slug)) } else { Ok(all.into_iter().map(VersionView::from).collect()) }
    }

    /// The kind of row that a name stands for, and the name in it.
    fn row_of(&self, slug: &str) -> (ToolRowKind, String) {
        match self.code(slug) {
            Some(code) => (ToolRowKind::Override, code.spec().name.clone()),
            None => (ToolRowKind::Custom, slug.to_owned()),
        }
    }

    async fn authored(&self, scope: &Scope, slug: &str) -> Result<(AuthoredTool, i64), ToolError> {
        let found = self.platform.store.tool_row(scope, ToolRowKind::Custom, slug).await?;
        let found = found.ok_or_else(|| unwritten(slug))?;
        Ok((read(slug, &found.body)?, found.version))
    }

    /// What is changed of a tool that is code; `None` where the name is of no such tool.
    async fn override_row(&self, scope: &Scope, slug: &str) -> Result<Option<OverrideRow>, ToolError> {
        let Some(tool) = self.code(slug) else { return Ok(None) };
        let find =
            async |scope: &Scope| self.platform.store.tool_row(scope, ToolRowKind::Override, &tool.spec().name).await;
        let (own, for_all) = (find(scope).await?, find(&self.platform.house.all_tenants()).await?);
        let said = |row: &Option<ToolRow>| row.as_ref().map_or_else(|| Ok(ToolOverride::default()), overrides::read);
        let version = own.as_ref().map_or(0, |row| row.version);
        Ok(Some(OverrideRow { own: said(&own)?, version, for_all: said(&for_all)?, tool }))
    }

    async fn replace_override(
        &self,
        caller: &Caller,
        row: &OverrideRow,
        changed: ToolOverride,
    ) -> Result<SavedTool, ToolError> {
        row.refuse_loosening(caller, &changed)?;
        let changed = without_loosening(caller, &row.own, changed);
        if !self.save_override(&caller.scope, row, &changed, &caller.id.to_string()).await? {
            return Err(outrun(row.name()));
        }
        self.find(&caller.scope, row.name()).await
    }

    async fn save_override(
        &self,
        scope: &Scope,
        row: &OverrideRow,
        changed: &ToolOverride,
        saved_by: &str,
    ) -> Result<bool, ToolError> {
        let (body, hash) = content(&json!(changed));
        let (slug, saved_by) = (row.name().to_owned(), saved_by.to_owned());
        let enabled = changed.enabled != Some(false);
        let new = NewToolRow { slug, kind: ToolRowKind::Override, enabled, body, hash, saved_by };
        let saved = self.platform.store.save_tool(scope, &new, row.version).await?;
        self.changed(scope).await?;
        Ok(saved)
    }

    async fn replace(&self, caller: &Caller, tool: &AuthoredTool, over: i64) -> Result<SavedTool, ToolError> {
        if !self.save(caller, tool, over).await? {
            return Err(outrun(&tool.slug));
        }
        self.find(&caller.scope, &tool.slug).await
    }

    async fn save(&self, caller: &Caller, tool: &AuthoredTool, over: i64) -> Result<bool, ToolError> {
        if let Some(execution) = &tool.execution {
            let (host, names) = execution.sends()?;
            self.platform.bind_secrets(caller, &names, &host).await?;
        }
        self.save_row(&caller.scope, tool, &caller.id.to_string(), over).await
    }

    async fn save_row(&self, scope: &Scope, tool: &AuthoredTool, by: &str, over: i64) -> Result<bool, ToolError> {
        let (body, hash) = content(&json!(tool));
        let (slug, saved_by) = (tool.slug.clone(), by.to_owned());
        let enabled = tool.enabled != Some(false);
        let row = NewToolRow { slug, kind: ToolRowKind::Custom, enabled, body, hash, saved_by };
        let store = &self.platform.store;
        let saved = store.save_tool(scope, &row, over).await?;
        if !saved
            && over == 0
            && store.tool_row(scope, ToolRowKind::Custom, &tool.slug).await?.is_none()
            && let Some(full) = self.platform.reached_quota(scope, QuotaKind::Tools).await?
        {
            return Err(full);
        }
        self.changed(scope).await?;
        Ok(saved)
    }

    /// A change counts at the next look; nobody need wait for the second that a version is believed.
    async fn changed(&self, scope: &Scope) -> Result<(), ToolError> {
        self.platform.look_at_version(scope).await.map(drop)
    }
}

impl OverrideRow {
    fn name(&self) -> &str {
        &self.tool.spec().name
    }

    fn refuse_loosening(&self, caller: &Caller, changed: &ToolOverride) -> Result<(), ToolError> {
        let with = |own: &ToolOverride| in_force(own, &self.for_all).applied_to(self.tool.spec());
        refuse_loosening(caller, &with(&self.own), &with(changed))
    }
}

/// What is saved, and its hash.
fn content(saved: &Value) -> (String, String) {
    let body = saved.to_string();
    let hash = random::hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref());
    (body, hash)
}

fn read<T: serde::de::DeserializeOwned>(slug: &str, body: &str) -> Result<T, ToolError> {
    let damaged = |err| ToolError::new(ErrorCode::Internal, format!("the tool `{slug}` cannot be read: {err}"));
    serde_json::from_str(body).map_err(damaged)
}

fn missing(kind: ToolRowKind, slug: &str) -> ToolError {
    match kind {
        ToolRowKind::Custom => unwritten(slug),
        ToolRowKind::Override => unchanged(slug),
    }
}

fn unwritten(slug: &str) -> ToolError {
    not_found(&format!("tool `{slug}` that somebody wrote"))
}

fn unchanged(slug: &str) -> ToolError {
    not_found(&format!("change of `{slug}`"))
}

fn outrun(slug: &str) -> ToolError {
    ToolError::new(ErrorCode::Conflict, format!("`{slug}` was saved by somebody else meanwhile; read it again"))
}

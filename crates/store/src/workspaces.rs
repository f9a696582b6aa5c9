//! The folders that tenants work in.

use haft_runtime::{HouseWide, Scope, WorkspaceId};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant, workspace},
    sql::{Row, Statement},
    tenants,
};

/// A workspace of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Its tenant and itself.
    pub scope: Scope,
    /// What people call it.
    pub name: String,
    /// The folder of the host that it is; `None` where haft makes and keeps one.
    pub folder: Option<String>,
    /// The node that has its folder; `None` while none has said so.
    pub node: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
}

macro_rules! workspaces {
    ($rest:literal) => {
        concat!("select tenant, id as workspace, name, folder, node, created_at from workspaces ", $rest)
    };
}
const INSERT: &str = "insert into workspaces (tenant, id, name, folder, node, created_at) values ($1, $2, $3, $4, null, $5) \
                      on conflict do nothing returning 1 as added";
const FIND: &str = workspaces!("where tenant = $1 and id = $2");
const BY_NAME: &str = workspaces!("where tenant = $1 and name = $2");
const ALL: &str = workspaces!("where tenant = $1 order by id");
const REMOVE: &str = "delete from workspaces where tenant = $1 and id = $2 returning 1 as removed";
const SETTLE: &str =
    "update workspaces set node = $3 where tenant = $1 and id = $2 and node is null returning 1 as settled";
const RENAME_NODE: [&str; 2] = [
    "update workspaces set node = $2 where node = $1",
    "update jobs set node = $2, name = case when name = $1 then $2 else name end where node = $1",
];
const MOVE: &str = "update workspaces set node = $3 where tenant = $1 and id = $2 returning 1 as moved";
/// Every folder in which the owner of this machine has used haft.
const USED_ENDED: &str = "select tenant, workspace from calls where tenant = $1 and workspace = $2 limit 1";
const USED_OPEN: &str = "select tenant, workspace from open_calls where tenant = $1 and workspace = $2 limit 1";

impl Store {
    /// Adds a workspace; `false` when the name is taken.
    pub async fn add_workspace(
        &self,
        scope: &Scope,
        id: &WorkspaceId,
        (name, folder): (&str, Option<&str>),
    ) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let insert = Statement::new(INSERT).bind(tenant(scope)).bind(id.as_str()).bind(name).bind(folder).bind(now);
        let made = json!({"name": name, "folder": folder});
        let act = AuditEntry::new(AuditAction::WorkspaceAdded, scope, ("workspace", id.as_str()));
        let insert = ConditionalWrite::new(tenant(scope), insert).and_then(tenants::changed(scope));
        self.change(insert.audited(act.change(Value::Null, made))).await
    }

    /// The workspace of a scope.
    pub async fn workspace_of(&self, scope: &Scope) -> Result<Option<WorkspaceRecord>, StoreError> {
        let find = Statement::new(FIND).bind(tenant(scope)).bind(workspace(scope));
        self.read_one(find).await?.as_ref().map(record).transpose()
    }

    /// The workspace with this name.
    pub async fn workspace_by_name(&self, scope: &Scope, name: &str) -> Result<Option<WorkspaceRecord>, StoreError> {
        let find = Statement::new(BY_NAME).bind(tenant(scope)).bind(name);
        self.read_one(find).await?.as_ref().map(record).transpose()
    }

    /// The workspaces of a tenant.
    pub async fn workspaces(&self, scope: &Scope) -> Result<Vec<WorkspaceRecord>, StoreError> {
        self.read(Statement::new(ALL).bind(tenant(scope))).await?.iter().map(record).collect()
    }

    /// Removes the workspace of a scope from the list; its folder stays. `false` when there is none.
    pub async fn remove_workspace(&self, scope: &Scope) -> Result<bool, StoreError> {
        let remove = Statement::new(REMOVE).bind(tenant(scope)).bind(workspace(scope));
        let remove = ConditionalWrite::new(tenant(scope), remove).and_then(tenants::changed(scope));
        self.change(remove.audited(act_on(AuditAction::WorkspaceRemoved, scope))).await
    }

    /// The node where the workspace of a scope lives, if that is another one. One that lives nowhere yet lives here from now
    /// on, where several nodes serve the database.
    pub async fn workspace_elsewhere(&self, scope: &Scope) -> Result<Option<String>, StoreError> {
        let Some(this) = self.node_name() else { return Ok(None) };
        let Some(mut record) = self.workspace_of(scope).await? else { return Ok(None) };
        if record.node.is_none() {
            let settle = Statement::new(SETTLE).bind(tenant(scope)).bind(workspace(scope)).bind(this);
            let settle = ConditionalWrite::new(tenant(scope), settle);
            self.change(settle.unaudited("the node that uses it first has it")).await?;
            // Another node may have been quicker.
            record.node = self.workspace_of(scope).await?.and_then(|record| record.node);
        }
        Ok(record.node.filter(|node| self.is_another_node(node)))
    }

    /// Gives the workspace of a scope to a node; `false` when there is none.
    pub async fn move_workspace(&self, scope: &Scope, node: &str) -> Result<bool, StoreError> {
        let to = Statement::new(MOVE).bind(tenant(scope)).bind(workspace(scope)).bind(node);
        let act = act_on(AuditAction::WorkspaceMoved, scope).change(Value::Null, json!({"node": node}));
        let to = ConditionalWrite::new(tenant(scope), to).and_then(tenants::changed(scope));
        self.change(to.audited(act)).await
    }

    /// Gives everything that lives on one node to another name.
    pub async fn rename_node(&self, _house: &HouseWide, from: &str, to: &str) -> Result<(), StoreError> {
        let rename = RENAME_NODE.map(|sql| vec![Statement::new(sql).bind(from).bind(to)]);
        let mut pages = rename.into_iter();
        self.load(async || Ok(pages.next())).await
    }

    /// The scope of a folder in which calls of this tenant have worked.
    pub async fn folder_in_use(&self, scope: &Scope, folder: &str) -> Result<Option<Scope>, StoreError> {
        let used = [USED_ENDED, USED_OPEN].map(|sql| Statement::new(sql).bind(tenant(scope)).bind(folder));
        let found = self.read_together(&used).await?;
        found.iter().flatten().next().map(|row| Columns { of: "calls", row }.scope()).transpose()
    }
}

/// An act on the workspace of a scope.
fn act_on(action: AuditAction, scope: &Scope) -> AuditEntry {
    AuditEntry::new(action, scope, ("workspace", workspace(scope).unwrap_or_default()))
}

fn record(row: &Row) -> Result<WorkspaceRecord, StoreError> {
    let columns = Columns { of: "workspaces", row };
    Ok(WorkspaceRecord {
        scope: columns.scope()?,
        name: columns.text("name")?,
        folder: columns.text_or_none("folder")?,
        node: columns.text_or_none("node")?,
        created_at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_workspace_is_found_without_reading_the_others() {
        use super::{ALL, BY_NAME, FIND, MOVE, REMOVE, SETTLE, USED_ENDED, USED_OPEN};
        crate::schema::tests::assert_quick(&[FIND, BY_NAME, ALL, REMOVE, MOVE, SETTLE, USED_ENDED, USED_OPEN]);
    }
}

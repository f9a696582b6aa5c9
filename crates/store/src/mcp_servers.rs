//! The upstream MCP servers of a tenant, and what is known of their tools.

use haft_runtime::Scope;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    audit::hash_of,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants,
};

/// A server as it stands in the database now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerRow {
    /// What it is called.
    pub name: String,
    /// Changes with every write.
    pub revision: i64,
    /// Who saved it last.
    pub saved_by: String,
    /// Since when.
    pub created_at: Timestamp,
    /// What it is, as JSON.
    pub body: String,
    /// What is known of its tools, as JSON; `None` before it was met, and in lists.
    pub pins: Option<String>,
}

/// A server that is about to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMcpServer {
    /// What it is called.
    pub name: String,
    /// What it is, as JSON.
    pub body: String,
    /// Who saves it.
    pub saved_by: String,
}

/// Whether something that is known of a server's tools says which tools there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinNews {
    /// It does: everybody who keeps the tenant's tools at hand reads them again.
    Tools,
    /// It does not.
    State,
}

macro_rules! servers {
    ($pins:literal, $rest:literal) => {
        concat!(
            "select name, revision, saved_by, created_at, body, ",
            $pins,
            " from mcp_servers where tenant = $1 ",
            $rest
        )
    };
}
const INSERT: &str = "insert into mcp_servers (tenant, name, revision, saved_by, created_at, body, pins) \
                      values ($1, $2, $3, $4, $3, $5, null) on conflict do nothing returning 1 as added";
const ALL: &str = servers!("cast(null as text) as pins", "order by name");
const FIND: &str = servers!("pins", "and name = $2");
const UPDATE: &str = "update mcp_servers set body = $4, saved_by = $5, revision = revision + 1 \
                      where tenant = $1 and name = $2 and revision = $3 returning 1 as saved";
const PIN: &str = "update mcp_servers set pins = $4, revision = revision + 1 \
                   where tenant = $1 and name = $2 and revision = $3 returning 1 as saved";
const REMOVE: &str = "delete from mcp_servers where tenant = $1 and name = $2 returning 1 as removed";

impl Store {
    /// Adds a server; `false` when the name is taken.
    pub async fn add_mcp_server(&self, scope: &Scope, server: &NewMcpServer) -> Result<bool, StoreError> {
        let insert = Statement::new(INSERT)
            .bind(tenant(scope))
            .bind(server.name.as_str())
            .bind(Timestamp::now().as_microsecond())
            .bind(server.saved_by.as_str())
            .bind(server.body.as_str());
        let act = of_server(AuditAction::ServerAdded, scope, &server.name).change(Value::Null, entry(server));
        let insert = ConditionalWrite::new(tenant(scope), insert).and_then(tenants::changed(scope));
        self.change(insert.audited(act)).await
    }

    /// The servers of a tenant, by name, without what is known of their tools.
    pub async fn mcp_servers(&self, scope: &Scope) -> Result<Vec<McpServerRow>, StoreError> {
        self.read(Statement::new(ALL).bind(tenant(scope))).await?.iter().map(record).collect()
    }

    /// The server with this name.
    pub async fn mcp_server(&self, scope: &Scope, name: &str) -> Result<Option<McpServerRow>, StoreError> {
        self.read_one(Statement::new(FIND).bind(tenant(scope)).bind(name)).await?.as_ref().map(record).transpose()
    }

    /// Saves a server, if it is still at the revision `over`; `false` when it is not.
    pub async fn save_mcp_server(&self, scope: &Scope, server: &NewMcpServer, over: i64) -> Result<bool, StoreError> {
        let update = Statement::new(UPDATE)
            .bind(tenant(scope))
            .bind(server.name.as_str())
            .bind(over)
            .bind(server.body.as_str())
            .bind(server.saved_by.as_str());
        let act = of_server(AuditAction::ServerChanged, scope, &server.name).change(Value::Null, entry(server));
        let update = ConditionalWrite::new(tenant(scope), update).and_then(tenants::changed(scope));
        self.change(update.audited(act)).await
    }

    /// Keeps what is known of a server's tools, if it is still at the revision `over`; `false` when it is not.
    pub async fn save_mcp_pins(
        &self,
        scope: &Scope,
        (name, over): (&str, i64),
        pins: &str,
        news: PinNews,
    ) -> Result<bool, StoreError> {
        let pin = Statement::new(PIN).bind(tenant(scope)).bind(name).bind(over).bind(pins);
        let pin = ConditionalWrite::new(tenant(scope), pin);
        self.change(match news {
            PinNews::Tools => {
                let act = of_server(AuditAction::ServerAccepted, scope, name);
                let act = act.change(Value::Null, json!({"sha256": hash_of(pins)}));
                pin.and_then(tenants::changed(scope)).audited(act)
            }
            PinNews::State => pin.unaudited("it says only how the server is"),
        })
        .await
    }

    /// Removes a server with everything that is known of it; `false` when there is none.
    pub async fn remove_mcp_server(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        let remove = Statement::new(REMOVE).bind(tenant(scope)).bind(name);
        let remove = ConditionalWrite::new(tenant(scope), remove).and_then(tenants::changed(scope));
        self.change(remove.audited(of_server(AuditAction::ServerRemoved, scope, name))).await
    }
}

fn of_server(action: AuditAction, scope: &Scope, name: &str) -> AuditEntry {
    AuditEntry::new(action, scope, ("server", name))
}

/// What the log holds of an entry: which one it was, without whatever stands in its headers.
fn entry(server: &NewMcpServer) -> Value {
    json!({"sha256": hash_of(&server.body)})
}

fn record(row: &Row) -> Result<McpServerRow, StoreError> {
    let columns = Columns { of: "mcp_servers", row };
    Ok(McpServerRow {
        name: columns.text("name")?,
        revision: columns.number("revision")?,
        saved_by: columns.text("saved_by")?,
        created_at: columns.time("created_at")?,
        body: columns.text("body")?,
        pins: columns.text_or_none("pins")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_server_is_found_without_reading_the_others() {
        use super::{ALL, FIND, PIN, REMOVE, UPDATE};
        crate::schema::tests::assert_quick(&[ALL, FIND, UPDATE, PIN, REMOVE]);
    }
}

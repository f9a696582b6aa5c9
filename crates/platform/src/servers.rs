//! The upstream MCP servers of a tenant: who adds, changes and removes them, and what they are given.

mod definition;
mod login;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use haft_runtime::{Caller, ErrorCode, Scope, ToolError, secret_forms};
use haft_sandbox::web::WebRules;
use haft_store::{McpServerRow, NewMcpServer, PinNews};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Platform,
    authored::placeholder,
    platform::{mistake, not_found},
};
pub use definition::{HttpServerFields, ServerDefinition, ServerReach, StdioCommand};
pub use login::{LoginFor, ServerLogin};

/// The most servers that a tenant has.
const MOST: usize = 64;
/// The shortest value of a variable that may be a secret where nothing says that it is one.
const LONG: usize = 8;
/// Who saved what the operator did.
const OPERATOR: &str = "operator";

/// A server as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRecord {
    /// What it is.
    pub definition: ServerDefinition,
    /// Changes with every write.
    pub revision: i64,
    /// Who saved it last.
    pub saved_by: String,
    /// Since when there is one.
    pub created_at: Timestamp,
    /// What is known of its tools, as whoever speaks with it wrote it; `None` before that, and in lists.
    pub pins: Option<String>,
}

/// What becomes of what is known of a server's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinsChange {
    /// It stays as it is.
    Nothing,
    /// It says the same of the tools, and something else besides.
    State(String),
    /// It says something else of the tools.
    Tools(String),
}

/// What a server is given, with secrets in the place of their names.
pub struct ResolvedServer {
    /// What is sent with every request.
    pub headers: Vec<(String, String)>,
    /// The variables of its process.
    pub env: BTreeMap<String, String>,
    /// Whatever of this may be a secret.
    pub secrets: Vec<String>,
    /// What is called a secret.
    pub named: Vec<String>,
}

impl Platform {
    /// Adds a server that is reached over HTTP, where its tenant may reach it.
    pub async fn add_server(
        &self,
        caller: &Caller,
        written: &Value,
        rules: &WebRules,
    ) -> Result<ServerRecord, ToolError> {
        let server = ServerDefinition::read(written)?;
        self.check_reach(caller, &server, rules).await?;
        self.add(&caller.scope, &server, &caller.id.to_string()).await
    }

    /// Adds a server that is started here. Only the operator does.
    pub async fn add_started_server(
        &self,
        scope: &Scope,
        name: &str,
        command: &StdioCommand,
    ) -> Result<ServerRecord, ToolError> {
        let server = ServerDefinition::started(name, command)?;
        let (whom, names) = server.sends()?;
        for name in &names {
            self.bind_secret(scope, name, &whom).await?;
        }
        self.add(scope, &server, OPERATOR).await
    }

    async fn add(&self, scope: &Scope, server: &ServerDefinition, saved_by: &str) -> Result<ServerRecord, ToolError> {
        if self.store.mcp_servers(scope).await?.len() >= MOST {
            return Err(mistake(format!("a tenant has at most {MOST} MCP servers; remove one first")));
        }
        if !self.store.add_mcp_server(scope, &row(server, saved_by)).await? {
            let message = format!("there is a server `{}` already; choose another name", server.name);
            return Err(ToolError::new(ErrorCode::AlreadyExists, message));
        }
        self.saved(scope, &server.name).await
    }

    /// Changes some fields of a server, anew on what somebody else has left meanwhile.
    pub async fn change_server(
        &self,
        caller: &Caller,
        (name, fields): (&str, &Map<String, Value>),
        rules: &WebRules,
    ) -> Result<ServerRecord, ToolError> {
        loop {
            let now = self.server(&caller.scope, name).await?;
            let server = now.definition.changed(fields)?;
            if server.reach != now.definition.reach {
                self.check_reach(caller, &server, rules).await?;
            }
            let row = row(&server, &caller.id.to_string());
            if self.store.save_mcp_server(&caller.scope, &row, now.revision).await? {
                return self.saved(&caller.scope, name).await;
            }
        }
    }

    /// Whether a server may be where it is said to be, and be sent the secrets that it names.
    async fn check_reach(&self, caller: &Caller, server: &ServerDefinition, rules: &WebRules) -> Result<(), ToolError> {
        match &server.reach {
            ServerReach::Http { url, .. } => {
                let refused =
                    |refusal: haft_sandbox::web::Refusal| ToolError::new(ErrorCode::UrlNotAllowed, refusal.to_string());
                rules.target(url).map_err(refused)?;
                Self::check_login(caller, server)?;
                let (host, names) = server.sends()?;
                self.bind_secrets(caller, &names, &host).await
            }
            // What the operator has named for it stays as it is.
            ServerReach::Stdio(_) => Ok(()),
        }
    }

    /// Removes a server with everything that is known of it.
    pub async fn remove_server(&self, scope: &Scope, name: &str) -> Result<(), ToolError> {
        if !self.store.remove_mcp_server(scope, name).await? {
            return Err(unknown(name));
        }
        self.look_at_version(scope).await.map(drop)
    }

    /// The servers of a tenant, by name, without what is known of their tools.
    pub async fn servers(&self, scope: &Scope) -> Result<Vec<ServerRecord>, ToolError> {
        let mut servers = Vec::new();
        for row in self.store.mcp_servers(scope).await? {
            match read(row) {
                Ok(server) => servers.push(server),
                Err(error) => tracing::warn!(error = error.message, "a server of a tenant cannot be used"),
            }
        }
        Ok(servers)
    }

    /// The server with this name.
    pub async fn server(&self, scope: &Scope, name: &str) -> Result<ServerRecord, ToolError> {
        self.store.mcp_server(scope, name).await?.map_or_else(|| Err(unknown(name)), read)
    }

    async fn saved(&self, scope: &Scope, name: &str) -> Result<ServerRecord, ToolError> {
        self.look_at_version(scope).await?;
        self.server(scope, name).await
    }

    /// Changes what is known of a server's tools; the change is made anew on what somebody else has left meanwhile.
    pub async fn change_server_pins(
        &self,
        scope: &Scope,
        name: &str,
        change: &mut (dyn FnMut(&ServerRecord) -> PinsChange + Send),
    ) -> Result<ServerRecord, ToolError> {
        loop {
            let now = self.server(scope, name).await?;
            let (pins, news) = match change(&now) {
                PinsChange::Nothing => return Ok(now),
                PinsChange::State(pins) => (pins, PinNews::State),
                PinsChange::Tools(pins) => (pins, PinNews::Tools),
            };
            if self.store.save_mcp_pins(scope, (name, now.revision), &pins, news).await? {
                return self.saved(scope, name).await;
            }
        }
    }

    /// When each secret of a tenant was set; what was given to a server before that is old.
    pub async fn secret_times(&self, scope: &Scope) -> Result<HashMap<String, Timestamp>, ToolError> {
        Ok(self.store.secrets(scope).await?.into_iter().map(|secret| (secret.name, secret.created_at)).collect())
    }

    /// What a server is given. Each secret must be for that very server.
    pub async fn resolve_server(&self, scope: &Scope, server: &ServerDefinition) -> Result<ResolvedServer, ToolError> {
        let (whom, names) = server.sends()?;
        let mut values = HashMap::new();
        for name in names {
            let value = self.secret_for(scope, &name, &whom).await?;
            values.insert(name, value);
        }
        let secret = |name: &str| values.get(name).cloned().unwrap_or_default();
        let named: Vec<String> = values.values().flat_map(|value| secret_forms(value)).collect();
        let (mut headers, mut env) = (Vec::new(), BTreeMap::new());
        match &server.reach {
            ServerReach::Http { headers: written, .. } => {
                headers.extend(written.iter().map(|(name, value)| (name.clone(), placeholder::filled(value, secret))));
            }
            ServerReach::Stdio(command) => {
                env.extend(command.env.iter().map(|(name, value)| (name.clone(), StdioCommand::filled(value, secret))));
            }
        }
        let mut secrets: Vec<String> = headers.iter().flat_map(|(_, value)| secret_forms(value)).collect();
        secrets.extend(env.values().filter(|value| value.len() >= LONG).chain(&named).cloned());
        Ok(ResolvedServer { headers, env, secrets, named })
    }
}

impl ServerDefinition {
    /// The names of the secrets that it is given.
    pub fn secrets(&self) -> Vec<String> {
        self.sends().map(|(_, names)| names).unwrap_or_default()
    }
}

fn row(server: &ServerDefinition, saved_by: &str) -> NewMcpServer {
    NewMcpServer { name: server.name.clone(), body: json!(server).to_string(), saved_by: saved_by.to_owned() }
}

fn read(row: McpServerRow) -> Result<ServerRecord, ToolError> {
    let McpServerRow { name, revision, saved_by, created_at, body, pins } = row;
    let damaged = |err| ToolError::new(ErrorCode::Internal, format!("the server `{name}` cannot be read: {err}"));
    Ok(ServerRecord { definition: serde_json::from_str(&body).map_err(damaged)?, revision, saved_by, created_at, pins })
}

fn unknown(name: &str) -> ToolError {
    not_found(&format!("MCP server `{name}`"))
}

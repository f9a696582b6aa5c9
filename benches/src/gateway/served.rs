//! A `haft serve` on a data folder of its own, on processors of its own.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::load::{Connection, MARK, request};
use crate::{memory, program::program};

/// What a key of these benches is for.
const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

/// A running server; it is killed when it is no longer wanted.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    /// How long it took from its start to its first line.
    pub(super) ready: Duration,
    data: PathBuf,
    database: Option<String>,
    child: Child,
}

/// A key of a tenant, as it is sent.
#[derive(Clone)]
pub(super) struct Bearer(pub(super) String);

impl Served {
    /// Starts the server on a folder, or on a database beside it.
    pub(super) fn start(data: &Path, database: Option<&str>) -> Result<Self> {
        let last = std::thread::available_parallelism()?.get();
        let begun = Instant::now();
        let mut command = Command::new("taskset");
        command.args(["-c", &super::server_processors(last)]).arg(program()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = at_home(&mut command, data, database).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("no standard output")?).read_line(&mut line)?;
        let ready = begun.elapsed();
        let first: Value = serde_json::from_str(&line).context("the server does not start")?;
        let url = first["url"].as_str().context("an address")?;
        let address = url.trim_start_matches("http://").parse()?;
        Ok(Self { address, ready, data: data.to_owned(), database: database.map(str::to_owned), child })
    }

    /// Makes a tenant where there is none, and a key of it.
    pub(super) fn key(&self, tenant: &str) -> Result<Bearer> {
        // It may be there already.
        let _made = self.admin(&["tenant", "add", tenant]);
        let made = self.admin(&["key", "add", "bench", "--tenant", tenant, "--scopes", SCOPES])?;
        Ok(Bearer(format!("Bearer {}", made["key"].as_str().context("a key")?)))
    }

    fn admin(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(program()?);
        command.arg("admin").args(arguments).arg("--json");
        let done = at_home(&mut command, &self.data, self.database.as_deref()).stdout(Stdio::piped()).output()?;
        ensure!(done.status.success(), "{arguments:?} failed");
        Ok(serde_json::from_slice(&done.stdout)?)
    }

    /// KiB that the server holds for itself alone.
    pub(super) fn memory(&self) -> Result<u64> {
        memory::private(self.child.id()).context("the server is gone")
    }

    /// How long its threads have worked so far.
    pub(super) fn worked(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
        // A tick is a hundredth of a second on every Linux that haft runs on.
        Ok(Duration::from_millis(ticks.sum::<u64>() * 10))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is only in the way now.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn at_home<'a>(command: &'a mut Command, data: &Path, database: Option<&str>) -> &'a mut Command {
    if let Some(database) = database {
        command.env("HAFT_STORE_URL", database).env("HAFT_SECRET_KEY", "a key that only these benches use, 1234567890");
    }
    command.env("HAFT_DATA_DIR", data).env("HOME", data).env("XDG_CONFIG_HOME", data.join("config"));
    command.stdin(Stdio::null()).stderr(Stdio::null())
}

impl Bearer {
    /// A request of whoever holds it.
    pub(super) fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        request(method, path, &[("Authorization", &self.0)], body)
    }

    /// A tool that does nothing but give its input back.
    pub(super) async fn add_tool(&self, connection: &mut Connection, slug: &str, effect: &str) -> Result<()> {
        let tool = json!({
            "slug": slug, "description": "Does nothing.", "executionType": "internal", "effect": effect,
            "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false},
        });
        connection.ask(&self.request("POST", "/api/tools", &tool.to_string())).await?;
        Ok(())
    }

    /// A call of such a tool.
    pub(super) fn call(&self, slug: &str) -> Vec<u8> {
        self.request("POST", &format!("/api/tools/{slug}/calls"), &json!({"input": {"n": MARK}}).to_string())
    }
}

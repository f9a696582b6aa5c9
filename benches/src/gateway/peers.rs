//! What the gateway is measured beside: a server that says its JSON back, and `mcp-proxy` before a program that answers at
//! once.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use axum::{Json, Router, routing::post};
use serde_json::{Value, json};

use crate::mcp::tools;

/// A peer that runs until it is dropped.
pub(super) struct GatewayPeer {
    pub(super) address: SocketAddr,
    child: Child,
}

impl Drop for GatewayPeer {
    fn drop(&mut self) {
        // It is only in the way now.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn held() -> Result<Command> {
    let mut command = Command::new("taskset");
    command.args(["-c", &super::server_processors(std::thread::available_parallelism()?.get())]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// The bare server, as a process of its own.
pub(super) fn echo() -> Result<GatewayPeer> {
    let mut command = held()?;
    let mut child = command.arg(std::env::current_exe()?).arg("http-echo").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().context("no standard output")?).read_line(&mut line)?;
    Ok(GatewayPeer { address: line.trim().parse()?, child })
}

/// Says every JSON body back, and prints first where it does so.
pub(crate) async fn serve_echo() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let echo = Router::new().route("/", post(|Json(body): Json<Value>| async { Json(body) }));
    Ok(axum::serve(listener, echo).await?)
}

/// `mcp-proxy` before the least MCP server; `None` where it is not installed.
pub(super) fn proxy(folder: &Path) -> Result<Option<GatewayPeer>> {
    let program = tools()?.join("bin/mcp-proxy");
    if !program.exists() {
        return Ok(None);
    }
    // It takes no port of the system's choice.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = folder.join("proxy.toml");
    fs::write(
        &config,
        format!(
            "[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n[[backends]]\nname = \"least\"\n\
             transport = \"stdio\"\ncommand = {:?}\nargs = [\"mcp-server\"]\n",
            address.port(),
            std::env::current_exe()?,
        ),
    )?;
    let child = held()?.arg(program).arg("--config").arg(&config).stdout(Stdio::null()).spawn()?;
    let peer = GatewayPeer { address, child };
    for _ in 0..200 {
        if std::net::TcpStream::connect(address).is_ok() {
            return Ok(Some(peer));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("mcp-proxy does not listen")
}

/// An MCP server over standard input and output with one tool that does nothing.
pub(crate) fn serve_mcp() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "least", "version": "1"},
            }),
            Some("tools/list") => json!({
                "tools": [{"name": "nothing", "description": "Does nothing.", "inputSchema": {"type": "object"}}],
            }),
            Some("tools/call") => {
                let text = request["params"]["arguments"].to_string();
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        output.write_all(format!("{answer}\n").as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

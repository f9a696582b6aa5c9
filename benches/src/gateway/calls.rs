//! Calls of an empty tool that only reads, each recorded before it is answered.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use serde_json::json;

use super::{
    load::{Connection, Load, MARK, request},
    peers,
    served::{Bearer, Served},
};
use crate::Measured;

const TOOL: &str = "nothing";
const MODERN: &str = "2026-07-28";
const WITH_SESSION: &str = "2025-11-25";
/// How often each is measured; the best counts, taken in turns so that a busy moment hits all.
const ROUNDS: usize = 3;

/// Over REST beside a bare server, over MCP in both eras beside `mcp-proxy`.
pub(super) async fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let served = Served::start(&folder.path().join("data"), None)?;
    let key = served.key("acme")?;
    key.add_tool(&mut Connection::open(served.address).await?, TOOL, "read").await?;
    let (echo, proxy) = (peers::echo()?, peers::proxy(folder.path())?);
    let (mut rest, mut bare, mut modern, mut with_session, mut beside) = (None, None, None, None, None);
    let plain = json!({"input": {"n": MARK}}).to_string();
    for _ in 0..ROUNDS {
        best(&mut bare, Load::of(echo.address, |_| request("POST", "/", &[], &plain)).await?);
        best(&mut rest, Load::of(served.address, |_| key.call(TOOL)).await?);
        best(&mut modern, Load::of(served.address, |_| stateless(&key)).await?);
        let sessions = sessions(served.address, "/mcp", Some(&key)).await?;
        let ask = |number: usize| in_session(&sessions[number], "/mcp", TOOL, Some(&key));
        best(&mut with_session, Load::of(served.address, ask).await?);
        if let Some(proxy) = &proxy {
            let sessions = self::sessions(proxy.address, "/", None).await?;
            let ask = |number: usize| in_session(&sessions[number], "/", "least/nothing", None);
            best(&mut beside, Load::of(proxy.address, ask).await?);
        }
    }
    let measured = |load: Option<Load>| load.context("it was measured");
    let (rest, bare) = (measured(rest)?, measured(bare)?);
    let share = 100.0 * rest.rate / bare.rate;
    let found = format!("{}, a bare echo {:.0}/s: {share:.0} %", said(&rest), bare.rate);
    let held = share >= 35.0 && rest.p99 < Duration::from_millis(10);
    Ok(vec![
        Measured::new("64 callers, REST", found, ">= 35 %, p99 < 10 ms", held),
        beside_proxy("64 callers, MCP 2026-07-28", &measured(modern)?, beside.as_ref()),
        beside_proxy("64 callers, MCP 2025-11-25", &measured(with_session)?, beside.as_ref()),
    ])
}

fn best(so_far: &mut Option<Load>, new: Load) {
    if so_far.as_ref().is_none_or(|best| best.rate < new.rate) {
        *so_far = Some(new);
    }
}

pub(super) fn said(load: &Load) -> String {
    format!("{:.0}/s, p50 {:.1?}, p99 {:.1?}", load.rate, load.p50, load.p99)
}

fn beside_proxy(what: &'static str, haft: &Load, proxy: Option<&Load>) -> Measured {
    let Some(proxy) = proxy else {
        let found = format!("{}; mcp-proxy absent: run scripts/setup peers", said(haft));
        return Measured::new(what, found, "p99 < 10 ms", haft.p99 < Duration::from_millis(10));
    };
    let times = haft.rate / proxy.rate;
    let found = format!("{}, mcp-proxy {:.0}/s: {times:.1} x", said(haft), proxy.rate);
    Measured::new(what, found, ">= 1.5 x, p99 < 10 ms", times >= 1.5 && haft.p99 < Duration::from_millis(10))
}

/// A call that stands for itself.
fn stateless(key: &Bearer) -> Vec<u8> {
    let name = |part: &str| format!("io.modelcontextprotocol/{part}");
    let meta = json!({
        name("protocolVersion"): MODERN, name("clientCapabilities"): {},
        name("clientInfo"): {"name": "bench", "version": "1"},
    });
    let params = json!({"name": TOOL, "arguments": {"n": MARK}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let headers = [
        ("Authorization", key.0.as_str()),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", TOOL),
    ];
    request("POST", "/mcp", &headers, &body)
}

/// A session for each connection.
async fn sessions(address: SocketAddr, path: &str, key: Option<&Bearer>) -> Result<Vec<String>> {
    let mut sessions = Vec::new();
    for _ in 0..super::load::CONNECTIONS {
        let mut connection = Connection::open(address).await?;
        let hello = json!({
            "protocolVersion": WITH_SESSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
        let (head, _) = connection.ask(&mcp_request(path, None, key, &hello)).await?;
        let named = |line: &str| {
            line.split_once(": ")
                .filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
                .map(|(_, id)| id.to_owned())
        };
        let session = head.lines().find_map(named).context("a session")?;
        let begun = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
        connection.ask(&mcp_request(path, Some(&session), key, begun)).await?;
        sessions.push(session);
    }
    Ok(sessions)
}

fn in_session(session: &str, path: &str, tool: &str, key: Option<&Bearer>) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": {"n": MARK}});
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
    mcp_request(path, Some(session), key, &body)
}

fn mcp_request(path: &str, session: Option<&str>, key: Option<&Bearer>, body: &str) -> Vec<u8> {
    let mut headers = vec![("Accept", "application/json, text/event-stream")];
    headers.extend(key.map(|key| ("Authorization", key.0.as_str())));
    if let Some(session) = session {
        headers.extend([("MCP-Protocol-Version", WITH_SESSION), ("Mcp-Session-Id", session)]);
    }
    request("POST", path, &headers, body)
}

//! A thousand who listen to everything while a thousand events happen each second.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::{try_join, try_join_all};
use jiff::Timestamp;

use super::{
    load::Connection,
    served::{Bearer, Served},
};
use crate::Measured;

const TOOL: &str = "nothing";
const LISTENERS: usize = 1000;
/// Every so many, one looks at what it hears; the others only take it.
const LOOKS: usize = 20;
/// A call of a tool that only reads: it was made, let, begun and ended.
const EVENTS_OF_A_CALL: usize = 4;
const CALLS_A_SECOND: u32 = 250;
const CALLERS: u32 = 10;
const LASTING: Duration = Duration::from_secs(6);
/// How long the last events may take to arrive.
const GRACE: Duration = Duration::from_secs(2);

/// How long events take from when they happen until they arrive.
pub(super) async fn measure() -> Result<Measured> {
    let folder = tempfile::tempdir()?;
    let served = Served::start(&folder.path().join("data"), None)?;
    let key = served.key("acme")?;
    key.add_tool(&mut Connection::open(served.address).await?, TOOL, "read").await?;
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let mut listener = Connection::open(served.address).await?;
        listener.listen(&key.request("GET", "/api/events", "")).await?;
        listeners.push(listener);
    }
    let end = Instant::now() + LASTING + GRACE;
    let listening =
        try_join_all(listeners.into_iter().enumerate().map(|(number, listener)| hear(listener, number, end)));
    let calling = try_join_all((0..CALLERS).map(|_| call(&served, &key)));
    let (heard, made) = try_join(listening, calling).await?;
    let events = EVENTS_OF_A_CALL * made.iter().sum::<usize>();
    let most = heard.iter().map(|heard| heard.bytes).max().unwrap_or_default();
    ensure!(heard.iter().all(|heard| heard.bytes >= most / 10 * 9), "not everybody heard everything");
    let mut laps: Vec<Duration> = heard.into_iter().flat_map(|heard| heard.laps).collect();
    let arrived = laps.len() * LOOKS / LISTENERS;
    laps.sort_unstable();
    let part = |hundredth: usize| laps.get(laps.len() * hundredth / 100).copied().unwrap_or_default();
    let (p50, p99, rate) = (part(50), part(99), events as f64 / LASTING.as_secs_f64());
    let found = format!("p50 {p50:.1?}, p99 {p99:.1?} at {rate:.0} events/s, {arrived} of {events} arrived at each");
    let held = p99 < Duration::from_millis(100) && arrived == events;
    Ok(Measured::new("1,000 SSE listeners", found, "p99 < 100 ms", held))
}

/// What one listener has heard.
#[derive(Default)]
struct Heard {
    bytes: usize,
    laps: Vec<Duration>,
}

async fn hear(mut listener: Connection, number: usize, end: Instant) -> Result<Heard> {
    let (mut heard, mut rest) = (Heard::default(), Vec::new());
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(piece) = tokio::time::timeout(left, listener.heard()).await else { return Ok(heard) };
        let piece = piece?;
        heard.bytes += piece.len();
        if number.is_multiple_of(LOOKS) {
            let now = Timestamp::now();
            rest.extend_from_slice(piece);
            let told = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let text = String::from_utf8_lossy(&rest[..told]).into_owned();
            rest.drain(..told);
            for line in text.lines().filter(|line| line.starts_with("data:")) {
                heard.laps.push(since(line, now)?);
            }
        }
    }
}

/// How long ago an event happened.
fn since(line: &str, now: Timestamp) -> Result<Duration> {
    let at =
        line.rsplit("\"ts\":\"").next().and_then(|rest| rest.split('"').next()).context("an event without a time")?;
    Ok(now.duration_since(at.parse()?).try_into().unwrap_or_default())
}

/// Calls at a steady pace, and how often.
async fn call(served: &Served, key: &Bearer) -> Result<usize> {
    let mut connection = Connection::open(served.address).await?;
    let request = key.call(TOOL);
    let mut pace = tokio::time::interval(Duration::from_secs(1) * CALLERS / CALLS_A_SECOND);
    let (begun, mut made) = (Instant::now(), 0);
    while begun.elapsed() < LASTING {
        pace.tick().await;
        connection.ask(&request).await?;
        made += 1;
    }
    Ok(made)
}

//! Web: a page of a mebibyte, fetched and turned into Markdown, beside the bare download of the same bytes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{CallRequest, End};
use haft_store::{Durability, Store};
use serde_json::json;

use crate::{Measured, quiet_median};

const LAPS: usize = 60;
/// What a fetch may take beside twice the bare download.
const MORE: Duration = Duration::from_millis(50);

/// One page, downloaded bare and fetched as Markdown in turns, so that a busy moment hits both.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let page = page();
    let address = serve(page.clone())?;
    let folder = tempfile::tempdir()?;
    let house = reaching(folder.path(), address).await?;
    let (mut bare, mut fetched) = (Vec::new(), Vec::new());
    for _ in 0..LAPS {
        let started = Instant::now();
        ensure!(tokio::task::spawn_blocking(move || download(address)).await?? > page.len());
        bare.push(started.elapsed());
        let started = Instant::now();
        let input = json!({"url": format!("http://{address}/"), "format": "markdown"});
        let outcome = house.pipeline.call(CallRequest::new(house.caller.clone(), "web_fetch", input)).await;
        fetched.push(started.elapsed());
        ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
    }
    house.close().await?;
    let (bare, fetched) = (quiet_median(&bare), quiet_median(&fetched));
    let found = format!("quiet p50 {:.1} ms, bare {:.1} ms", fetched.as_secs_f64() * 1e3, bare.as_secs_f64() * 1e3);
    let held = fetched <= 2 * bare + MORE;
    Ok(vec![Measured::new("web_fetch, 1 MiB page as Markdown", found, "2 x bare + 50 ms", held)])
}

async fn reaching(folder: &std::path::Path, address: SocketAddr) -> Result<House> {
    let work = folder.join("work");
    std::fs::create_dir(&work)?;
    let mut settings = Settings::defaults(folder.join("data"));
    settings.web.allow = vec![address.to_string().parse()?];
    settings.web.allowlist = vec![address.to_string().parse()?];
    let store = Store::open(&settings.data, Durability::Normal).await?;
    house::open(settings, store, &work.canonicalize()?).await
}

/// A page like many: a menu, and an article with headings, links, lists and a table.
fn page() -> String {
    let mut page =
        String::from("<!doctype html><title>A page</title><nav><a href=/>Home</a></nav><main><h1>A page</h1>");
    let mut number = 0;
    while page.len() < 1 << 20 {
        number += 1;
        page.push_str(&format!(
            "<h2 id=h{number}>Part {number}</h2><p class=text>Some <b>words</b> with <a href=\"/p/{number}\">a link</a>, \
             <code>some code</code> &amp; more of them, so that there is a line to read.</p><ul><li>one</li><li>two</li></ul>\
             <table><tr><th>a</th><th>b</th></tr><tr><td>{number}</td><td>x</td></tr></table>\n"
        ));
    }
    page
}

/// A server for as long as this program runs.
fn serve(page: String) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever has gone away wants nothing more.
            let _gone = answer(stream, &page);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, page: &str) -> std::io::Result<()> {
    for line in BufReader::new(&stream).lines() {
        if line?.is_empty() {
            break;
        }
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        page.len()
    )?;
    stream.write_all(page.as_bytes())
}

fn download(address: SocketAddr) -> Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    Ok(stream.read_to_end(&mut bytes)?)
}

//! What haft adds to a language server's own time, once the server runs.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::CallRequest;
use haft_sandbox::fence::{Fence, FenceJob, FenceLimits, Rung, WorkspaceView};
use haft_store::{Durability, Store};
use haft_tools::LanguageServer;
use serde_json::{Value, json};

use crate::{Measured, median, program::program};

const LAPS: usize = 200;
/// Files that the server may look at by itself, in folders of a hundred.
const FILES: usize = 2000;
/// A small server that answers at once, so that what is added is not lost in its own time.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/haft/tests/lsp");

/// How it is started, and the folder that it lies in.
fn server() -> Result<(Vec<String>, PathBuf)> {
    let folder = fs::canonicalize(SERVER)?;
    Ok((vec!["/usr/bin/python3".to_owned(), folder.join("fake.py").display().to_string()], folder))
}

/// The same question through the bare socket and through the whole line, in turns.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let (workspace, data) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let folder = workspace.path().canonicalize()?;
    for number in 0..FILES {
        let place = folder.join(format!("{}/{number}.fake", number / 100));
        fs::create_dir_all(place.parent().context("a folder")?)?;
        fs::write(place, "word\n")?;
    }
    let house = open(&folder, &data.path().join("data")).await?;
    let mut bare = Bare::start(&folder)?;
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    ask(&house).await?;
    for _ in 0..LAPS {
        direct.push(bare.ask()?);
        through.push(ask(&house).await?);
    }
    house.close().await?;
    let (direct, through) = (median(direct), median(through));
    let added = through.saturating_sub(direct);
    Ok(vec![Measured::new(
        "a warm question to a language server",
        format!("{through:.1?}, the server alone {direct:.1?}: adds {added:.1?}"),
        "adds < 5 ms",
        added < Duration::from_millis(5),
    )])
}

async fn open(folder: &Path, data: &Path) -> Result<House> {
    let mut settings = Settings { program: program()?, ..Settings::defaults(data.to_owned()) };
    let (command, server) = server()?;
    settings.sandbox.read.push(server);
    settings.lsp.servers.push(LanguageServer {
        language: "fake".to_owned(),
        command,
        extensions: vec!["fake".to_owned()],
        init_options: Value::Null,
        settings: Value::Null,
    });
    let store = Store::open(data, Durability::Normal).await?;
    house::living(settings, store, folder).await
}

async fn ask(house: &House) -> Result<Duration> {
    let request = CallRequest::new(house.caller.clone(), "symbols", json!({ "path": "0/0.fake" }));
    let begin = Instant::now();
    let outcome = serde_json::to_value(house.pipeline.call(request).await)?;
    let took = begin.elapsed();
    ensure!(outcome["result"]["structured"]["ready"] == true, "the call failed: {outcome}");
    Ok(took)
}

/// The same server in the same fence, with nothing between.
struct Bare {
    socket: BufReader<UnixStream>,
    address: String,
    number: u64,
}

impl Bare {
    fn start(folder: &Path) -> Result<Self> {
        let (command, server) = server()?;
        let job = FenceJob {
            command,
            folder: folder.to_owned(),
            environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            stdin: Vec::new(),
            workspace: folder.to_owned(),
            view: WorkspaceView::ReadOnly,
            layered: Vec::new(),
            readable: vec![server],
            writable: Vec::new(),
            hidden: Vec::new(),
            masks: Vec::new(),
            network: false,
            limits: FenceLimits::default(),
            rung: Rung::Namespaces,
        };
        let (process, socket) = Fence::new(program()?).converse(&job)?;
        // It ends when the socket does.
        drop(std::thread::spawn(move || process.wait(&mut |_, _| {})));
        let address = format!("file://{}/0/0.fake", folder.display());
        let mut bare = Self { socket: BufReader::new(socket), address, number: 0 };
        bare.request("initialize", &json!({}))?;
        let document = json!({ "uri": bare.address, "languageId": "fake", "version": 1, "text": "word\n" });
        bare.send(&json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }))?;
        Ok(bare)
    }

    fn ask(&mut self) -> Result<Duration> {
        let params = json!({ "textDocument": { "uri": self.address } });
        let begin = Instant::now();
        self.request("textDocument/documentSymbol", &params)?;
        Ok(begin.elapsed())
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<()> {
        self.number += 1;
        self.send(&json!({ "id": self.number, "method": method, "params": params }))?;
        while self.receive()?["id"] != self.number {}
        Ok(())
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let body = message.to_string();
        Ok(write!(self.socket.get_mut(), "Content-Length: {}\r\n\r\n{body}", body.len())?)
    }

    fn receive(&mut self) -> Result<Value> {
        let mut header = String::new();
        self.socket.read_line(&mut header)?;
        let length = header.trim().strip_prefix("Content-Length: ").context("no length")?.parse()?;
        self.socket.read_line(&mut header)?;
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

//! `haft mcp`

pub(crate) mod install;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use globset::{Glob, GlobSetBuilder};
use haft_mcp::{Asked, Ground, Server, stdio};
use haft_runtime::{AutoApprove, CallId, Caller, Only, Question, Redactor, Source, ToolError};
use haft_server::Token;
use haft_store::Store;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Everywhere,
    commands::flags::parse_mode,
    exit::Exit,
    house::{self, House, Served},
    settings::Settings,
    show::{Out, card::card, changes::Depth, safe::safe, style::WARN},
    workspace,
};

/// The file with the key that seals what clients carry for us.
const KEY: &str = "mcp.key";
/// The variable with the token of HTTP clients.
pub(crate) const TOKEN: &str = "HAFT_MCP_TOKEN";
/// How long open connections may take to end.
const GOODBYE: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serving: Serving,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write haft into the settings of a client that speaks MCP
    Install(install::Args),
}

#[derive(clap::Args)]
struct Serving {
    /// What may happen without asking: none, safe (what only reads) or all
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    auto_approve: Option<AutoApprove>,
    /// Offer only these tools: names or patterns such as git_*, several with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
    /// Serve over HTTP at this address, such as 127.0.0.1:8080, instead; the token is HAFT_MCP_TOKEN, or one is made and
    /// kept
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<Exit> {
    match &args.command {
        Some(Command::Install(args)) => install::run(everywhere, out, args).await,
        None => serve(everywhere, &args.serving).await,
    }
}

async fn serve(everywhere: &Everywhere, args: &Serving) -> Result<Exit> {
    let only = patterns(&args.tools)?;
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = Settings::read(&folder)?;
    for note in settings.not_trusted.iter().chain(&settings.not_obeyed) {
        anstream::eprintln!("{WARN}haft:{WARN:#} {}", safe(note));
    }
    let store = Store::open(&settings.data, settings.sync).await.map_err(ToolError::from)?;
    let asked = Arc::new(Asked::default());
    let served = Served { others: vec![asked.clone()], only };
    let house = house::serving(settings, store, &folder, served).await?;
    let server = Server::new(ground(&house, asked, args.auto_approve)?);
    let stop = until_signalled();
    match args.http {
        Some(address) => listen(address, &server, &house.settings, &stop).await?,
        None => server.speak(stdio::input()?, stdio::output()?, &stop).await,
    }
    house.leave().await?;
    Ok(Exit::Success)
}

/// Cancelled when somebody wants this process to end.
fn until_signalled() -> CancellationToken {
    let (stop, heard) = (CancellationToken::new(), |kind| signal(kind).ok());
    let (mut interrupts, mut terminations) = (heard(SignalKind::interrupt()), heard(SignalKind::terminate()));
    let stopping = stop.clone();
    drop(tokio::spawn(async move {
        tokio::select! {
            Some(()) = next(&mut interrupts) => {}
            Some(()) = next(&mut terminations) => {}
            else => return,
        }
        stopping.cancel();
    }));
    stop
}

async fn next(signals: &mut Option<Signal>) -> Option<()> {
    signals.as_mut()?.recv().await
}

async fn listen(address: SocketAddr, server: &Server, settings: &Settings, stop: &CancellationToken) -> Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    let (token, made) = token(settings)?;
    anstream::eprintln!("haft: serving MCP at http://{}/mcp", listener.local_addr()?);
    if made {
        anstream::eprintln!("haft: the token, shown this once and kept in the data folder: {token}");
    }
    let serving = haft_server::serve(listener, server, Token::new(token), stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served?,
        // A connection that does not end by itself ends with the process.
        () = stop.cancelled() => drop(tokio::time::timeout(GOODBYE, serving).await),
    }
    server.finish().await;
    Ok(())
}

/// The token of HTTP clients, and whether it was made just now.
fn token(settings: &Settings) -> Result<(String, bool)> {
    if let Some(given) = settings.variables.get(TOKEN).filter(|given| !given.trim().is_empty()) {
        return Ok((given.trim().to_owned(), false));
    }
    let path = settings.data.join("mcp.token");
    let made = !path.exists();
    let token = BASE64_URL_SAFE_NO_PAD.encode(kept_secret(&path)?);
    Ok((token, made))
}

fn ground(house: &House, asked: Arc<Asked>, auto_approve: Option<AutoApprove>) -> Result<Ground> {
    let (store, scope) = (house.store.clone(), house.scope.clone());
    Ok(Ground {
        pipeline: house.pipeline.clone(),
        catalog: house.upstreams.clone(),
        questions: Arc::new(house.store.clone()),
        journal: Arc::new(house.store.clone()),
        asked,
        caller: Caller { source: Source::Mcp, ..house.caller.clone() },
        auto_approve: auto_approve.unwrap_or(house.settings.mode),
        may_approve: house.settings.client.may_approve,
        card: Box::new(plain_card),
        stop: Box::new(move |call: CallId| {
            let (store, scope) = (store.clone(), scope.clone());
            // A call that cannot be stopped any more has ended.
            Box::pin(async move { drop(store.want_stop(&scope, &call).await) })
        }),
        key: kept_secret(&house.settings.data.join(KEY))?,
    })
}

/// The card as it stands in a terminal, without colours.
fn plain_card(question: &Question) -> String {
    anstream::adapter::strip_str(&card(question, Depth::Short, &Redactor::default())).to_string()
}

fn patterns(wanted: &[String]) -> Result<Option<Only>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in wanted {
        set.add(Glob::new(pattern).with_context(|| format!("`--tools {pattern}` is no name and no pattern"))?);
    }
    let set = set.build()?;
    Ok(Some(Arc::new(move |name: &str| set.is_match(name))))
}

/// Random bytes that are made once and kept, so that what depends on them is understood after a restart.
fn kept_secret(path: &Path) -> Result<[u8; 32]> {
    make_secret(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut secret = [0; 32];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut secret));
    read.with_context(|| format!("cannot read {}; remove it to have a new one made", path.display()))?;
    Ok(secret)
}

fn make_secret(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let mut secret = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let unfinished = path.with_added_extension(std::process::id().to_string());
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?.write_all(&secret)?;
    // The first one to make it wins.
    let made = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    match made {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
        Ok(()) | Err(_) => Ok(()),
    }
}

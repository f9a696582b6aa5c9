//! `haft mcp`

pub(crate) mod install;
mod wanted;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use haft_mcp::{PREFIX, QuestionListeners, Server, ServerDeps, StopCall, stdio};
use haft_runtime::{
    About, AutoApprove, CallId, Caller, Change, ChangeKind, Evidence, Pipeline, Question, Redactor, Scope, Source,
    ToolError,
};
use haft_server::Token;
use haft_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Everywhere,
    commands::{flags::parse_mode, prompt::Interrupts, read_settings},
    exit::CliExit,
    house::{self, House, OwnerCallers, ServingOptions},
    settings::{McpServer, Settings},
    show::{Out, card::card, changes::DetailLevel, safe::safe, style::WARN},
    workspace,
};
use wanted::ToolPatterns;

/// The file with the key that seals what clients carry for us.
const KEY: &str = "mcp.key";
/// The longest card that a client is given.
const LONGEST_CARD: usize = 16_000;
/// The variable with the token of HTTP clients.
pub(crate) const TOKEN: &str = "HAFT_MCP_TOKEN";
/// How many bytes a secret has.
const SECRET: usize = 32;
/// How often it is looked for questions that nobody answered in time.
const EXPIRY_LOOK: Duration = Duration::from_secs(2);
/// How long open connections may take to end.
const GOODBYE: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    serving: Serving,
}

impl Args {
    /// Whether a server is wanted, and not something about one.
    pub(crate) fn serves(&self) -> bool {
        self.command.is_none()
    }

    /// Whether it speaks with a client over standard input and output.
    pub(crate) fn serves_over_stdio(&self) -> bool {
        self.serves() && self.serving.http.is_none()
    }
}

#[derive(clap::Subcommand)]
enum McpCommand {
    /// Write haft into the settings of a client that speaks MCP
    Install(install::Args),
}

#[derive(clap::Args)]
struct Serving {
    /// What may happen without asking: none, safe (what only reads) or all
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    auto_approve: Option<AutoApprove>,
    /// Offer only these tools: names or patterns such as git_*, several with commas; wait_call and result_query, which
    /// follow their calls, are offered beside them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
    /// Serve over HTTP at this address, such as 127.0.0.1:8080, instead; the token is HAFT_MCP_TOKEN, or one is made and
    /// kept
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match &args.command {
        Some(McpCommand::Install(args)) => install::run(everywhere, out, args).await,
        None => serve(everywhere, &args.serving).await,
    }
}

async fn serve(everywhere: &Everywhere, args: &Serving) -> Result<CliExit> {
    let wanted = ToolPatterns::read(&args.tools)?;
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = read_settings(&folder)?;
    let ignored: Vec<String> = settings.mcp.servers().iter().filter_map(McpServer::ignored_keys).collect();
    let notes = settings.not_trusted.iter().chain(&settings.not_obeyed);
    for note in notes.chain(&settings.mcp.lost_additions()).chain(&ignored) {
        anstream::eprintln!("{WARN}haft:{WARN:#} {}", safe(note));
    }
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let asked = Arc::new(QuestionListeners::default());
    let served = ServingOptions { others: vec![asked.clone()], only: wanted.as_ref().map(ToolPatterns::only) };
    let house = house::serving(settings, store, &folder, served).await?;
    // The tools of a server that was never met come once it has been.
    let later = |pattern: &str| pattern.starts_with(PREFIX) && house.upstreams.servers().next().is_some();
    for note in wanted.iter().flat_map(|wanted| wanted.unmatched(later)) {
        anstream::eprintln!("{WARN}haft:{WARN:#} {}", safe(&note));
    }
    let server = Server::new(ground(&house, asked, args.auto_approve)?);
    let stop = until_signalled(&server);
    let expiring = tokio::spawn(expire_in_time(house.pipeline.clone()));
    match args.http {
        Some(address) => listen(address, &server, &house, &stop).await?,
        None => server.speak(stdio::input()?, stdio::output()?, &stop).await,
    }
    expiring.abort();
    let _ended = expiring.await;
    house.leave().await?;
    Ok(CliExit::Success)
}

/// Ends what nobody answers in time, so that whoever waits for it here hears of that.
async fn expire_in_time(pipeline: Pipeline) {
    loop {
        tokio::time::sleep(EXPIRY_LOOK).await;
        // What cannot be ended now is ended at the next look.
        let _later = pipeline.expire().await;
    }
}

/// Cancelled when somebody wants this process to end. What waits for a yes is handed back before.
fn until_signalled(server: &Server) -> CancellationToken {
    let (stop, mut interrupts) = (CancellationToken::new(), Interrupts::listen());
    let (stopping, server) = (stop.clone(), server.clone());
    drop(tokio::spawn(async move {
        interrupts.next().await;
        server.leave();
        stopping.cancel();
    }));
    stop
}

async fn listen(address: SocketAddr, server: &Server, house: &House, stop: &CancellationToken) -> Result<()> {
    let listener = haft_server::listen(address).with_context(|| format!("cannot listen at {address}"))?;
    let (token, known) = token(&house.settings)?;
    anstream::eprintln!("haft: serving MCP at http://{}/mcp", listener.local_addr()?);
    match known {
        TokenSource::Given => anstream::eprintln!("haft: its token is that of {TOKEN}"),
        TokenSource::Kept(file) => {
            anstream::eprintln!("haft: its token is kept in {}", safe(&file.display().to_string()))
        }
        TokenSource::Made(file) => {
            let file = file.display().to_string();
            anstream::eprintln!("haft: its token, shown this once and kept in {}: {token}", safe(&file));
        }
    }
    let owner = Caller { source: Source::Mcp, ..house.caller.clone() };
    let serving = haft_server::serve(listener, server, Token::new(token, owner), stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served?,
        // A connection that does not end by itself ends with the process.
        () = stop.cancelled() => drop(tokio::time::timeout(GOODBYE, serving).await),
    }
    server.finish().await;
    Ok(())
}

/// Where a token is from.
enum TokenSource {
    /// The variable of this process.
    Given,
    /// A file from before.
    Kept(PathBuf),
    /// A file of just now.
    Made(PathBuf),
}

/// The token of HTTP clients, and where people find it.
fn token(settings: &Settings) -> Result<(String, TokenSource)> {
    if let Some(given) = settings.variables.get(TOKEN).filter(|given| !given.trim().is_empty()) {
        return Ok((given.trim().to_owned(), TokenSource::Given));
    }
    let path = settings.data.join("mcp.token");
    let is_new = !path.exists();
    let secret = || random().map(|secret| format!("{}\n", BASE64_URL_SAFE_NO_PAD.encode(secret)).into_bytes());
    make_once(&path, secret).with_context(|| format!("cannot make {}", path.display()))?;
    let token = read_token(&path).with_context(|| unreadable(&path))?;
    Ok((token, if is_new { TokenSource::Made(path) } else { TokenSource::Kept(path) }))
}

/// The text of a kept token.
fn read_token(path: &Path) -> io::Result<String> {
    let kept = fs::read_to_string(path)?;
    match kept.trim() {
        "" => Err(io::ErrorKind::InvalidData.into()),
        token => Ok(token.to_owned()),
    }
}

fn ground(house: &House, asked: Arc<QuestionListeners>, auto_approve: Option<AutoApprove>) -> Result<ServerDeps> {
    Ok(ServerDeps {
        pipeline: house.pipeline.clone(),
        catalog: house.catalog.clone(),
        questions: Arc::new(house.store.clone()),
        journal: Arc::new(house.store.clone()),
        asked,
        callers: Arc::new(OwnerCallers::new(&house.caller)),
        auto_approve: auto_approve.unwrap_or(house.settings.mode),
        may_approve: house.settings.client.may_approve,
        card: Box::new(plain_card),
        stop: stop_call(&house.store),
        key: kept_secret(&house.settings.data.join(KEY))?,
    })
}

/// Asks for a call to be stopped, in whichever process it runs.
pub(crate) fn stop_call(store: &Store) -> StopCall {
    let store = store.clone();
    Box::new(move |scope: &Scope, call: CallId| {
        let (store, scope) = (store.clone(), scope.clone());
        // A call that cannot be stopped any more has ended.
        Box::pin(async move { drop(store.want_stop(&scope, &call).await) })
    })
}

/// The card as it stands in a terminal, without colours. There is no key to see more of it in a client, so that everything
/// that a yes would commit stands there, or where it can be read.
pub(crate) fn plain_card(question: &Question) -> String {
    let plain = |depth| anstream::adapter::strip_str(&card(question, depth, &Redactor::default())).to_string();
    let About::Approval(Evidence::Staged { changes, .. }) = &question.about else { return plain(DetailLevel::Short) };
    let whole = plain(DetailLevel::Whole);
    let is_short = whole.len() <= LONGEST_CARD;
    let mut card = if is_short { whole } else { plain(DetailLevel::Short) };
    if !is_short || changes.0.iter().any(is_out_of_sight) {
        card.push_str(&format!("not all of it stands here; all of it: haft changes {} --all\n", question.call));
    }
    card
}

/// Whether a change has text that is too long for a card.
fn is_out_of_sight(change: &Change) -> bool {
    let is_text = change.diff.is_none() && !change.binary && !change.directory && change.size > 0;
    is_text && matches!(change.kind, ChangeKind::Created | ChangeKind::Changed)
}

/// Random bytes that are made once and kept, so that what depends on them is understood after a restart.
pub(crate) fn kept_secret(path: &Path) -> Result<[u8; SECRET]> {
    make_once(path, || random().map(Vec::from)).with_context(|| format!("cannot make {}", path.display()))?;
    let mut secret = [0; SECRET];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut secret));
    read.with_context(|| unreadable(path))?;
    Ok(secret)
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}; remove it to have a new one made", path.display())
}

/// Random bytes that nobody guesses.
pub(crate) fn random() -> io::Result<[u8; SECRET]> {
    let mut secret = [0; SECRET];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

fn make_once(path: &Path, secret: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let unfinished = write_aside(path, &secret()?)?;
    // The first one to make it wins.
    let made = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    match made {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes what only its owner may read beside where it belongs.
pub(crate) fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let unfinished = path.with_added_extension(std::process::id().to_string());
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?.write_all(bytes)?;
    Ok(unfinished)
}

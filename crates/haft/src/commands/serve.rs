//! `haft serve`

mod record;
mod stop;

use std::{io, io::IsTerminal, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result};
use haft_platform::SignInsLast;
use haft_runtime::ToolError;
use haft_server::Place;
use haft_store::{Durability, Store};
use serde_json::json;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    commands::{mistake, prompt::Interrupts},
    demo,
    exit::CliExit,
    house::{self, TenantHouse},
    master_key, open_files,
    settings::{LogFormat, Settings, listen_address, public_address},
    show::Out,
};
pub(crate) use record::{RunningServer, ServerState, make_private};

/// How long what is under way may take to end by itself, how long after it was cut short, and all in all.
const BY_ITSELF: Duration = Duration::from_secs(20);
const CUT_SHORT: Duration = Duration::from_secs(4);
const LEAVING: Duration = Duration::from_secs(5);
const LONGEST_END: Duration = Duration::from_secs(30);
/// How often a server in the background looks whether anybody needs it.
const IDLE_LOOK: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address to listen at; port 0 takes a free one [default: 127.0.0.1:7373]
    #[arg(long, value_name = "ADDR", value_parser = |text: &str| listen_address(text).map_err(|err| format!("{err:#}")))]
    listen: Option<SocketAddr>,
    /// The PostgreSQL database to use instead of the file in the data folder
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The address that people use, where something before haft speaks TLS, such as https://haft.example.org
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Add a tenant `demo` with tools to try, if it is not there yet
    #[arg(long)]
    demo: bool,
    /// End the server that runs for this data folder, and wait for that
    #[arg(long, conflicts_with_all = ["listen", "public_url", "demo"])]
    stop: bool,
    /// How the log is written that `HAFT_LOG` asks for [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Belong to no terminal, print nothing, and end when nobody needs it
    #[arg(long, hide = true)]
    background: bool,
}

impl Args {
    /// How the log is written: as the flag says, or the settings, as far as they can be read.
    pub(crate) fn log_format(&self) -> LogFormat {
        let set = || Settings::of_user().and_then(Settings::with_environment).map(|settings| settings.serve.log);
        self.log_format.unwrap_or_else(|| set().unwrap_or_default())
    }
}

pub(crate) async fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let mut settings = settings(args)?;
    if args.stop {
        return stop::run(out, &settings.data).await;
    }
    let room = open_files::raise();
    let too_few = open_files::too_few(&settings, room);
    settings.serve.limits.connections = settings.serve.limits.connections.min(room);
    refuse_in_the_open(&settings)?;
    if args.background {
        // Whoever started it may close the terminal.
        rustix::process::setsid().context("cannot leave the terminal")?;
    }
    let Some(record) = RunningServer::lock(&settings.data)? else {
        let at = ServerState::of(&settings.data).url();
        let at = at.map_or_else(|| "and is starting".to_owned(), |url| format!("at {url}"));
        return Err(mistake(format!("haft serves this data folder already, {at}")));
    };
    let listener = listener(&settings, args)?;
    let place = Place { listens_at: listener.local_addr()?, public_url: settings.serve.public_url.clone() };
    let last = if place.public_url.is_some() { SignInsLast::TheirTime } else { SignInsLast::WithTheProcess };
    // A key that is missing is told before the database is asked.
    master_key::master_key(&settings)?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let key = master_key::checked(&settings, &store).await?;
    let house = house::of_tenants(settings.clone(), store, key, (place.clone(), last)).await?;
    if args.demo {
        demo::add(&house, &settings).await?;
    }
    record.tell(&place.url())?;
    if !args.background {
        // What is no terminal may be a log, where no link belongs; a demo has nothing to protect.
        let shows_links = out.json || args.demo || io::stdout().is_terminal();
        say_where(out, &place.url(), sign_in(&house, &settings, last).await?.filter(|_| shows_links));
        if let Some((found, fix)) = too_few {
            warn(out, &format!("{found}: {fix}"));
        }
    }
    let idle = settings.serve.idle.filter(|_| args.background);
    let why = serve_until_ended(&house, listener, idle).await?;
    say_the_end(out, why);
    house.leave(LEAVING).await?;
    Ok(CliExit::Success)
}

/// The settings of the user, with what the flags say over them. What a crash of the machine must not lose is the default.
fn settings(args: &Args) -> Result<Settings> {
    let mut settings = of_user(args.database.as_deref())?;
    if !settings.origins.iter().any(|(key, _)| key == "store.sync") {
        settings.sync = Durability::Full;
    }
    settings.serve.listen = args.listen.unwrap_or(settings.serve.listen);
    if let Some(url) = &args.public_url {
        settings.serve.public_url = public_address(url).map_err(|err| mistake(format!("{err:#}")))?;
    }
    Ok(settings)
}

/// The user's settings, on another database where one is named.
pub(crate) fn of_user(database: Option<&str>) -> Result<Settings> {
    let mut settings =
        Settings::of_user().and_then(Settings::with_environment).map_err(|err| mistake(format!("{err:#}")))?;
    if let Some(url) = database {
        settings.store_url = Some(url.to_owned());
    }
    Ok(settings)
}

/// haft itself speaks no TLS, so that others than this machine are served only behind something that does.
fn refuse_in_the_open(settings: &Settings) -> Result<()> {
    let serve = &settings.serve;
    let is_secure = serve.public_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    if serve.listen.ip().is_loopback() || is_secure || serve.insecure {
        return Ok(());
    }
    let message = format!(
        "{} can be reached from other machines, and haft speaks no TLS itself: put a proxy before it and give its \
         address with --public-url https://…, or set serve.insecure = true",
        serve.listen
    );
    Err(mistake(message))
}

/// Takes the address. One in the background that nobody has chosen an address for takes another one where that is in use: it
/// is found by its record.
fn listener(settings: &Settings, args: &Args) -> Result<TcpListener> {
    let address = settings.serve.listen;
    let is_chosen = args.listen.is_some() || settings.origins.iter().any(|(key, _)| key == "serve.listen");
    let taken = match haft_server::listen(address) {
        Err(err) if err.kind() == io::ErrorKind::AddrInUse && args.background && !is_chosen => {
            haft_server::listen(SocketAddr::new(address.ip(), 0))
        }
        taken => taken,
    };
    taken.with_context(|| format!("cannot listen at {address}"))
}

/// A link by which the owner signs in, for as long as it is needed.
async fn sign_in(house: &TenantHouse, settings: &Settings, last: SignInsLast) -> Result<Option<String>> {
    let (platform, url) = (&house.app.platform, house.app.place.url());
    if last == SignInsLast::TheirTime && platform.anybody_signed_in().await? {
        return Ok(None);
    }
    Ok(Some(format!("{url}/sign-in#{}", platform.local_owner_link(&settings.user).await?)))
}

fn say_where(out: &Out, url: &str, sign_in: Option<String>) {
    if out.json {
        let mut line = json!({"event": "listening", "url": url});
        if let Some(link) = sign_in {
            line["signIn"] = json!(link);
        }
        // One line, so that a program reads it while the server goes on.
        out.next_line(&line.to_string());
        return;
    }
    out.line(&format!("haft listens at {url}"));
    match sign_in {
        Some(link) => out.line(&format!("sign in once, within 15 minutes: {link}")),
        None => out.line("haft open signs you in; haft open --print prints a link"),
    }
    out.hint("Ctrl-C ends it");
}

/// Something that an operator must know.
fn warn(out: &Out, message: &str) {
    match out.json {
        true => _ = out.next_line(&json!({"event": "warning", "message": message}).to_string()),
        false => Out::warning(message),
    }
}

/// Why a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    Signal,
    Idle,
}

fn say_the_end(out: &Out, why: EndReason) {
    let word = match why {
        EndReason::Signal => "signal",
        EndReason::Idle => "idle",
    };
    if out.json {
        out.next_line(&json!({"event": "ending", "why": word}).to_string());
    }
    tracing::info!(why = word, "this server ends");
}

/// Serves until somebody wants the end, or nobody needs it any more. Then no new requests are taken, what is under way may
/// end, and after a while the rest is cut short; a second signal does so at once.
async fn serve_until_ended(house: &TenantHouse, listener: TcpListener, idle: Option<Duration>) -> Result<EndReason> {
    let (app, closing) = (&house.app, CancellationToken::new());
    let serving = haft_server::serve_tenants(listener, app.clone(), &house.mcp, closing.clone());
    let looking = house.jobs.run(&app.stop);
    tokio::pin!(serving, looking);
    let mut interrupts = Interrupts::listen();
    let why = tokio::select! {
        served = &mut serving => return Ok(served.map(|()| EndReason::Signal)?),
        () = &mut looking => return Ok(EndReason::Signal),
        () = interrupts.next() => EndReason::Signal,
        () = nobody_needs(house, idle) => EndReason::Idle,
    };
    // What waits for a yes is handed back before anything is cancelled.
    house.mcp.leave();
    app.stop.cancel();
    app.requests.each.close();
    tokio::select! {
        served = &mut serving => return Ok(served.map(|()| why)?),
        ((), ()) = async { tokio::join!(app.requests.each.wait(), &mut looking) } => {}
        () = interrupts.next() => {}
        () = sleep(BY_ITSELF) => {}
    }
    app.requests.cut.cancel();
    closing.cancel();
    // A connection that does not end by itself ends with the process.
    drop(timeout(CUT_SHORT, &mut serving).await);
    Ok(why)
}

/// Returns when nobody has asked for anything for so long, no stream is open, and nothing waits for an answer.
async fn nobody_needs(house: &TenantHouse, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        sleep(IDLE_LOOK.min(idle / 4)).await;
        let nothing_waits = || async { matches!(house.app.platform.open_counts(1).await, Ok((0, _))) };
        if house.app.metrics.idle_for() >= idle && nothing_waits().await {
            return;
        }
    }
}

/// Where the server of a data folder listens, if one runs.
pub(crate) fn running_at(data: &Path) -> Option<String> {
    ServerState::of(data).url()
}

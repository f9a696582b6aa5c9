//! `haft mcp-servers login` and `haft mcp-servers logout`

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use haft_mcp::{LoginAnswer, LoginWish, UpstreamServer};
use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::Url;
use serde_json::json;
use tokio::{net::TcpListener, time::timeout};

use crate::{
    commands::{
        login::{SAID_WITHIN, asked_for, say},
        mistake,
        open::browser,
        prompt::Interrupts,
    },
    exit::CliExit,
    house::House,
    logins::{KeptLogin, LoginPlace, taken},
    settings::{McpServer, mcp::Reached},
    show::Out,
    upstreams::{can_log_in, client, owner, revealed},
};

/// How long a person may take on the page.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// Where the browser comes back to.
const BACK: &str = "/back";

#[derive(clap::Args)]
pub(crate) struct ServerLoginArgs {
    /// The server
    pub(crate) name: String,
    /// Print the address of the page, instead of opening a browser
    #[arg(long)]
    pub(crate) print: bool,
}

/// Logs in at a server; whoever uses the same settings uses the login.
pub(crate) async fn log_in(out: &Out, house: &House, args: &ServerLoginArgs) -> Result<Option<CliExit>> {
    let (wanted, place, kept) = entry(house, &args.name)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port of this machine is free")?;
    let wish = LoginWish {
        client: wanted
            .login_client(&house.settings, house.workspace.path())
            .map_err(|err| mistake(format!("{err:#}")))?,
        scopes: wanted.oauth.scopes.clone(),
        redirect_uri: format!("http://{}{BACK}", listener.local_addr()?),
        document: None,
    };
    let (address, _until) = kept.begin(&owner(), &place, async |_host: &str| Ok(wish)).await?;
    let opened = if args.print { None } else { browser::open(&house.settings.variables, Path::new(&address)) };
    match opened {
        Some(browser) => anstream::eprintln!("the page of `{}` is open in {browser}; log in there", args.name),
        // With --json the document at the end stands alone.
        None if out.json => anstream::eprintln!("{address}"),
        None => drop(out.next_line(&address)),
    }
    let mut interrupts = Interrupts::listen();
    tokio::select! {
        ended = timeout(ANSWERED_WITHIN, come_back(&listener, house, (&place, &kept))) => {
            ended.context("nobody logged in within 15 minutes")??;
        }
        () = interrupts.next() => return Ok(Some(CliExit::Cancelled)),
    }
    Ok(None)
}

/// Gives the login at a server up.
pub(crate) async fn log_out(out: &Out, house: &House, name: &str) -> Result<CliExit> {
    let (_, place, kept) = entry(house, name)?;
    if !kept.end(&place.client).await? {
        return Err(ToolError::new(ErrorCode::NotFound, format!("there is no login at `{name}`")).into());
    }
    if out.json {
        out.document(&json!({"server": name, "loggedOut": true}));
    } else {
        out.line(&format!("logged out at `{name}`"));
    }
    Ok(CliExit::Success)
}

/// Whether somebody has logged in at a server, and may have to again.
pub(crate) async fn is_logged_in(house: &House, server: &UpstreamServer) -> bool {
    match entry(house, server.name()) {
        Ok((_, place, kept)) => kept.is_usable(&place.url).await.unwrap_or(false),
        Err(_) => false,
    }
}

/// The entry of a server, where it is, and its login.
fn entry(house: &House, name: &str) -> Result<(McpServer, LoginPlace, KeptLogin)> {
    let all = house.settings.mcp.servers();
    let wanted = all.into_iter().find(|server| server.name == name && can_log_in(server));
    let impossible =
        || mistake(format!("nobody logs in at `{name}`: it is started here, or is sent a token that its entry names"));
    let wanted = wanted.ok_or_else(impossible)?;
    let Reached::Url { url, .. } = revealed(&wanted, &house.workspace, &house.settings)?.reached else {
        return Err(impossible());
    };
    let client = Arc::new(client(&wanted, &url, &house.settings));
    let kept = house.logins.kept(&house.settings, (name, &url))?;
    Ok((wanted, LoginPlace { name: name.to_owned(), url, client }, kept))
}

/// Waits until the browser comes back with the answer to this login, and keeps what that gives.
async fn come_back(listener: &TcpListener, house: &House, (place, kept): (&LoginPlace, &KeptLogin)) -> Result<()> {
    let platform = house.logins.platform(&house.settings)?;
    loop {
        let (mut browser, _) = listener.accept().await?;
        // Whoever says nothing is no reason to stop.
        let Ok(Some(asked)) = timeout(SAID_WITHIN, asked_for(&mut browser)).await else { continue };
        let answer = answer(&asked).unwrap_or_default();
        let attempt = match taken(&platform, house.logins.scope(), &owner(), &answer).await {
            Ok((_, attempt)) => attempt,
            Err(error) if error.code == ErrorCode::NotFound => {
                say(&mut browser, "404 Not Found", "This is not the page of a login.").await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let ended = kept.finish(place, attempt, &answer).await;
        let words = match &ended {
            Ok(()) => "You are logged in. Go back to the terminal.",
            Err(_) => "You are not logged in. Go back to the terminal.",
        };
        say(&mut browser, "200 OK", words).await;
        return Ok(ended?);
    }
}

/// What a browser brings back.
fn answer(asked: &str) -> Option<LoginAnswer> {
    let address = Url::parse(&format!("http://127.0.0.1{asked}")).ok().filter(|address| address.path() == BACK)?;
    let field =
        |name: &str| address.query_pairs().find(|(field, _)| field == name).map(|(_, value)| value.into_owned());
    Some(LoginAnswer { code: field("code"), state: field("state"), iss: field("iss"), error: field("error") })
}

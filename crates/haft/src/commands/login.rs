//! `haft login` and `haft logout`

mod device;
mod page;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use haft_runtime::{ErrorCode, ToolError};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    commands::{mistake, open::browser, prompt::Interrupts, serve::make_private, user_settings},
    exit::CliExit,
    remote::{
        Client, KEY,
        login::{Login, Tokens},
    },
    settings::Settings,
    show::Out,
};
use device::DeviceLogin;
use page::LoginPage;
pub(crate) use page::{SAID_WITHIN, asked_for, say};

/// What this program asks for.
const SCOPES: &str = "tools:read tools:execute approvals:decide events:read";
/// What it is called on the page.
const CLIENT_NAME: &str = "haft on the command line";
/// How long a person may take on the page.
const ANSWERED_WITHIN: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
pub(crate) struct LoginArgs {
    /// The address of the gateway, such as https://haft.example.org
    url: String,
    /// Print the address of the page, instead of opening a browser on this machine
    #[arg(long)]
    print: bool,
    /// Print a code to type in a browser on any other device; so it is done where no browser can be opened
    #[arg(long, conflicts_with = "print")]
    device: bool,
}

#[derive(clap::Args)]
pub(crate) struct LogoutArgs {
    /// The address of the gateway
    url: String,
}

pub(crate) async fn login(out: &Out, args: &LoginArgs) -> Result<CliExit> {
    let settings = user_settings()?;
    let client = Client::unknown(&args.url)?;
    let url = client.url().to_owned();
    let about = client.get("/.well-known/oauth-authorization-server").await?;
    if about["registration_endpoint"].as_str().is_none() {
        let message = format!("{url} is no haft server that people can log in at; check the address");
        return Err(ToolError::new(ErrorCode::UpstreamError, message).into());
    }
    let mut interrupts = Interrupts::listen();
    let tokens = tokio::select! {
        tokens = tokens(out, args, (&client, &about), &settings) => tokens?,
        () = interrupts.next() => return Ok(CliExit::Cancelled),
    };
    make_private(&settings.data)?;
    Login::keep(&settings.data, &tokens)?;
    told(out, &url, &settings).await
}

/// Has somebody say yes: in a browser of this machine, or elsewhere by a code.
async fn tokens(
    out: &Out,
    args: &LoginArgs,
    (client, about): (&Client, &Value),
    settings: &Settings,
) -> Result<Tokens> {
    if args.device {
        return DeviceLogin::begin(client, about).await?.tokens(out, client).await;
    }
    let door = LoginPage::open(client).await?;
    let address = door.address(about)?;
    let opened = if args.print { None } else { browser::open(&settings.variables, Path::new(&address)) };
    match opened {
        Some(browser) => {
            anstream::eprintln!("{} is open in {browser}; say there what haft may do for you", client.url())
        }
        None if !args.print => {
            anstream::eprintln!("no browser can be opened here, so log in with a code");
            return DeviceLogin::begin(client, about).await?.tokens(out, client).await;
        }
        // With --json the document at the end stands alone.
        None if out.json => anstream::eprintln!("{address}"),
        None => drop(out.next_line(&address)),
    }
    let code = timeout(ANSWERED_WITHIN, door.code(about)).await.context("nobody said yes within ten minutes")??;
    door.tokens(client, &code).await
}

/// Says who is logged in now, and where.
async fn told(out: &Out, url: &str, settings: &Settings) -> Result<CliExit> {
    let me = Client::of_login(url, settings)?.get("/api/me").await?;
    if out.json {
        out.document(&json!({"url": url, "caller": me["caller"], "tenant": me["tenant"]}));
        return Ok(CliExit::Success);
    }
    let (who, tenant) = (me["caller"]["name"].as_str(), me["tenant"]["slug"].as_str());
    out.line(&format!("logged in at {url} as {}, in {}", who.unwrap_or("somebody"), tenant.unwrap_or("a tenant")));
    if settings.variables.contains_key(KEY) {
        Out::warning(&format!("{KEY} is set and is used before the login"));
    }
    out.hint(&format!("try: haft tools --server {url}"));
    Ok(CliExit::Success)
}

pub(crate) async fn logout(out: &Out, args: &LogoutArgs) -> Result<CliExit> {
    let settings = user_settings()?;
    let client = Client::unknown(&args.url)?;
    let url = client.url();
    let Some(tokens) = Login::forget(&settings.data, url)? else {
        return Err(mistake(format!("nobody is logged in at {url}")));
    };
    // It is forgotten here whether or not the server is there to hear of it.
    let revoked = client.post_form("/oauth/revoke", &[("token", &*tokens.refresh_token)]).await;
    let is_revoked = match revoked {
        Ok(_) => true,
        Err(err) => {
            let ends = "the login is forgotten here, and ends there by itself or on the page of your programs";
            Out::warning(&format!("{}; {ends}", err.error.message));
            false
        }
    };
    if out.json {
        out.document(&json!({"url": url, "revoked": is_revoked}));
    } else {
        out.line(&format!("logged out at {url}"));
    }
    Ok(CliExit::Success)
}

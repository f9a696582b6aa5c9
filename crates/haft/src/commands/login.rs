//! `haft login` and `haft logout`

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::web::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    commands::{mcp::random, mistake, open::browser, prompt::Interrupts, serve::make_private, user_settings},
    exit::CliExit,
    remote::{
        Client, KEY,
        login::{Login, Tokens},
    },
    show::Out,
};

/// What this program asks for.
const SCOPES: &str = "tools:read tools:execute approvals:decide events:read";
/// How long a person may take on the page.
const ANSWERED_WITHIN: Duration = Duration::from_secs(600);
/// How long a browser may take to say what it wants.
const SAID_WITHIN: Duration = Duration::from_secs(10);
/// The longest request of a browser.
const LONGEST: usize = 16 << 10;

#[derive(clap::Args)]
pub(crate) struct LoginArgs {
    /// The address of the gateway, such as https://haft.example.org
    url: String,
    /// Print the address of the page, instead of opening a browser
    #[arg(long)]
    print: bool,
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
    let door = LoginPage::open(&client, &about).await?;
    let address = door.address(&about)?;
    let opened = if args.print { None } else { browser::open(&settings.variables, Path::new(&address)) };
    match opened {
        Some(browser) => anstream::eprintln!("{url} is open in {browser}; say there what haft may do for you"),
        // With --json the document at the end stands alone.
        None if out.json => anstream::eprintln!("{address}"),
        None => drop(out.next_line(&address)),
    }
    let mut interrupts = Interrupts::listen();
    let code = tokio::select! {
        code = timeout(ANSWERED_WITHIN, door.code(&about)) => code.context("nobody said yes within ten minutes")??,
        () = interrupts.next() => return Ok(CliExit::Cancelled),
    };
    let tokens = door.tokens(&client, &code).await?;
    make_private(&settings.data)?;
    Login::keep(&settings.data, &tokens)?;
    let me = Client::of_login(&url, &settings)?.get("/api/me").await?;
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

/// Where the browser comes back to, and what only this program knows.
struct LoginPage {
    listener: TcpListener,
    back: String,
    client_id: String,
    verifier: String,
    state: String,
}

impl LoginPage {
    /// Waits at a free port of this machine, and registers with it.
    async fn open(client: &Client, about: &Value) -> Result<Self> {
        if about["registration_endpoint"].as_str().is_none() {
            let message = format!("{} is no haft server that people can log in at; check the address", client.url());
            return Err(ToolError::new(ErrorCode::UpstreamError, message).into());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port of this machine is free")?;
        let back = format!("http://{}/back", listener.local_addr()?);
        let wish = json!({
            "client_name": "haft on the command line", "redirect_uris": [back], "token_endpoint_auth_method": "none",
        });
        let registered = client.post("/oauth/register", &wish).await?;
        let client_id = registered["client_id"].as_str().context("the server has not registered this program")?;
        let secret = || random().map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let (verifier, state) = (secret()?, secret()?);
        Ok(Self { listener, back, client_id: client_id.to_owned(), verifier, state })
    }

    /// The page on which a person says yes.
    fn address(&self, about: &Value) -> Result<String> {
        let page = about["authorization_endpoint"].as_str().context("the server names no page to log in at")?;
        let mut page = Url::parse(page).context("the server names no page to log in at")?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.back),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &self.state),
            ("scope", SCOPES),
        ]);
        Ok(page.into())
    }

    /// Waits until the browser comes back with a code of this server, meant for this login.
    async fn code(&self, about: &Value) -> Result<String> {
        loop {
            let (mut browser, _) = self.listener.accept().await?;
            // Whoever says nothing is no reason to stop.
            let Ok(Some(asked)) = timeout(SAID_WITHIN, asked_for(&mut browser)).await else { continue };
            let Ok(address) = Url::parse(&format!("http://127.0.0.1{asked}")) else { continue };
            let field = |name: &str| {
                address.query_pairs().find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
            };
            let is_ours = address.path() == "/back"
                && field("state").as_ref() == Some(&self.state)
                && field("iss").as_deref() == about["issuer"].as_str();
            if !is_ours {
                say(&mut browser, "404 Not Found", "This is not the page of a login.").await;
                continue;
            }
            if let Some(code) = field("code") {
                say(&mut browser, "200 OK", "You are logged in. Go back to the terminal.").await;
                return Ok(code);
            }
            say(&mut browser, "200 OK", "You are not logged in. Go back to the terminal.").await;
            let why = field("error_description").or_else(|| field("error")).unwrap_or_default();
            let message = format!("the login was refused: {why}");
            return Err(ToolError::new(ErrorCode::Unauthorized, message).into());
        }
    }

    async fn tokens(&self, client: &Client, code: &str) -> Result<Tokens> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.back),
            ("code_verifier", &self.verifier),
        ];
        let given = client.post_form("/oauth/token", &fields).await?;
        Ok(Tokens::given(client.url(), &self.client_id, &given)?)
    }
}

/// What a browser asks for; `None` where it is no request.
async fn asked_for(browser: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST || browser.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    head.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

/// Tells whoever looks at the browser. It may be gone by now.
async fn say(browser: &mut TcpStream, status: &str, words: &str) {
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>haft</title><p>{words}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let _is_heard = browser.write_all((head + &page).as_bytes()).await;
    let _is_closed = browser.shutdown().await;
}

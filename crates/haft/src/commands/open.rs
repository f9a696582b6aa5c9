//! `haft open`

pub(crate) mod browser;

use std::{
    fs::{self, OpenOptions},
    io::{IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use haft_platform::Platform;
use haft_runtime::ToolError;
use haft_store::Store;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use crate::{
    commands::{
        mistake,
        serve::{ServerState, make_private, of_user},
    },
    exit::CliExit,
    house,
    master_key::master_key,
    settings::{LOG, Settings},
    show::Out,
};

/// How long a server in the background may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// How long the file with the code lies there for the browser.
const OPENS_WITHIN: Duration = Duration::from_secs(15);
/// How often it is looked whether something has happened.
const LOOK: Duration = Duration::from_millis(50);
/// Where a server in the background writes what goes wrong.
const SERVER_LOG: &str = "server.log";
/// What the file for the browser is called, apart from what makes it another one each time.
const PAGE_FILE: (&str, &str) = ("open-", ".html");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The page to open, such as /approvals [default: /]
    path: Option<String>,
    /// Print a link that signs in once, instead of opening a browser
    #[arg(long)]
    print: bool,
    /// The PostgreSQL database to use instead of the file in the data folder
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

pub(crate) async fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let settings = of_user(args.database.as_deref())?;
    let page = args.path.as_deref().unwrap_or("/");
    if !page.starts_with('/') || page.starts_with("//") || page.contains(char::is_control) {
        return Err(mistake(format!("`{page}` is no page; a page begins with /, such as /approvals")));
    }
    let url = running(&settings).await?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let platform = Platform::new(store.clone(), house::whole(), master_key(&settings)?);
    platform.have_local_tenant().await?;
    let link = SignInLink { code: platform.local_owner_link(&settings.user).await?, url, page: page.to_owned() };
    let opened = if args.print { None } else { open(&settings, &platform, &link).await? };
    store.leave().await.map_err(ToolError::from)?;
    say(out, &link, opened.as_deref(), args.print);
    Ok(CliExit::Success)
}

/// A link by which this machine's user signs in once.
struct SignInLink {
    url: String,
    code: String,
    page: String,
}

impl SignInLink {
    /// As somebody types or follows it. What stands behind `#` reaches no server.
    fn text(&self) -> String {
        let to = if self.page == "/" { String::new() } else { format!("?to={}", encoded(&self.page)) };
        format!("{}/sign-in{to}#{}", self.url, self.code)
    }

    /// A page that posts the code at once, so that it is in no address, no history and no command line.
    fn html(&self) -> String {
        let (url, page) = (escaped(&self.url), escaped(&self.page));
        format!(
            "<!doctype html><meta charset=\"utf-8\"><title>haft</title><form method=\"post\" action=\"{url}/sign-in\">\
             <input type=\"hidden\" name=\"code\" value=\"{}\"><input type=\"hidden\" name=\"to\" value=\"{page}\">\
             <button>Sign in to haft</button></form><script>document.forms[0].submit()</script>\n",
            escaped(&self.code)
        )
    }
}

/// Hands the link to a browser, and waits until it was used; says which browser, if there is one. Behind a proxy the link is
/// for a browser on another machine.
async fn open(settings: &Settings, platform: &Platform, link: &SignInLink) -> Result<Option<String>> {
    if settings.serve.public_url.is_some() {
        return Ok(None);
    }
    let file = PageFile::write(&settings.data, &link.html())?;
    let Some(browser) = browser::open(&settings.variables, &file.0) else { return Ok(None) };
    let until = Instant::now() + OPENS_WITHIN;
    while platform.is_unused(&link.code).await? {
        if Instant::now() >= until {
            let message = format!("{browser} has not opened the page; `haft open --print` prints a link to follow");
            bail!(message);
        }
        sleep(LOOK).await;
    }
    Ok(Some(browser))
}

fn say(out: &Out, link: &SignInLink, browser: Option<&str>, print: bool) {
    if out.json {
        let mut told = json!({"url": link.url, "opened": browser.is_some()});
        if browser.is_none() {
            told["signIn"] = json!(link.text());
        }
        return out.document(&told);
    }
    match browser {
        Some(browser) => out.line(&format!("{} is open in {browser}", link.url)),
        None if print => out.line(&link.text()),
        None if std::io::stdout().is_terminal() => {
            out.line(&format!("no browser was found; sign in once, within 15 minutes: {}", link.text()));
        }
        // What is no terminal may be a log, where no link belongs.
        None => out.line(&format!("no browser was found for {}; `haft open --print` prints a link", link.url)),
    }
}

/// Where the server of the data folder listens. One is started where there is none.
async fn running(settings: &Settings) -> Result<String> {
    let mut started = None;
    let until = Instant::now() + STARTS_WITHIN;
    loop {
        match ServerState::of(&settings.data) {
            ServerState::Running(address) => return Ok(address.url),
            ServerState::Absent if started.is_none() => started = Some(start(settings)?),
            ServerState::Absent | ServerState::Starting => {}
        }
        let has_ended = started.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
        // Another one may have been quicker.
        if has_ended && ServerState::of(&settings.data) == ServerState::Absent {
            return Err(not_started(&settings.data));
        }
        if Instant::now() >= until {
            return Err(not_started(&settings.data));
        }
        sleep(LOOK).await;
    }
}

/// Starts a server that outlives this command and its terminal.
fn start(settings: &Settings) -> Result<tokio::process::Child> {
    make_private(&settings.data)?;
    let path = settings.data.join(SERVER_LOG);
    let log = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let log = log.with_context(|| format!("cannot write {}", path.display()))?;
    let mut command = Command::new(&settings.program);
    command.args(["serve", "--background"]).current_dir(&settings.data);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    if !settings.variables.contains_key(LOG) {
        command.env(LOG, "warn");
    }
    if let Some(database) = &settings.store_url {
        // Its address may hold a password, which does not belong into a command line.
        command.env("HAFT_STORE_URL", database);
    }
    command.spawn().context("cannot start haft in the background")
}

fn not_started(data: &Path) -> anyhow::Error {
    let path = data.join(SERVER_LOG);
    let log = fs::read_to_string(&path).unwrap_or_default();
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    mistake(format!("haft does not serve: {} (see {})", last.trim_start_matches("error: "), path.display()))
}

/// The file that a browser is handed. It goes away with this.
struct PageFile(PathBuf);

impl PageFile {
    fn write(data: &Path, html: &str) -> Result<Self> {
        remove_leftovers(data);
        let (start, end) = PAGE_FILE;
        let path = data.join(format!("{start}{}{end}", uuid::Uuid::now_v7().simple()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut file| file.write_all(html.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// What a killed command has left; its code works no longer, or not for long.
fn remove_leftovers(data: &Path) {
    let (start, end) = PAGE_FILE;
    for entry in fs::read_dir(data).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_old = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OPENS_WITHIN * 2));
        if is_old && name.to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A path as the value of a query.
fn encoded(path: &str) -> String {
    const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(path, VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_link_cannot_break_out_of_it() {
        let page = "/approvals/tc_1?tenant=a&x=\"><script>".to_owned();
        let link = SignInLink { url: "http://127.0.0.1:1".to_owned(), code: "c0de".to_owned(), page };
        assert_eq!(
            link.text(),
            "http://127.0.0.1:1/sign-in?to=/approvals/tc_1%3Ftenant%3Da%26x%3D%22%3E%3Cscript%3E#c0de"
        );
        assert!(
            link.html().contains("value=\"/approvals/tc_1?tenant=a&amp;x=&quot;&gt;&lt;script&gt;\""),
            "{}",
            link.html()
        );
    }
}

//! A login at a gateway: the tokens that one has there, kept for the next command and renewed when their time is over.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use haft_runtime::{ErrorCode, ToolError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::Client;
use crate::edits;

/// A token that ends sooner than this is renewed before it is used.
const SOON: Duration = Duration::from_secs(30);

/// What is kept of a login.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) url: String,
    pub(crate) client_id: String,
    access_token: String,
    pub(crate) refresh_token: String,
    expires_at: Timestamp,
}

impl Tokens {
    /// The tokens that a server has just given to a program.
    pub(crate) fn given(url: &str, client_id: &str, given: &Value) -> Result<Self, ToolError> {
        let text = |name: &str| {
            let missing =
                || ToolError::new(ErrorCode::UpstreamError, format!("{url} gave no `{name}`; update haft there"));
            given[name].as_str().map(str::to_owned).ok_or_else(missing)
        };
        let lasts = Duration::from_secs(given["expires_in"].as_u64().unwrap_or(0));
        Ok(Self {
            url: url.to_owned(),
            client_id: client_id.to_owned(),
            access_token: text("access_token")?,
            refresh_token: text("refresh_token")?,
            expires_at: Timestamp::now().checked_add(lasts).unwrap_or(Timestamp::MAX),
        })
    }

    fn end_soon(&self) -> bool {
        Timestamp::now().checked_add(SOON).is_ok_and(|soon| soon >= self.expires_at)
    }
}

/// Somebody who is logged in at a gateway.
pub(crate) struct Login {
    path: PathBuf,
    tokens: Mutex<Tokens>,
}

impl Login {
    /// The login at an address; `None` where there is none.
    pub(crate) fn kept(data: &Path, url: &str) -> Result<Option<Self>> {
        let path = path_of(data, url);
        let Some(tokens) = read(&path)?.filter(|tokens| tokens.url == url) else { return Ok(None) };
        Ok(Some(Self { path, tokens: Mutex::new(tokens) }))
    }

    /// Keeps a new login for the commands to come.
    pub(crate) fn keep(data: &Path, tokens: &Tokens) -> Result<()> {
        let path = path_of(data, &tokens.url);
        if let Some(folder) = path.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("cannot make {}", folder.display()))?;
        }
        edits::replace(&path, &serde_json::to_string_pretty(tokens)?)
    }

    /// Forgets the login at an address, and gives what was kept of it.
    pub(crate) fn forget(data: &Path, url: &str) -> Result<Option<Tokens>> {
        let path = path_of(data, url);
        let kept = read(&path)?;
        for path in [lock_of(&path), path] {
            match fs::remove_file(&path) {
                Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                    return Err(err).with_context(|| format!("cannot remove {}", path.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(kept)
    }

    /// A token that counts now.
    pub(super) async fn access_token(&self) -> Result<String, ToolError> {
        if self.now().end_soon() {
            self.renew().await?;
        }
        Ok(self.now().access_token)
    }

    /// Gets new tokens. A refresh token counts once, so that one process at a time does this; whoever waited for another one
    /// takes what that one got.
    pub(super) fn renew(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move {
            let path = self.path.clone();
            let locked = tokio::task::spawn_blocking(move || lock(&path)).await;
            let _lock = locked.map_err(|err| broken(&err.into()))?.map_err(|err| broken(&err))?;
            let used = self.now();
            let Some(kept) = read(&self.path).map_err(|err| broken(&err))? else {
                return Err(ended(&used.url));
            };
            let kept = if kept.access_token == used.access_token { fetch(&kept).await? } else { kept };
            let text = serde_json::to_string_pretty(&kept).map_err(|err| broken(&err.into()))?;
            edits::replace(&self.path, &text).map_err(|err| broken(&err))?;
            *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = kept;
            Ok(())
        })
    }

    fn now(&self) -> Tokens {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// New tokens for the old ones.
async fn fetch(old: &Tokens) -> Result<Tokens, ToolError> {
    let client = Client::unknown(&old.url).map_err(|err| broken(&err))?;
    let fields =
        [("grant_type", "refresh_token"), ("refresh_token", &*old.refresh_token), ("client_id", &*old.client_id)];
    match client.post_form("/oauth/token", &fields).await {
        Ok(given) => Tokens::given(&old.url, &old.client_id, &given),
        Err(err) if err.body["error"] == "invalid_grant" => Err(ended(&old.url)),
        Err(err) => Err(*err.error),
    }
}

fn ended(url: &str) -> ToolError {
    ToolError::new(ErrorCode::Unauthorized, format!("the login at {url} has ended; run `haft login {url}`"))
}

fn broken(err: &anyhow::Error) -> ToolError {
    ToolError::new(ErrorCode::ExecutionError, format!("{err:#}"))
}

fn read(path: &Path) -> Result<Option<Tokens>> {
    let Some(text) = edits::read(path)? else { return Ok(None) };
    let unreadable = || format!("{} cannot be read; remove it and log in again", path.display());
    serde_json::from_str(&text).map(Some).with_context(unreadable)
}

/// Waits until no other process renews this login.
fn lock(path: &Path) -> Result<File> {
    let path = lock_of(path);
    let tried = || format!("cannot lock {}", path.display());
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).with_context(tried)?;
    file.lock().with_context(tried)?;
    Ok(file)
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

/// The file of a login, by its host and its port.
fn path_of(data: &Path, url: &str) -> PathBuf {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-.".contains(letter) { letter } else { '_' };
    data.join("servers").join(format!("{}.json", host.chars().map(plain).collect::<String>()))
}

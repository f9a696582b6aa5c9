//! Logging in at upstream servers by OAuth: whose token is sent where, refreshed by one process at a time.

mod attempt;
mod challenge;
mod fetch;
mod metadata;
mod tokens;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{Caller, Redactor, ToolError};
use haft_sandbox::web::WebClient;
use jiff::Timestamp;
use tokio::{
    sync::Mutex as Turns,
    time::{Instant, sleep},
};

pub use attempt::{BegunLogin, LoginAnswer, LoginAttempt, LoginWish, client_document};
pub(super) use challenge::Challenge;
pub use metadata::LoginDiscovery;
pub use tokens::LoginTokens;
use tokens::TokenRefusal;

/// How long one process has the turn to refresh a login: longer than the request may take.
const TURN: Duration = Duration::from_secs(30);
/// How long the others wait for it, and how often they look.
const WAIT: Duration = Duration::from_secs(35);
const LOOK: Duration = Duration::from_millis(50);

/// Where one login is kept, for all processes that use it.
pub trait LoginStore: Send + Sync {
    /// What is kept, and its revision.
    fn read(&self) -> BoxFuture<'_, Result<Option<(i64, LoginTokens)>, ToolError>>;

    /// Takes the turn to refresh it for so long; `false` when somebody else has it, or has had it by now.
    fn take_turn(&self, revision: i64, length: Duration) -> BoxFuture<'_, Result<bool, ToolError>>;

    /// Keeps it, if it is still at this revision, and ends the turn; `false` when it is not.
    fn save<'a>(&'a self, revision: i64, tokens: &'a LoginTokens) -> BoxFuture<'a, Result<bool, ToolError>>;
}

/// Who logs in at a server.
pub trait ServerLogins: Send + Sync {
    /// The person whose own login a caller uses there; `None` for one that everybody shares, and for who has none.
    fn person<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Option<String>, ToolError>>;
}

/// One login at a server, as its requests use it.
pub struct UpstreamLogin {
    client: Arc<WebClient>,
    server: String,
    store: Arc<dyn LoginStore>,
    refreshing: Turns<()>,
    /// Knows the tokens that were read last.
    redactor: Mutex<(i64, Redactor)>,
}

/// What comes of a 403.
pub(super) enum MissingRights {
    /// Another login may get them.
    AskForMore,
    /// The last one asked for them already.
    Refused,
}

impl UpstreamLogin {
    /// The login for the server with this address; its tokens are sent nowhere else.
    pub fn new(client: Arc<WebClient>, server: &str, store: Arc<dyn LoginStore>) -> Arc<Self> {
        let (refreshing, redactor) = (Turns::default(), Mutex::default());
        Arc::new(Self { client, server: server.to_owned(), store, refreshing, redactor })
    }

    /// Asks who gives tokens for the server with this address.
    pub async fn discover(client: &WebClient, server: &str) -> Result<LoginDiscovery, String> {
        LoginDiscovery::of(client, server).await
    }

    /// Takes the tokens out of what is told.
    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// The token that is sent now; `None` where there is none.
    pub(super) async fn token(self: &Arc<Self>) -> Result<Option<String>, ToolError> {
        let Some((_, tokens)) = self.read().await? else { return Ok(None) };
        let is_over = tokens.refresh_at.is_some_and(|at| at <= Timestamp::now());
        match tokens.access_token {
            Some(token) if is_over && tokens.refresh_token.is_some() => self.token_after(&token).await,
            None if tokens.refresh_token.is_some() => self.token_after("").await,
            token => Ok(token),
        }
    }

    /// The token after one that is over, or that the server does not take: what somebody has fetched by now, or a new one.
    pub(super) async fn token_after(self: &Arc<Self>, old: &str) -> Result<Option<String>, ToolError> {
        let _one_at_a_time = self.refreshing.lock().await;
        let until = Instant::now() + WAIT;
        loop {
            let Some((revision, tokens)) = self.read().await? else { return Ok(None) };
            if tokens.access_token.as_ref().is_some_and(|token| token != old) {
                return Ok(tokens.access_token);
            }
            if tokens.refresh_token.is_none() {
                if tokens.access_token.is_some() {
                    self.store.save(revision, &tokens.spent()).await?;
                }
                return Ok(None);
            }
            if self.store.take_turn(revision, TURN).await? {
                let us = Arc::clone(self);
                // It goes on when nobody waits for it any more: the old token may be used up by then.
                let refreshed = tokio::spawn(async move { us.refresh(revision, tokens).await });
                return refreshed.await.unwrap_or_else(|_| Err(unavailable("it was broken off")));
            }
            if Instant::now() > until {
                return Err(unavailable("another process has been fetching a token for too long"));
            }
            sleep(LOOK).await;
        }
    }

    async fn refresh(&self, revision: i64, tokens: LoginTokens) -> Result<Option<String>, ToolError> {
        let (kept, failed) = match tokens.refreshed(&self.client).await {
            Ok(given) => (tokens.with(given), None),
            Err(TokenRefusal::Refused(why)) => {
                tracing::info!(server = self.server, why, "a login at an upstream server is over");
                (tokens.spent(), None)
            }
            Err(TokenRefusal::Failed(why)) => (tokens, Some(why)),
        };
        let is_kept = self.store.save(revision, &kept).await?;
        match failed {
            Some(why) => Err(unavailable(&why)),
            None if is_kept => {
                self.note(revision + 1, &kept);
                Ok(kept.access_token)
            }
            // Somebody has logged in anew meanwhile, or out.
            None => Ok(self.read().await?.and_then(|(_, tokens)| tokens.access_token)),
        }
    }

    /// The server wants more rights than the login has.
    pub(super) async fn lacks(&self, wanted: &[String]) -> Result<MissingRights, ToolError> {
        let Some((revision, mut tokens)) = self.read().await? else { return Ok(MissingRights::AskForMore) };
        if wanted.iter().all(|scope| tokens.scopes.contains(scope)) {
            return Ok(MissingRights::Refused);
        }
        tokens.missing = wanted.to_vec();
        // Whoever was quicker wants the same, or has logged in anew.
        self.store.save(revision, &tokens).await?;
        Ok(MissingRights::AskForMore)
    }

    /// What is kept for this very server.
    async fn read(&self) -> Result<Option<(i64, LoginTokens)>, ToolError> {
        let found = self.store.read().await?.filter(|(_, tokens)| tokens.source.server == self.server);
        if let Some((revision, tokens)) = &found {
            self.note(*revision, tokens);
        }
        Ok(found)
    }

    fn note(&self, revision: i64, tokens: &LoginTokens) {
        let mut known = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != revision {
            *known = (revision, Redactor::knowing(Vec::new(), tokens.secrets()));
        }
    }
}

fn unavailable(why: &str) -> ToolError {
    let message = format!("no token could be fetched for it: {why}; call again in a moment");
    ToolError::new(haft_runtime::ErrorCode::Unavailable, message).having_done_nothing()
}

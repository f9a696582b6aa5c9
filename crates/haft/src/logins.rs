//! Logins at upstream MCP servers, as every house has them: where one is kept, how it is begun, ended and given up.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use haft_mcp::{BegunLogin, LoginAnswer, LoginAttempt, LoginStore, LoginTokens, LoginWish, UpstreamLogin};
use haft_platform::{LoginAt, LoginPerson, Platform};
use haft_runtime::{ErrorCode, Scope, ToolError};
use haft_sandbox::web::WebClient;
use jiff::Timestamp;

/// A login that the platform keeps, sealed.
pub(crate) struct KeptLogin {
    platform: Arc<Platform>,
    at: LoginAt,
}

impl KeptLogin {
    pub(crate) fn new(platform: &Arc<Platform>, at: LoginAt) -> Self {
        Self { platform: platform.clone(), at }
    }

    /// Whether there is one that the server with this address may take.
    pub(crate) async fn is_usable(&self, url: &str) -> Result<bool, ToolError> {
        Ok(self.read().await?.is_some_and(|(_, tokens)| tokens.is_usable(url)))
    }

    /// Begins a login at a server, for somebody who comes back with what the link gives them.
    pub(crate) async fn begin(
        &self,
        who: &LoginPerson,
        place: &LoginPlace,
        wish: impl AsyncFnOnce(&str) -> Result<LoginWish, ToolError>,
    ) -> Result<(String, Timestamp), ToolError> {
        let failed = |why: String| cannot_log_in(&place.name, &why);
        let discovered = UpstreamLogin::discover(&place.client, &place.url).await.map_err(failed)?;
        let wish = wish(&discovered.token_host()).await?;
        let before = self.read().await?.map(|(_, tokens)| tokens);
        let begun = discovered.begin(&place.client, &place.url, &wish, before.as_ref()).await.map_err(failed)?;
        let BegunLogin { url, state, attempt } = begun;
        let text = written(&attempt)?;
        let until = self.platform.begin_login(&self.at, who, (&state, &text)).await?;
        Ok((url, until))
    }

    /// Keeps the login that somebody comes back with.
    pub(crate) async fn finish(
        &self,
        place: &LoginPlace,
        attempt: LoginAttempt,
        answer: &LoginAnswer,
    ) -> Result<(), ToolError> {
        if attempt.server() != place.url {
            return Err(cannot_log_in(&place.name, "its address has changed since; begin again"));
        }
        let tokens = attempt.finish(&place.client, answer).await.map_err(|why| cannot_log_in(&place.name, &why))?;
        self.platform.set_login(&self.at, &written(&tokens)?).await
    }

    /// Gives the login up, here first; `false` when there was none. The authorization server is told where that is wanted.
    pub(crate) async fn end(&self, client: &WebClient) -> Result<bool, ToolError> {
        let tokens = self.read().await?;
        let removed = self.platform.remove_login(&self.at).await?;
        if let Some((_, tokens)) = tokens
            && let Err(why) = tokens.revoke(client).await
        {
            tracing::warn!(server = self.at.server, why, "the authorization server could not be told of a logout");
        }
        Ok(removed)
    }
}

/// A server that somebody logs in at.
pub(crate) struct LoginPlace {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) client: Arc<WebClient>,
}

/// What a login goes on with, for whoever began it, once.
pub(crate) async fn taken(
    platform: &Platform,
    scope: &Scope,
    who: &LoginPerson,
    answer: &LoginAnswer,
) -> Result<(LoginAt, LoginAttempt), ToolError> {
    let (at, text) = platform.take_login_attempt(scope, who, answer.state.as_deref().unwrap_or_default()).await?;
    Ok((at, serde_json::from_str(&text).map_err(|err| damaged(&err))?))
}

impl LoginStore for KeptLogin {
    fn read(&self) -> BoxFuture<'_, Result<Option<(i64, LoginTokens)>, ToolError>> {
        Box::pin(async {
            let Some((revision, text)) = self.platform.login(&self.at).await? else { return Ok(None) };
            Ok(Some((revision, serde_json::from_str(&text).map_err(|err| damaged(&err))?)))
        })
    }

    fn take_turn(&self, revision: i64, length: Duration) -> BoxFuture<'_, Result<bool, ToolError>> {
        Box::pin(self.platform.take_login_turn(&self.at, revision, length))
    }

    fn save<'a>(&'a self, revision: i64, tokens: &'a LoginTokens) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move { self.platform.save_login(&self.at, revision, &written(tokens)?).await })
    }
}

fn cannot_log_in(server: &str, why: &str) -> ToolError {
    ToolError::new(ErrorCode::UpstreamError, format!("nobody can log in at the MCP server `{server}`: {why}"))
}

fn written<T: serde::Serialize>(value: &T) -> Result<String, ToolError> {
    serde_json::to_string(value).map_err(|err| damaged(&err))
}

/// What is wrong with a login that is kept; never what is in it.
fn damaged(err: &serde_json::Error) -> ToolError {
    let message = format!("a login cannot be read (line {}, column {}); log in again", err.line(), err.column());
    ToolError::new(ErrorCode::Internal, message)
}

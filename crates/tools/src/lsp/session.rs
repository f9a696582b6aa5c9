//! One call's talk with a server: about one document, once the server is ready for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::WorkspacePath;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    client::{LanguageClient, Resend, lock},
    documents::{OpenDocument, PendingWork},
    error::LanguageServerError,
    handshake::LanguageCapabilities,
    server_state::Needs,
    servers::{LanguageServers, unavailable},
    text::{Position, TextPosition},
};
use crate::{blocking::stopped, workspace::Workspace};

/// What follows from a change has begun by then, if it ever does.
const SOON: Duration = Duration::from_millis(400);
/// How often a question is asked again when the server says that its files were changing.
const TRIES: u32 = 5;
/// The numbers by which a server says that.
const CHANGING: [i64; 2] = [-32801, -32802];

/// One call's talk with a server.
pub(crate) struct LanguageSession<'a> {
    pub(super) ctx: &'a ToolCtx,
    pub(super) workspace: &'a Workspace,
    pub(super) client: Arc<LanguageClient>,
    pub(super) offered: Arc<LanguageCapabilities>,
    pub(super) document: OpenDocument,
    /// Whether the server had read what the answer rests on.
    pub(super) ready: bool,
    limit: Duration,
    until: Instant,
}

impl<'a> LanguageSession<'a> {
    /// Brings the server in step with the files and waits until it is ready, or has been waited for long enough.
    pub(super) async fn begin(
        (ctx, workspace): (&'a ToolCtx, &'a Workspace),
        client: Arc<LanguageClient>,
        all: &LanguageServers,
        (place, needs): (&WorkspacePath, Needs),
    ) -> Result<Self, LanguageServerError> {
        let offered = client.offered(ctx, all.timeout).await?;
        let again = match (needs, &offered.pull) {
            (Needs::Checks, None) => Resend::IfOthersChanged,
            (Needs::Checks, Some(_)) | (Needs::Project, _) => Resend::Never,
        };
        let (told, asked, place) = (ctx.clone(), Arc::clone(&client), place.clone());
        let in_step =
            workspace.files.look(ctx, move |root, stop| Ok(asked.keep_in_step((root, &place), (&told, stop), again)));
        let document = in_step.await??;
        let left = ctx.deadline.saturating_duration_since(Instant::now());
        let until = Instant::now() + all.ready.min(left * 9 / 10);
        let mut talk = Self { ctx, workspace, client, offered, document, ready: false, limit: all.timeout, until };
        talk.ready = talk.settle(needs).await?;
        Ok(talk)
    }

    /// Refuses what the server does not say that it can.
    pub(super) fn need(&self, capability: &str, what: &str) -> Result<(), LanguageServerError> {
        if self.offered.can(capability) {
            return Ok(());
        }
        let message = format!("`{}` cannot tell {what}; `grep` finds words in every file", self.offered.name);
        Err(LanguageServerError::Told(unavailable(message)))
    }

    /// Asks about the document.
    pub(super) async fn ask(&self, method: &str, mut params: Value) -> Result<Value, LanguageServerError> {
        params["textDocument"] = json!({ "uri": self.document.address });
        let mut tries = 1;
        loop {
            match self.client.ask(self.ctx, (method, &params), self.limit).await {
                Err(LanguageServerError::Refused { code, .. }) if CHANGING.contains(&code) && tries < TRIES => {
                    sleep(SOON / 4 * tries).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// A spot of the document, as the server counts.
    pub(super) fn position(&self, spot: TextPosition) -> Result<Position, LanguageServerError> {
        Ok(self.document.text.position(spot, self.offered.units, &self.document.place.to_string())?)
    }

    /// An answer that is nothing of the kind that was asked for.
    pub(super) fn not_understood(&self, what: &str) -> LanguageServerError {
        let message = format!("`{}` answered with something that is not {what}", self.offered.name);
        LanguageServerError::Told(ToolError::new(ErrorCode::ExecutionError, message))
    }

    /// Waits until nothing is under way that the answer rests on.
    async fn settle(&self, needs: Needs) -> Result<bool, LanguageServerError> {
        let PendingWork { project, checks } = *lock(&self.client.unsettled);
        let soon = project || (checks && needs == Needs::Checks);
        let tells_status = self.client.heard.borrow().tells_status();
        let looked = !project || tells_status || self.has_looked().await?;
        let is_calm = self.calm(needs, soon).await?;
        if is_calm {
            let mut unsettled = lock(&self.client.unsettled);
            unsettled.project = false;
            unsettled.checks &= needs != Needs::Checks;
        }
        Ok(looked && is_calm)
    }

    /// Whether the server has said what it finds in the document, which it does only after it has read what it needs.
    async fn has_looked(&self) -> Result<bool, LanguageServerError> {
        if self.offered.pull.is_some() {
            let left = self.until.saturating_duration_since(Instant::now());
            return match timeout(left, self.pull()).await {
                Ok(Ok(_)) => Ok(true),
                Ok(Err(LanguageServerError::Refused { .. })) | Err(_) => Ok(false),
                Ok(Err(trouble)) => Err(trouble),
            };
        }
        self.is_published().await
    }

    /// Asks what the server finds in the document.
    pub(super) async fn pull(&self) -> Result<Value, LanguageServerError> {
        let identifier = self.offered.pull.clone().unwrap_or_default();
        let params = if identifier.is_null() { json!({}) } else { json!({ "identifier": identifier }) };
        self.ask("textDocument/diagnostic", params).await
    }

    /// Waits until the server has published what it finds in the document as it is now.
    pub(super) async fn is_published(&self) -> Result<bool, LanguageServerError> {
        let mut heard = self.client.heard.subscribe();
        let address = &self.document.address;
        let published = heard.wait_for(|heard| heard.is_current(address) || heard.ended.is_some());
        tokio::select! {
            heard = published => match heard.is_ok_and(|heard| heard.ended.is_none()) {
                true => Ok(true),
                false => Err(LanguageServerError::Broken),
            },
            () = sleep(self.until.saturating_duration_since(Instant::now())) => Ok(false),
            () = self.ctx.cancel.cancelled() => Err(LanguageServerError::Told(stopped())),
        }
    }

    /// Waits until nothing is under way; where something may begin soon, that it has not.
    async fn calm(&self, needs: Needs, soon: bool) -> Result<bool, LanguageServerError> {
        let mut heard = self.client.heard.subscribe();
        let enough = if soon { SOON } else { Duration::ZERO };
        let mut since = None;
        loop {
            let (is_calm, progress) = {
                let heard = heard.borrow_and_update();
                if heard.ended.is_some() {
                    return Err(LanguageServerError::Broken);
                }
                (heard.is_calm(needs), heard.progress())
            };
            let now = Instant::now();
            since = if is_calm { since.or(Some(now)) } else { None };
            if since.is_some_and(|since| now - since >= enough) {
                return Ok(true);
            }
            if now >= self.until {
                return Ok(false);
            }
            if let Some((part, words)) = progress {
                self.ctx.progress(part, format!("{}: {words}", self.offered.name));
            }
            let next = since.map_or(self.until, |since| (since + enough).min(self.until));
            tokio::select! {
                changed = heard.changed() => changed.map_err(|_| LanguageServerError::Broken)?,
                () = sleep(next - now) => {}
                () = self.ctx.cancel.cancelled() => return Err(LanguageServerError::Told(stopped())),
            }
        }
    }
}

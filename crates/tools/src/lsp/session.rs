//! One call's talk with a server about one document.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::WorkspacePath;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    asking::{LanguageOutput, LanguageTool},
    client::{LanguageClient, Resend, lock},
    documents::{OpenDocument, PendingWork},
    error::LanguageServerError,
    handshake::LanguageCapabilities,
    server_state::{LoadingProgress, Needs},
    servers::{LanguageServers, unavailable},
    text::{Position, TextPosition},
};
use crate::{blocking::stopped, workspace::Workspace};

/// What follows from a change has begun by then, if it ever does.
const SOON: Duration = Duration::from_millis(400);
/// How often a call tells of a server's progress at most.
const SELDOM: Duration = Duration::from_millis(250);
/// How long a server that is not ready may take for an early answer.
const EARLY: Duration = Duration::from_secs(2);
/// How long a server is waited for to say what it finds in a document; some never do.
const FIRST_LOOK: Duration = Duration::from_secs(15);
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
    /// How long the server is waited for to be ready.
    until: Instant,
    /// When progress was last told.
    told: Mutex<Option<Instant>>,
}

impl<'a> LanguageSession<'a> {
    /// Waits until the server has started, and brings it in step with the files.
    pub(super) async fn begin(
        (ctx, workspace): (&'a ToolCtx, &'a Workspace),
        client: Arc<LanguageClient>,
        all: &LanguageServers,
        (place, needs): (&WorkspacePath, Needs),
    ) -> Result<Self, LanguageServerError> {
        let left = ctx.deadline.saturating_duration_since(Instant::now()) * 9 / 10;
        // Nobody can ask again a server that ends with this call, so it gets all the time that the call has.
        let most = if workspace.commands.outlive_calls() { all.ready.min(left) } else { left };
        let until = Instant::now() + most;
        let known = client.heard.borrow().offered.clone();
        let offered = match known {
            Some(offered) => offered,
            None => {
                ctx.progress(None, format!("starting {}", client.server.command.join(" ")));
                client.offered(ctx, (until, all.timeout)).await?
            }
        };
        let again = match (needs, &offered.pull) {
            (Needs::Checks, None) => Resend::IfOthersChanged,
            (Needs::Checks, Some(_)) | (Needs::Project | Needs::Document, _) => Resend::Never,
        };
        let (told, asked, place) = (ctx.clone(), Arc::clone(&client), place.clone());
        let in_step =
            workspace.files.look(ctx, move |root, stop| Ok(asked.keep_in_step((root, &place), (&told, stop), again)));
        let document = in_step.await??;
        Ok(Self {
            ctx,
            workspace,
            client,
            offered,
            document,
            ready: false,
            limit: all.timeout,
            until,
            told: Mutex::default(),
        })
    }

    /// Asks what a tool asks, once the server is ready for it.
    pub(super) async fn answer<A: LanguageTool>(&mut self, input: &A::Input) -> Result<A::Output, LanguageServerError> {
        // A server that loads may be too busy now and then for what it could answer at once.
        while A::NEEDS == Needs::Document && Instant::now() < self.until {
            if let Some(answer) = self.early_answer::<A>(input).await? {
                self.ready = true;
                return Ok(answer);
            }
            let (is_calm, progress) = {
                let heard = self.client.heard.borrow();
                (heard.is_calm(Needs::Project), heard.progress())
            };
            if is_calm {
                break;
            }
            self.tell(progress);
            sleep(SOON).await;
        }
        self.ready = self.settle(A::NEEDS.max(Needs::Project)).await?;
        if self.ready {
            return match A::ask(self, input).await {
                // Its files have changed meanwhile.
                Err(LanguageServerError::Refused { code, .. }) if CHANGING.contains(&code) => {
                    Err(LanguageServerError::Loading)
                }
                answer => answer,
            };
        }
        match self.early_answer::<A>(input).await? {
            Some(answer) if !answer.found_nothing() => Ok(answer),
            Some(_) | None => Err(LanguageServerError::Loading),
        }
    }

    fn tell(&self, progress: LoadingProgress) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < SELDOM) {
            return;
        }
        if let Some(work) = progress.work {
            *told = Some(Instant::now());
            self.ctx.progress(progress.percentage, format!("{}: {work}", self.offered.name));
        }
    }

    /// What a server answers that is not ready; `None` where it does not.
    async fn early_answer<A: LanguageTool>(
        &mut self,
        input: &A::Input,
    ) -> Result<Option<A::Output>, LanguageServerError> {
        let left = self.ctx.deadline.saturating_duration_since(Instant::now());
        let limit = std::mem::replace(&mut self.limit, EARLY.min(left / 2));
        let answer = A::ask(self, input).await;
        self.limit = limit;
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(LanguageServerError::Late(_) | LanguageServerError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        let looked = looked || self.client.heard.borrow().is_current(&self.document.address);
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
                Ok(Err(LanguageServerError::Refused { .. } | LanguageServerError::Late(_))) | Err(_) => Ok(false),
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
        let until = self.until.min(Instant::now() + FIRST_LOOK);
        let mut heard = self.client.heard.subscribe();
        let address = &self.document.address;
        let published = heard.wait_for(|heard| heard.is_current(address) || heard.ended.is_some());
        tokio::select! {
            heard = published => match heard.is_ok_and(|heard| heard.ended.is_none()) {
                true => Ok(true),
                false => Err(LanguageServerError::Broken),
            },
            () = sleep(until.saturating_duration_since(Instant::now())) => Ok(false),
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
            self.tell(progress);
            let next = since.map_or(self.until, |since| (since + enough).min(self.until));
            tokio::select! {
                changed = heard.changed() => changed.map_err(|_| LanguageServerError::Broken)?,
                () = sleep(next - now) => {}
                () = self.ctx.cancel.cancelled() => return Err(LanguageServerError::Told(stopped())),
            }
        }
    }
}

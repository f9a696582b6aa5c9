//! What a server says of its own accord: progress, that its tools have changed, and what it asks in the middle of a call.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use haft_runtime::{CallId, ProgressPart, ToolCtx};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
        FormElicitationCapability, Implementation, ListRootsRequestMethod, ProgressNotificationParam, ProgressToken,
    },
    service::{NotificationContext, RequestContext},
};

use tokio::sync::Notify;

use super::{asking, secret_filter::SecretFilter};

/// Receives what one server says of its own accord. It offers forms, but neither models nor folders, so that a server that
/// asks for those is refused.
pub(super) struct Notifications {
    filter: Arc<SecretFilter>,
    /// The calls that were sent, or are about to be: a quick server asks before its request counts as sent.
    under_way: Mutex<HashMap<CallId, ToolCtx>>,
    /// Whom what is told of progress is for.
    listening: Mutex<HashMap<ProgressToken, ProgressListener>>,
    /// How many questions of the server wait for an answer.
    asking: AtomicUsize,
    changed: AtomicBool,
}

impl Notifications {
    pub(super) fn new(filter: Arc<SecretFilter>) -> Self {
        Self {
            filter,
            under_way: Mutex::default(),
            listening: Mutex::default(),
            asking: AtomicUsize::new(0),
            changed: AtomicBool::new(false),
        }
    }

    /// Whether the server waits for an answer, so that it is not it who is slow.
    pub(super) fn asks(&self) -> bool {
        self.asking.load(Ordering::SeqCst) > 0
    }

    /// The call that a question belongs to. Servers of the earlier era do not say, so it must be the only one.
    fn only_call(&self) -> Option<ToolCtx> {
        let calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut under_way = calls.values();
        under_way.next().filter(|_| under_way.next().is_none()).cloned()
    }

    /// From now on, and as long as this is held, the server may ask in the middle of the call.
    pub(super) fn expect<'a>(&'a self, ctx: &ToolCtx) -> UnderWay<'a> {
        let call = ctx.call_id.clone();
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(call.clone(), ctx.clone());
        UnderWay { notifications: self, call }
    }

    /// From now on a call hears of its progress; gives what tells that there was some.
    pub(super) fn listen_for(&self, token: ProgressToken, ctx: &ToolCtx) -> Arc<Notify> {
        let listener = ProgressListener { ctx: ctx.clone(), heard: Arc::default() };
        let heard = Arc::clone(&listener.heard);
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).insert(token, listener);
        heard
    }

    pub(super) fn forget(&self, token: &ProgressToken) {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    /// Whether the server has said that its tools have changed, since it was last asked here.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::SeqCst)
    }
}

/// Whom progress is told.
struct ProgressListener {
    ctx: ToolCtx,
    heard: Arc<Notify>,
}

/// A question of the server that waits for an answer.
struct OpenQuestion<'a>(&'a AtomicUsize);

impl<'a> OpenQuestion<'a> {
    fn count(open: &'a AtomicUsize) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(open)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call that a server may ask in the middle of.
pub(super) struct UnderWay<'a> {
    notifications: &'a Notifications,
    call: CallId,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.notifications.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
    }
}

impl ClientHandler for Notifications {
    fn get_info(&self) -> ClientConfig {
        let haft = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        let mut able = ClientCapabilities::default();
        able.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(able, haft)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(ctx) = self.only_call() else {
            let message = "it cannot be told which call this belongs to: none, or more than one is under way";
            return Err(ErrorData::invalid_request(message, None));
        };
        let _open = OpenQuestion::count(&self.asking);
        let refused = |error: haft_runtime::ToolError| ErrorData::invalid_params(error.message, None);
        tokio::select! {
            answer = asking::put(&ctx, &self.filter, None, request) => answer.map_err(refused),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("it was withdrawn", None)),
        }
    }

    #[expect(deprecated, reason = "servers of the earlier era still ask")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn on_progress(&self, heard: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(listener) = listening.get(&heard.progress_token) else { return };
        listener.heard.notify_one();
        let said = heard.message.map(|message| self.filter.text(&message).into_owned());
        let said = said.unwrap_or_else(|| format!("{} so far", heard.progress));
        match heard.total.filter(|total| *total > 0.0) {
            Some(total) => {
                listener.ctx.progress_of(ProgressPart { done: heard.progress.clamp(0.0, total), total }, said)
            }
            None => listener.ctx.progress(None, said),
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::SeqCst);
    }
}

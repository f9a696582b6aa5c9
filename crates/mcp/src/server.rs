//! Our tools as an MCP server: every request of the protocol, and what answers it.

mod answer;
mod asking;
mod brief;
mod callers;
mod calling;
mod changes;
mod conversation;
mod followed;
mod listing;
mod misread;
mod progress;
mod results;
mod tasks;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{AutoApprove, CallId, Catalog, Journal, Pipeline, Question, Questions, Scope};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, GetTaskParams,
        GetTaskResult, Implementation, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig, SubscriptionFilter,
        UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::{pin, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use asking::{MayApprove, QuestionListeners};
pub use callers::{Callers, ClientPeer};

use crate::{
    frame::Frames,
    stdio::{MessageReader, MessageWriter},
};

/// What a model is told of the server before it sees a tool.
const INSTRUCTIONS: &str = "Tools for the files, commands, history and code of one workspace. Every call is recorded. \
    What changes something may be asked about first: a call that answers `pending` goes on by itself once a person has \
    said yes; follow it with `wait_call` and do not repeat it. What a call changed can be taken back: by `undo_call` where it is \
    offered, or by a person with `haft undo`.";
/// How long a question is waited for.
const PATIENCE: Duration = Duration::from_secs(45);
/// The same for a client that hears of progress meanwhile.
const LONG_PATIENCE: Duration = Duration::from_secs(240);

/// How long calls under way may take to end by themselves once their client has closed its end.
const GRACE: Duration = Duration::from_millis(500);

/// Asks for a call to be stopped, wherever it runs.
pub type StopCall = Box<dyn Fn(&Scope, CallId) -> BoxFuture<'static, ()> + Send + Sync>;

/// What a server stands on.
pub struct ServerDeps {
    /// The line.
    pub pipeline: Pipeline,
    /// Which tools.
    pub catalog: Arc<dyn Catalog>,
    /// What is asked.
    pub questions: Arc<dyn Questions>,
    /// What is recorded.
    pub journal: Arc<dyn Journal>,
    /// Hears of the questions that calls of this server put.
    pub asked: Arc<QuestionListeners>,
    /// Whose a request is.
    pub callers: Arc<dyn Callers>,
    /// What may happen without asking.
    pub auto_approve: AutoApprove,
    /// What a yes that was given in the client counts for.
    pub may_approve: MayApprove,
    /// What a person is shown of a question.
    pub card: Box<dyn Fn(&Question) -> String + Send + Sync>,
    /// Asks for a call under way to be stopped, wherever it runs.
    pub stop: StopCall,
    /// What seals the state that clients carry for us; the same after a restart.
    pub key: [u8; 32],
}

/// The server. Cheap to clone; every connection gets one.
#[derive(Clone)]
pub struct Server {
    ground: Arc<ServerDeps>,
    codec: RequestStateCodec,
    /// The questions that their clients have put away, and are not put to them again.
    put_away: Arc<Mutex<BTreeSet<(CallId, u32)>>>,
    /// Calls and answers that are being seen through.
    under_way: TaskTracker,
    /// Cancelled when this server is about to end: what waits for a yes stays open for others.
    leaving: CancellationToken,
    /// Ends the calls that go on behind an answer.
    stop: CancellationToken,
}

impl Server {
    /// A server on this ground.
    pub fn new(ground: ServerDeps) -> Self {
        // The key is as long as its type says.
        let codec = RequestStateCodec::new_unchecked(ground.key);
        let (leaving, stop) = (CancellationToken::new(), CancellationToken::new());
        let (put_away, under_way) = (Arc::default(), TaskTracker::new());
        Self { ground: Arc::new(ground), codec, put_away, under_way, leaving, stop }
    }

    /// Hands back what waits for a yes. It must be told before anything cancels the calls.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    /// Speaks with one client until it is gone or this shall stop. What is under way then is ended and recorded.
    pub async fn speak(&self, reader: MessageReader, writer: MessageWriter, stop: &CancellationToken) {
        let end = stop.child_token();
        let frames = Frames::new(reader, writer, self.leaving.clone());
        // A client that says nothing, or goes away, has nothing to be told.
        if let Ok(running) = self.clone().serve_with_ct(frames, end.clone()).await {
            let served = running.waiting();
            pin!(served);
            tokio::select! {
                _ = &mut served => {}
                () = self.leaving.cancelled() => {
                    if timeout(GRACE, &mut served).await.is_err() {
                        end.cancel();
                        let _ended = served.await;
                    }
                }
            }
        }
        self.finish().await;
    }

    /// Ends calls that wait for what their client was asked, and waits for what is under way. Nothing more is begun.
    pub async fn finish(&self) {
        self.leave();
        self.stop.cancel();
        self.under_way.close();
        self.under_way.wait().await;
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_tasks()
            .build();
        let name = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let client = ClientPeer { name: String::new(), admitted: callers::admitted(&context.extensions) };
        let Ok(request) = self.request(client).await else { return };
        // It ends when the client is gone.
        drop(tokio::spawn(async move { changes::tell_peer(&request, &context.peer).await }));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = self.request(ClientPeer::of(context.request_context())).await?;
        changes::tell(&request, &context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.request(ClientPeer::of(&context)).await?;
        listing::page(&client, request.and_then(|request| request.cursor)).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Whoever waits for the end of this server waits for the record of this call.
        let _under_way = self.under_way.token();
        let client = self.request(ClientPeer::of(&context)).await?;
        calling::call(&client, request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.request(ClientPeer::of(&context)).await?;
        results::read(&client, &request.uri).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(misread::misread(&request))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.request(ClientPeer::of(&context)).await?;
        tasks::look(&client, &request.task_id, &context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.request(ClientPeer::of(&context)).await?;
        tasks::answer(&client, &request.task_id, &request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.request(ClientPeer::of(&context)).await?;
        tasks::cancel(&client, &request.task_id).await
    }
}

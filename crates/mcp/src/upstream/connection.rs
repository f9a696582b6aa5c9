//! A server that runs, and the conversation with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError, current_trace};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, InputRequiredResult,
        ListToolsRequest, PaginatedRequestParams, ProtocolVersion, Request, ServerResult,
    },
    service::{ClientInitializeError, Peer, PeerRequestOptions, RunningServiceCancellationToken, ServiceError},
};
use serde_json::Value;
use tokio::{net::UnixStream, sync::Notify, time::timeout};

use super::{
    asking, cause,
    child::{Child, StderrTail},
    definition::{Dropped, ToolDefinition},
    era::{self, UpstreamService},
    http::{CallChain, TraceHeader},
    notifications::Notifications,
    secret_filter::SecretFilter,
    server::{ServerDescription, Transport},
    wire::SocketTransport,
};

/// How long a server may take to list its tools.
const LIST: Duration = Duration::from_secs(30);
/// How old a list may be that a call is compared with, where the server does not say that it has changed.
const FRESH: Duration = Duration::from_secs(60);
/// How many pages and tools a server may list.
const MOST_PAGES: usize = 1000;
const MOST_TOOLS: usize = 20_000;
/// How often a server may ask before it ends a call.
const MOST_ROUNDS: usize = 20;

/// A server that runs.
pub(super) struct UpstreamConnection {
    filter: Arc<SecretFilter>,
    peer: Peer<RoleClient>,
    /// Taken when it ends.
    farewell: Mutex<Option<RunningServiceCancellationToken>>,
    notifications: Arc<Notifications>,
    /// Its process, where it runs here.
    child: Option<Child>,
    /// Why the conversation was broken off.
    broke: Arc<OnceLock<String>>,
    version: String,
    listed: Mutex<ToolSnapshot>,
}

struct ToolSnapshot {
    tools: BTreeMap<String, ToolDefinition>,
    at: Instant,
}

/// What a server answers to a call.
enum CallReply {
    Done(CallToolResult),
    /// It wants to know something first.
    Asks(InputRequiredResult),
}

/// Why a server did not answer.
pub(super) enum UpstreamError {
    /// It broke, and why.
    Broke(String),
    /// It cannot be reached, and why. It was sent nothing.
    Unreachable(String),
    /// It answered, with a no or with what is no answer.
    Refused(ToolError),
}

impl UpstreamConnection {
    /// Begins a conversation with a server, which has so long to answer, and asks for its tools.
    pub(super) async fn begin(
        filter: SecretFilter,
        transport: Transport,
        known: Option<&str>,
        patience: Duration,
    ) -> Result<(Self, ServerDescription), String> {
        let filter = Arc::new(filter);
        let (broke, notifications) = (Arc::new(OnceLock::new()), Arc::new(Notifications::new(Arc::clone(&filter))));
        let greeting = Greeting { known, patience };
        let (child, service) = greeting.begin(transport, &notifications, &broke).await?;
        let version = service.peer_info().map(|info| info.protocol_version.clone()).unwrap_or_default();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) {
            return Err(cause::of_versions(&[version]));
        }
        let connection = Self {
            filter,
            peer: service.peer().clone(),
            farewell: Mutex::new(Some(service.cancellation_token())),
            notifications,
            child,
            broke,
            version: version.to_string(),
            listed: Mutex::new(ToolSnapshot { tools: BTreeMap::new(), at: Instant::now() }),
        };
        // It ends with the conversation, which ends with the process or by `end`.
        drop(tokio::spawn(service.waiting()));
        match timeout(patience, connection.list()).await {
            Ok(Ok(description)) => Ok((connection, description)),
            Ok(Err(UpstreamError::Broke(why) | UpstreamError::Unreachable(why))) => Err(why),
            Ok(Err(UpstreamError::Refused(error))) => Err(format!("it does not list its tools: {}", error.message)),
            Err(_) => Err(connection.lists_too_slowly(patience)),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.child.as_ref().is_none_or(Child::is_alive)
            && !self.peer.is_transport_closed()
            && self.broke.get().is_none()
    }

    /// What the server now says of a tool, asked for anew when that may have changed; with the whole list if so.
    pub(super) async fn definition(
        &self,
        tool: &str,
    ) -> Result<(Option<ToolDefinition>, Option<ServerDescription>), UpstreamError> {
        let is_old = self.listed.lock().unwrap_or_else(PoisonError::into_inner).at.elapsed() > FRESH;
        let news = if self.notifications.take_changed() || is_old { Some(self.list().await?) } else { None };
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((listed.tools.get(tool).cloned(), news))
    }

    /// All tools, page by page. One that is broken costs only itself.
    pub(super) async fn list(&self) -> Result<ServerDescription, UpstreamError> {
        let before = self.listed.lock().unwrap_or_else(PoisonError::into_inner).tools.clone();
        // What is as it was has been looked at.
        let fault = |tool: &ToolDefinition| if before.get(&tool.name) == Some(tool) { None } else { tool.fault() };
        let (mut tools, mut dropped): (BTreeMap<String, ToolDefinition>, Vec<Dropped>) = Default::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = self.page(cursor.take()).await?;
            for value in page["tools"].as_array().into_iter().flatten() {
                match ToolDefinition::read(value) {
                    Ok(tool) if tools.contains_key(&tool.name) => {
                        let why = "it is listed twice, and the first counts".to_owned();
                        dropped.push(Dropped { name: tool.name, why });
                    }
                    Ok(tool) => match fault(&tool) {
                        Some(why) => dropped.push(Dropped { name: tool.name, why }),
                        None => drop(tools.insert(tool.name.clone(), tool)),
                    },
                    Err(broken) => dropped.push(broken),
                }
            }
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() || tools.len() > MOST_TOOLS {
                break;
            }
        }
        if cursor.is_some() {
            let why = format!("it lists more than {MOST_TOOLS} tools, or more than {MOST_PAGES} pages of them");
            return Err(UpstreamError::Refused(ToolError::new(ErrorCode::TooLarge, why)));
        }
        let listed = ToolSnapshot { tools: tools.clone(), at: Instant::now() };
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed;
        Ok(ServerDescription { version: self.version.clone(), tools: tools.into_values().collect(), dropped })
    }

    async fn page(&self, cursor: Option<String>) -> Result<Value, UpstreamError> {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let request = ListToolsRequest { params: Some(params), ..ListToolsRequest::default() };
        let asked = self.peer.send_request(ClientRequest::ListToolsRequest(request));
        let Ok(answer) = timeout(LIST, asked).await else {
            return Err(UpstreamError::Broke(self.lists_too_slowly(LIST)));
        };
        match answer {
            Ok(ServerResult::ListToolsResult(page)) => serde_json::to_value(page).map_err(|err| no_answer(&err)),
            // A page with a definition that is broken.
            Ok(ServerResult::CustomResult(page)) if page.0["tools"].is_array() => Ok(page.0),
            Ok(_) => Err(no_answer(&"a list of tools was asked for")),
            Err(err) => Err(self.trouble(err).await),
        }
    }

    fn lists_too_slowly(&self, limit: Duration) -> String {
        format!("it did not list its tools within {} s{}", limit.as_secs(), said(self.child.as_ref()))
    }

    /// Uses a tool, and passes on what the server asks meanwhile. It may be silent for so long.
    pub(super) async fn call(
        &self,
        ctx: &ToolCtx,
        (tool, input): (&str, &Value),
        idle: Duration,
    ) -> Result<CallToolResult, UpstreamError> {
        let arguments = input.as_object().cloned().unwrap_or_default();
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let _under_way = self.notifications.expect(ctx);
        for _ in 0..MOST_ROUNDS {
            match self.call_once(ctx, params.clone(), idle).await? {
                CallReply::Done(result) => return self.filter.answer(result).map_err(UpstreamError::Refused),
                CallReply::Asks(asked) => {
                    let inputs = asked.input_requests.unwrap_or_default();
                    let answers = asking::put_all(ctx, &self.filter, inputs).await.map_err(UpstreamError::Refused)?;
                    params.input_responses = Some(answers);
                    params.request_state = asked.request_state;
                }
            }
        }
        let message = format!("`{tool}` asked {MOST_ROUNDS} times in the middle of its work and came to no end");
        Err(UpstreamError::Refused(ToolError::new(ErrorCode::ExecutionError, message)))
    }

    /// Dropping it does not reach the server, so whoever stops waiting does it by `ctx.cancel`.
    async fn call_once(
        &self,
        ctx: &ToolCtx,
        params: CallToolRequestParams,
        idle: Duration,
    ) -> Result<CallReply, UpstreamError> {
        let mut request = Request::new(params);
        request
            .extensions
            .insert(CallChain(ctx.caller.via.calls.iter().cloned().chain([ctx.call_id.to_string()]).collect()));
        if let Some(trace) = current_trace() {
            request.extensions.insert(TraceHeader(trace.header()));
        }
        let request = ClientRequest::CallToolRequest(request);
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(err) => return Err(self.trouble(err).await),
        };
        let (id, token) = (handle.id.clone(), handle.progress_token.clone());
        let heard = self.notifications.listen_for(token.clone(), ctx);
        let answer = tokio::select! {
            answer = handle.await_response() => Ok(answer),
            stopped = self.silent_for(idle, &heard) => Err(stopped),
            () = ctx.cancel.cancelled() => Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled")),
        };
        self.notifications.forget(&token);
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(CallReply::Done(result)),
            Ok(Ok(ServerResult::InputRequiredResult(asked))) => Ok(CallReply::Asks(asked)),
            Ok(Ok(_)) => Err(no_answer(&"the result of a tool was asked for")),
            Ok(Err(err)) => Err(self.trouble(err).await),
            Err(stopped) => {
                let stop = CancelledNotificationParam::new(Some(id), Some("the call was stopped".to_owned()));
                let _ = timeout(Duration::from_millis(200), self.peer.notify_cancelled(stop)).await;
                Err(UpstreamError::Refused(stopped))
            }
        }
    }

    /// Returns when the server has told nothing of its progress for so long, unless it waits for an answer itself.
    async fn silent_for(&self, idle: Duration, heard: &Notify) -> ToolError {
        loop {
            let is_silent = timeout(idle, heard.notified()).await.is_err();
            if is_silent && !self.notifications.asks() {
                let (server, limit) = (&self.filter.name, idle.as_millis());
                let message = format!(
                    "the MCP server `{server}` said nothing for {limit}ms; `timeout` of its entry says how long it may be \
                     silent"
                );
                return ToolError::new(ErrorCode::Timeout, message);
            }
        }
    }

    /// Says goodbye, and waits until everything of it is dead.
    pub(super) async fn end(&self) {
        let farewell = self.farewell.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(farewell) = farewell {
            farewell.cancel();
        }
        if let Some(child) = &self.child {
            child.dismiss().await;
        }
    }

    async fn trouble(&self, err: ServiceError) -> UpstreamError {
        if let ServiceError::McpError(data) = &err {
            let error = ToolError::new(ErrorCode::ExecutionError, data.message.to_string());
            return UpstreamError::Refused(error.with("mcpCode", data.code.0));
        }
        if matches!(err, ServiceError::UnexpectedResponse) {
            return no_answer(&"it is to another question");
        }
        if self.child.is_some() {
            let otherwise = "it closed its output".to_owned();
            return UpstreamError::Broke(ended(self.child.as_ref(), self.broke.get(), otherwise).await);
        }
        // The next call begins anew: the server may be another by then.
        let why = self.broke.get_or_init(|| cause::of_request(&err)).clone();
        if cause::was_never_sent(&err) { UpstreamError::Unreachable(why) } else { UpstreamError::Broke(why) }
    }
}

/// How a conversation is begun.
struct Greeting<'a> {
    /// The version that the same command spoke before.
    known: Option<&'a str>,
    /// How long the server may take to answer.
    patience: Duration,
}

impl Greeting<'_> {
    /// Begins as the protocol wants it.
    async fn begin(
        &self,
        transport: Transport,
        notifications: &Arc<Notifications>,
        broke: &Arc<OnceLock<String>>,
    ) -> Result<(Option<Child>, UpstreamService), String> {
        let told =
            |err: &ClientInitializeError| format!("it did not answer as an MCP server: {}", cause::of_beginning(err));
        let (child, begun) = match transport {
            Transport::Process(process, socket) => {
                let tail = StderrTail::default();
                let child = Child::watch(process, &tail);
                let failed = |err: std::io::Error| format!("it cannot be talked with: {err}");
                socket.set_nonblocking(true).map_err(failed)?;
                let wire = SocketTransport::new(UnixStream::from_std(socket).map_err(failed)?, tail, Arc::clone(broke));
                let begun = era::begin(|| Ok(wire.clone()), notifications, self.known, told);
                (Some(child), timeout(self.patience, begun).await)
            }
            Transport::Http(endpoint) => {
                let begun = era::begin(|| endpoint.clone().transport(broke), notifications, self.known, told);
                (None, timeout(self.patience, begun).await)
            }
        };
        match begun {
            Ok(Ok(service)) => Ok((child, service)),
            Ok(Err(why)) => Err(ended(child.as_ref(), broke.get(), why).await),
            Err(_) => Err(format!("it did not answer within {} s{}", self.patience.as_secs(), said(child.as_ref()))),
        }
    }
}

/// Why the conversation ended. Where we did not break it off, the process has most often ended, which says more.
async fn ended(child: Option<&Child>, broke: Option<&String>, otherwise: String) -> String {
    let why = match (broke, child) {
        (Some(why), _) => why.clone(),
        (None, Some(child)) => child.end().await.unwrap_or(otherwise),
        (None, None) => otherwise,
    };
    format!("{why}{}", said(child))
}

fn said(child: Option<&Child>) -> String {
    child.map(Child::said).unwrap_or_default()
}

fn no_answer(why: &dyn std::fmt::Display) -> UpstreamError {
    UpstreamError::Refused(ToolError::new(
        ErrorCode::OutputInvalid,
        format!("its answer is none of the protocol's: {why}"),
    ))
}

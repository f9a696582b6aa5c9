//! Our tools as an MCP server, and the tools of upstream servers, in every era of the protocol. The only crate that
//! knows `rmcp`.

mod called;
mod frame;
mod http;
mod server;
mod sessions;
pub mod stdio;
mod upstream;

pub use http::{HttpService, LONGEST_MESSAGE, is_answer, misread, over_http};
pub use server::{Callers, ClientPeer, MayApprove, QuestionListeners, Server, ServerDeps, StopCall};
pub use sessions::Sessions;
pub use upstream::{
    BegunLogin, Dropped, Endpoint, EndpointLogin, EntryPlace, Launch, LaunchedServer, LoginAnswer, LoginAttempt,
    LoginDiscovery, LoginStore, LoginTokens, LoginWish, NEEDS_LOGIN, PATIENCE, PREFIX, PinDifference, PinStore,
    ServerDescription, ServerEvent, ServerListener, ServerLogins, ServerPins, ToolDefinition, Transport, Upstream,
    UpstreamLogin, UpstreamPlan, UpstreamServer, UpstreamSpec, Upstreams, client_document, tool_name, tools_of,
};

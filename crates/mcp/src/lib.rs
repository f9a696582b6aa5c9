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
    Dropped, Endpoint, EntryPlace, Launch, LaunchedServer, NEEDS_LOGIN, PATIENCE, PREFIX, PinDifference, PinStore,
    ServerDescription, ServerEvent, ServerListener, ServerPins, ToolDefinition, Transport, Upstream, UpstreamPlan,
    UpstreamServer, UpstreamSpec, Upstreams, tool_name, tools_of,
};

//! Our tools as an MCP server, and the tools of upstream servers, in every era of the protocol. The only crate that
//! knows `rmcp`.

mod called;
mod frame;
mod http;
mod server;
mod sessions;
pub mod stdio;
mod upstream;

pub use http::{HttpService, misread, over_http};
pub use server::{Asked, Callers, ClientPeer, MayApprove, Server, ServerDeps, Stop};
pub use upstream::{
    Contact, Definition, Difference, Dropped, Endpoint, Launch, Line, Listener, NEEDS_LOGIN, PATIENCE, PREFIX,
    PinStore, Pins, Report, Started, Upstream, UpstreamPlan, UpstreamServer, UpstreamSpec, Upstreams, held_as_new,
    tool_name, tools_of,
};

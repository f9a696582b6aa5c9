//! Our tools as an MCP server, and the tools of upstream servers, in every era of the protocol. The only crate that
//! knows `rmcp`.

mod upstream;

pub use upstream::{
    Contact, Definition, Difference, Dropped, Endpoint, Launch, Line, Listener, NEEDS_LOGIN, Pins, Upstream,
    UpstreamSpec, held, tool_name, tools_of,
};

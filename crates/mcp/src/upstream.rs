//! Upstream MCP servers become tools: started when they are first needed, held to what was accepted of them.

mod answer;
mod asking;
mod cause;
mod child;
mod connection;
mod definition;
mod ear;
mod http;
mod pins;
mod server;
mod servers;
mod tool;
mod voice;
mod wire;

pub use definition::{Definition, Dropped, tool_name};
pub use http::{Endpoint, NEEDS_LOGIN};
pub use pins::{Difference, Pins};
pub use server::{Contact, Launch, Line, Listener, PATIENCE, Report, Started, Upstream, UpstreamSpec};
pub use servers::{PREFIX, PinStore, UpstreamPlan, UpstreamServer, Upstreams};
pub use tool::{held_as_new, tools_of};

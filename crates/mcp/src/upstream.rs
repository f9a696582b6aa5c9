//! Upstream MCP servers become tools: started when they are first needed, held to what was accepted of them.

mod answer;
mod asking;
mod cause;
mod child;
mod connection;
mod definition;
mod entry_place;
mod era;
mod http;
mod login;
mod notifications;
mod pins;
mod secret_filter;
mod server;
mod servers;
mod tool;
mod wire;

pub use definition::{Dropped, ToolDefinition, tool_name};
pub use entry_place::EntryPlace;
pub use http::{Endpoint, EndpointLogin, NEEDS_LOGIN};
pub use login::{
    BegunLogin, LoginAnswer, LoginAttempt, LoginDiscovery, LoginStore, LoginTokens, LoginWish, ServerLogins,
    UpstreamLogin, client_document,
};
pub use pins::{PinDifference, ServerPins};
pub use server::{
    Launch, LaunchedServer, PATIENCE, ServerDescription, ServerEvent, ServerListener, Transport, Upstream, UpstreamSpec,
};
pub use servers::{PREFIX, PinStore, UpstreamPlan, UpstreamServer, Upstreams};
pub use tool::tools_of;

//! Our tools as an MCP server, in every era of the protocol. The only crate that knows `rmcp`.

mod frame;
mod http;
mod server;
pub mod stdio;

pub use http::HttpService;
pub use server::{Asked, Ground, MayApprove, Server};

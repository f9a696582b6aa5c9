//! Language servers, and the tools that ask them.

mod address;
mod asking;
mod client;
mod definition;
mod diagnosed;
mod diagnostics;
mod documents;
mod frame;
mod handshake;
mod heard;
mod hover;
mod launch;
mod located;
mod references;
mod replies;
mod running;
mod servers;
mod symbols;
mod talk;
mod text;
mod trouble;
mod watched;

pub(crate) use asking::LanguageServerTool;
pub(crate) use definition::GotoDefinition;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use hover::Hover;
pub(crate) use references::References;
pub(crate) use running::RunningServers;
pub use servers::{LanguageServer, LanguageServers};
pub(crate) use symbols::Symbols;

//! Language servers, and the tools that ask them.

mod address;
mod asking;
mod client;
mod definition;
mod diagnostics;
mod documents;
mod error;
mod file_location;
mod frame;
mod handshake;
mod hover;
mod launch;
mod look;
mod references;
mod replies;
mod running;
mod server_diagnostic;
mod server_state;
mod servers;
mod session;
mod symbols;
mod text;
mod watched;

pub(crate) use asking::LanguageServerTool;
pub(crate) use definition::GotoDefinition;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use hover::Hover;
pub(crate) use look::has_files;
pub(crate) use references::References;
pub(crate) use running::RunningServers;
pub use servers::{LanguageServer, LanguageServers};
pub(crate) use symbols::Symbols;

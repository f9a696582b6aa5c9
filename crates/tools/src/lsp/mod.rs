//! Language servers, and the tools that ask them.

mod address;
mod asking;
mod client;
mod definition;
mod desk;
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
mod servers;
mod symbols;
mod talk;
mod text;
mod trouble;
mod watched;

pub(crate) use asking::Asking;
pub(crate) use definition::Definition;
pub(crate) use desk::Desk;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use hover::Hover;
pub(crate) use references::References;
pub use servers::{LanguageServer, LanguageServers};
pub(crate) use symbols::Symbols;

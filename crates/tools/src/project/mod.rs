//! Tools that a project brings along: a manifest says what goes in and which command is run.

mod argument;
mod manifest;
mod output;
mod parameter;
mod project_tool;
mod script;
mod table;
mod variables;

pub use manifest::Manifest;
pub use project_tool::project_tool;
pub use script::{Script, Trusted, scripts};
pub use variables::FindSecret;

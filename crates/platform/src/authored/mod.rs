//! Tools that people write as data: what one says, how each kind works, what is changed of tools that are code, and how a
//! tenant's become a layer.

mod definition;
mod external;
mod http;
mod internal;
mod layer;
#[cfg(test)]
mod override_tests;
mod overrides;
mod patched;
pub(crate) mod placeholder;
mod referrers;
mod saved;
mod standing;
#[cfg(test)]
mod tests;

pub use definition::{AuthoredTool, ExecutionType};
pub use layer::AuthoredTools;
pub use overrides::ToolOverride;
pub use patched::PatchedTools;
pub use saved::{SavedContent, SavedTool, VersionView};
pub use standing::{ToolOrigin, ToolStanding};

//! Who can be asked to search the web.

mod brave;
mod exa;
mod provider;
mod searxng;
mod secret;

pub use provider::Provider;
pub(super) use provider::{Freshness, SearchClient, SearchQuery, SearchResult};
pub use secret::Secret;

use haft_sandbox::web::Url;

/// Somebody who searches the web, as the user's settings name them.
#[derive(Clone, Debug)]
pub struct SearchAccess {
    /// Whose language they speak.
    pub provider: Provider,
    /// Where they are.
    pub url: Url,
    /// What they know this user by.
    pub key: Option<Secret>,
}

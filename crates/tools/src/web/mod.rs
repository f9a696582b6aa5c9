//! Tools that read from the web.

mod access;
mod charset;
mod earlier;
mod fault;
mod fresh;
mod html;
mod listed;
mod search;
mod web_fetch;
mod web_search;

pub(crate) use access::Web;
pub use access::WebAccess;
pub use listed::{ListedSite, ListedSiteError};
pub use search::{Provider, SearchAccess, Secret};
pub(crate) use web_fetch::WebFetch;
pub(crate) use web_search::WebSearch;

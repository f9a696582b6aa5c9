//! Tools that read from the web.

mod access;
mod answer_cache;
mod answer_freshness;
mod charset;
mod fault;
mod html;
mod listed_site;
mod search;
mod web_fetch;
mod web_search;

pub(crate) use access::Web;
pub use access::WebAccess;
pub use listed_site::{ListedSite, ListedSiteError};
pub use search::{Provider, SearchAccess, Secret};
pub(crate) use web_fetch::WebFetch;
pub(crate) use web_search::WebSearch;

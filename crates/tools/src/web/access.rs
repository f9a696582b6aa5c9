//! What the web tools work with.

use std::time::Duration;

use haft_sandbox::web::{FetchLimits, WebClient, WebRules, WebTarget};

use super::{
    answer_cache::WebAnswerCache,
    answer_freshness::AnswerFreshness,
    listed_site::ListedSite,
    search::{SearchAccess, SearchClient},
};

/// What of the web may be reached, and how.
#[derive(Clone, Debug)]
pub struct WebAccess {
    /// What may be reached at all.
    pub rules: WebRules,
    /// How long hosts may take.
    pub limits: FetchLimits,
    /// What is read from unasked.
    pub allowlist: Vec<ListedSite>,
    /// How long a fetch may take when its call does not say.
    pub timeout: Duration,
    /// Who searches the web: `None` when nobody was chosen, and a sentence when the choice cannot be used.
    pub search: Option<Result<SearchAccess, String>>,
    /// The file in which the user chooses somebody, as people are told.
    pub settings_file: String,
}

impl Default for WebAccess {
    fn default() -> Self {
        Self {
            rules: WebRules::default(),
            limits: FetchLimits::default(),
            allowlist: Vec::new(),
            timeout: Duration::from_secs(30),
            search: None,
            settings_file: "haft.toml".to_owned(),
        }
    }
}

/// The web as a workspace's tools reach it.
#[derive(Debug)]
pub(crate) struct Web {
    pub(super) client: WebClient,
    pub(super) timeout: Duration,
    pub(super) search: Option<Result<SearchClient, String>>,
    pub(super) settings_file: String,
    pub(super) fresh: AnswerFreshness,
    pub(super) earlier: WebAnswerCache,
    allowlist: Vec<ListedSite>,
}

impl Web {
    pub(crate) fn new(access: WebAccess) -> Self {
        let limits = access.limits;
        Self {
            client: WebClient::new(access.rules, limits),
            timeout: access.timeout,
            settings_file: access.settings_file,
            search: access.search.map(|search| search.map(|search| SearchClient::new(search, limits))),
            fresh: AnswerFreshness::default(),
            earlier: WebAnswerCache::default(),
            allowlist: access.allowlist,
        }
    }

    /// Whether somebody can be asked to search.
    pub(crate) fn has_search(&self) -> bool {
        matches!(self.search, Some(Ok(_)))
    }

    /// Whether a URL is on the list of what is read from unasked.
    pub(super) fn lists(&self, target: &WebTarget) -> bool {
        self.allowlist.iter().any(|listed| listed.covers(target))
    }
}

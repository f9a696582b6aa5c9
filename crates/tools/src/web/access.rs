//! What the web tools work with.

use std::time::Duration;

use haft_sandbox::web::{Client, Limits, Rules, Target};

use super::{
    earlier::Earlier,
    fresh::Fresh,
    listed::Listed,
    search::{Search, SearchAccess},
};

/// What of the web may be reached, and how.
#[derive(Clone, Debug)]
pub struct WebAccess {
    /// What may be reached at all.
    pub rules: Rules,
    /// How long hosts may take.
    pub limits: Limits,
    /// What is read from unasked.
    pub allowlist: Vec<Listed>,
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
            rules: Rules::default(),
            limits: Limits::default(),
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
    pub(super) client: Client,
    pub(super) timeout: Duration,
    pub(super) search: Option<Result<Search, String>>,
    pub(super) settings_file: String,
    pub(super) fresh: Fresh,
    pub(super) earlier: Earlier,
    allowlist: Vec<Listed>,
}

impl Web {
    pub(crate) fn new(access: WebAccess) -> Self {
        let limits = access.limits;
        Self {
            client: Client::new(access.rules, limits),
            timeout: access.timeout,
            settings_file: access.settings_file,
            search: access.search.map(|search| search.map(|search| Search::new(search, limits))),
            fresh: Fresh::default(),
            earlier: Earlier::default(),
            allowlist: access.allowlist,
        }
    }

    /// Whether somebody can be asked to search.
    pub(crate) fn has_search(&self) -> bool {
        matches!(self.search, Some(Ok(_)))
    }

    /// Whether a URL is on the list of what is read from unasked.
    pub(super) fn lists(&self, target: &Target) -> bool {
        self.allowlist.iter().any(|listed| listed.covers(target))
    }
}

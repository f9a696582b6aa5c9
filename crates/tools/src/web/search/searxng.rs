//! SearXNG's language: `GET /search` with `format=json`, and no key.

use haft_sandbox::web::Method;
use serde_json::Value;

use super::{
    Freshness, SearchQuery, SearchResult, Secret,
    provider::{ProviderRequest, SearchProvider, text, text_or_none},
};

pub(super) struct Searxng;

impl SearchProvider for Searxng {
    fn question(&self, wanted: &SearchQuery<'_>, _key: Option<&Secret>) -> ProviderRequest {
        let query = wanted.site.map_or(wanted.query.to_owned(), |site| format!("{} site:{site}", wanted.query));
        let mut parameters = vec![("q", query), ("format", "json".to_owned())];
        if let Some(freshness) = wanted.freshness {
            let word = match freshness {
                Freshness::Day => "day",
                Freshness::Week => "week",
                Freshness::Month => "month",
                Freshness::Year => "year",
            };
            parameters.push(("time_range", word.to_owned()));
        }
        ProviderRequest { method: Method::GET, path: "search", parameters, key_header: None, body: None }
    }

    fn results(&self, answer: &Value) -> Option<Vec<SearchResult>> {
        let found = |result: &Value| SearchResult {
            title: text(&result["title"]),
            url: text(&result["url"]),
            snippet: text(&result["content"]),
            published_at: text_or_none(&result["publishedDate"]),
            score: result["score"].as_f64(),
        };
        Some(answer["results"].as_array()?.iter().map(found).collect())
    }

    fn when_refused(&self) -> &'static str {
        "add `json` to `search.formats` in the settings of that SearXNG, which answers only in HTML by default"
    }
}

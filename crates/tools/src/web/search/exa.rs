//! Exa's language: `POST /search`, the key in `x-api-key`.

use haft_sandbox::web::Method;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::{
    Freshness, SearchQuery, SearchResult, Secret,
    provider::{ProviderRequest, SearchProvider, text, text_or_none},
};

/// How many letters of a page stand for it where nothing better does.
const SNIPPET: usize = 300;

pub(super) struct Exa;

impl SearchProvider for Exa {
    fn question(&self, wanted: &SearchQuery<'_>, _key: Option<&Secret>) -> ProviderRequest {
        let mut body = json!({
            "query": wanted.query,
            "numResults": wanted.number,
            "contents": { "highlights": { "numSentences": 2, "highlightsPerUrl": 1 } },
        });
        if let Some(site) = wanted.site {
            body["includeDomains"] = json!([site]);
        }
        if let Some(freshness) = wanted.freshness {
            let hours = match freshness {
                Freshness::Day => 24,
                Freshness::Week => 7 * 24,
                Freshness::Month => 31 * 24,
                Freshness::Year => 366 * 24,
            };
            let since = Timestamp::now().checked_sub(hours.hours()).unwrap_or(Timestamp::UNIX_EPOCH);
            body["startPublishedDate"] = json!(format!("{since:.3}"));
        }
        ProviderRequest {
            method: Method::POST,
            path: "search",
            parameters: Vec::new(),
            key_header: Some("x-api-key"),
            body: Some(body),
        }
    }

    fn results(&self, answer: &Value) -> Option<Vec<SearchResult>> {
        let found = |result: &Value| {
            let page = || text(&result["text"]).chars().take(SNIPPET).collect();
            let words = text_or_none(&result["highlights"][0]).or_else(|| text_or_none(&result["summary"]));
            SearchResult {
                title: text(&result["title"]),
                url: text(&result["url"]),
                snippet: words.unwrap_or_else(page),
                published_at: text_or_none(&result["publishedDate"]),
                score: result["score"].as_f64(),
            }
        };
        Some(answer["results"].as_array()?.iter().map(found).collect())
    }
}

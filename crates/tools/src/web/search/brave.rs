//! Brave's language: `GET /res/v1/web/search`, the key in `x-subscription-token`.

use haft_sandbox::web::Method;
use serde_json::Value;

use super::{
    Freshness, SearchQuery, SearchResult, Secret,
    provider::{ProviderRequest, SearchProvider, text, text_or_none},
};

pub(super) struct Brave;

impl SearchProvider for Brave {
    fn question(&self, wanted: &SearchQuery<'_>, _key: Option<&Secret>) -> ProviderRequest {
        let query = wanted.site.map_or(wanted.query.to_owned(), |site| format!("{} site:{site}", wanted.query));
        let mut parameters = vec![
            ("q", query),
            ("count", wanted.number.to_string()),
            // Without this, words that were searched for come in marks.
            ("text_decorations", "false".to_owned()),
        ];
        if let Some(freshness) = wanted.freshness {
            let word = match freshness {
                Freshness::Day => "pd",
                Freshness::Week => "pw",
                Freshness::Month => "pm",
                Freshness::Year => "py",
            };
            parameters.push(("freshness", word.to_owned()));
        }
        let key_header = Some("x-subscription-token");
        ProviderRequest { method: Method::GET, path: "res/v1/web/search", parameters, key_header, body: None }
    }

    fn results(&self, answer: &Value) -> Option<Vec<SearchResult>> {
        let found = |result: &Value| SearchResult {
            title: text(&result["title"]),
            url: text(&result["url"]),
            snippet: text(&result["description"]),
            published_at: text_or_none(&result["page_age"]),
            score: None,
        };
        // An answer without any results has no such part.
        if answer["web"].is_null() && answer["type"] == "search" {
            return Some(Vec::new());
        }
        Some(answer["web"]["results"].as_array()?.iter().map(found).collect())
    }
}

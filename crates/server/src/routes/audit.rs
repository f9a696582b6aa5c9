//! The audit log of a tenant.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use haft_platform::{AuditAction, AuditFilter, AuditView, Permission};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ListPage, PageQuery};
use crate::{
    problem::Problem,
    route::{Asked, Route, RouteAccess, raw_route_of},
};

/// What a list of one row a line is.
const JSON_LINES: &str = "application/x-ndjson";

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    let read = RouteAccess::Needs(Permission::AuditRead);
    let what = "Lists administrative acts, newest first; as JSON Lines with `format=jsonl`.";
    vec![raw_route_of::<ListPage<AuditView>, _, _, _>(Method::GET, "/api/audit", read, what, list)]
}

/// Which acts are wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Acts of this kind, such as `key.added`.
    action: Option<String>,
    /// By whom, as `person:ID` or `key:ID`.
    by: Option<String>,
    /// On what, as `kind:id`.
    on: Option<String>,
    /// Not before this time.
    since: Option<String>,
    /// How many, 50 by default and 200 at most.
    limit: Option<u32>,
    /// What the page before gave as `next`.
    after: Option<String>,
    /// `json`, or `jsonl` for one row a line.
    format: Option<String>,
}

impl AuditQuery {
    fn filter(&self) -> Result<AuditFilter, Problem> {
        let unknown = |word: &String| {
            let all: Vec<&str> = AuditAction::ALL.iter().map(|action| action.word()).collect();
            Problem::mistake(format!("there is no act `{word}`; there are {}", all.join(", ")))
        };
        let action = self.action.as_ref().map(|word| AuditAction::parse(word).ok_or_else(|| unknown(word)));
        let time = |text: &String| text.parse::<Timestamp>().map_err(|_| Problem::mistake("`since` is no time"));
        let row = |text: &String| text.parse().map_err(|_| Problem::mistake("`after` is nothing that a page gave"));
        Ok(AuditFilter {
            action: action.transpose()?,
            by: self.by.clone(),
            on: self.on.clone(),
            since: self.since.as_ref().map(time).transpose()?,
            before: self.after.as_ref().map(row).transpose()?,
            limit: PageQuery { limit: self.limit, after: None }.limit()?,
        })
    }

    fn wants_lines(&self, headers: &HeaderMap) -> Result<bool, Problem> {
        let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
        match self.format.as_deref() {
            None => Ok(accepted.is_some_and(|accepted| accepted.contains(JSON_LINES))),
            Some("json") => Ok(false),
            Some("jsonl") => Ok(true),
            Some(_) => Err(Problem::mistake("`format` is `json` or `jsonl`")),
        }
    }
}

/// One page of acts. As JSON Lines it is the same page; the header `X-Next` then leads to the next one.
async fn list(asked: Asked<AuditQuery, Body>) -> Result<Response, Problem> {
    let mut filter = asked.query.filter()?;
    let lines = asked.query.wants_lines(&asked.headers)?;
    let wanted = filter.limit as usize;
    filter.limit += 1;
    let mut items = asked.app.platform.audit(&asked.caller()?.scope, &filter).await?;
    let next = items.get(wanted).map(|_| items[wanted - 1].seq.to_string());
    items.truncate(wanted);
    let mut response = if lines {
        let text: String = items.iter().map(|item| serde_json::json!(item).to_string() + "\n").collect();
        ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON_LINES))], text).into_response()
    } else {
        axum::Json(ListPage { items, next: next.clone() }).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        headers.insert("x-next", next);
    }
    Ok(response)
}

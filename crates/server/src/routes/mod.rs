//! Every route, one line each.

mod approval_card;
mod approval_rules;
mod approvals;
mod audit;
mod authored;
mod batch;
mod calls;
mod changes;
mod events;
mod grants;
mod health;
mod keys;
mod me;
mod media;
mod oauth;
mod page;
mod people;
mod policy;
mod receipts;
mod remembered_yes;
mod results;
mod secrets;
pub(crate) mod servers;
mod sessions;
mod story;
mod tenants;
mod tool_runs;
mod tools;
mod workspaces;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{problem::Problem, route::Route};

/// Every route there is; each noun lists its own.
pub(crate) fn all() -> Vec<Route> {
    let nouns = [
        health::routes(),
        page::routes(),
        me::routes(),
        oauth::routes(),
        keys::routes(),
        people::routes(),
        tenants::routes(),
        audit::routes(),
        workspaces::routes(),
        secrets::routes(),
        media::routes(),
        sessions::routes(),
        tools::routes(),
        authored::routes(),
        servers::routes(),
        tool_runs::routes(),
        policy::routes(),
        grants::routes(),
        calls::routes(),
        story::routes(),
        receipts::routes(),
        changes::routes(),
        batch::routes(),
        results::routes(),
        events::routes(),
        approvals::routes(),
        remembered_yes::routes(),
        approval_rules::routes(),
    ];
    nouns.into_iter().flatten().collect()
}

/// Which part of a list is wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct PageQuery {
    /// How many, 50 by default and 200 at most.
    pub(crate) limit: Option<u32>,
    /// What the page before gave as `next`.
    pub(crate) after: Option<String>,
}

impl PageQuery {
    /// How many are wanted.
    pub(crate) fn limit(&self) -> Result<u32, Problem> {
        match self.limit {
            None => Ok(50),
            Some(limit @ 1..=200) => Ok(limit),
            Some(_) => Err(Problem::mistake("`limit` is a number from 1 to 200")),
        }
    }
}

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct ListPage<T> {
    /// What is on it.
    pub(crate) items: Vec<T>,
    /// What leads to the next one; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl<T> ListPage<T> {
    /// All of a list that is never long.
    pub(crate) fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }

    /// The part of a sorted list that is wanted; `key` is what a cursor names.
    pub(crate) fn cut(items: Vec<T>, query: &PageQuery, key: impl Fn(&T) -> String) -> Result<Self, Problem> {
        let limit = query.limit()? as usize;
        let behind = |item: &T| query.after.as_ref().is_none_or(|after| key(item) > *after);
        let mut items: Vec<T> = items.into_iter().filter(behind).collect();
        let next = items.get(limit).map(|_| key(&items[limit - 1]));
        items.truncate(limit);
        Ok(Self { items, next })
    }
}

/// Nothing but that it is done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// Always `true`.
    pub(crate) done: bool,
}

/// It is done.
pub(crate) const DONE: Done = Done { done: true };

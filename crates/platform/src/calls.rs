//! Which calls somebody sees.

use haft_runtime::{CallEvent, CallId, Caller, Scope, Source, ToolError, Within};
pub use haft_store::{CallFilter, CallRow};
use jiff::Timestamp;

use crate::{Permission, Platform};

/// How many calls are passed over for one page of those that are wanted.
const MOST_PASSED_OVER: usize = 2000;

/// What a wanted call is part of, and through which door it came. What is absent limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// The door.
    pub source: Option<Source>,
    /// The agent that made it.
    pub agent: Option<String>,
    /// The space that it belongs to.
    pub space: Option<String>,
}

impl CallOrigin {
    fn is_of(&self, row: &CallRow) -> bool {
        let is_part = |wanted: &Option<String>, part: &Option<String>| wanted.is_none() || wanted == part;
        self.source.is_none_or(|source| source == row.source)
            && is_part(&self.agent, &row.via.agent)
            && is_part(&self.space, &row.via.space)
    }
}

impl Platform {
    /// Calls, newest first, and where the next page begins: everybody's for those who may see them, else one's own.
    pub async fn calls(
        &self,
        caller: &Caller,
        (within, origin): (&Within, &CallOrigin),
        filter: &CallFilter,
    ) -> Result<(Vec<CallRow>, Option<CallId>), ToolError> {
        let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let sees_all = caller.permissions.allow(Permission::CallsTeamRead.word());
        let (mut found, mut looked, mut filter) = (Vec::new(), 0, filter.clone());
        loop {
            let page = self.store.calls(&caller.scope, within, &filter).await?;
            let is_last = page.len() < wanted;
            let end = page.last().map(|row| row.id.clone());
            looked += page.len();
            let is_seen = |row: &CallRow| sees_all || row.asked_by.id == caller.id;
            found.extend(page.into_iter().filter(|row| is_seen(row) && origin.is_of(row)));
            if found.len() > wanted {
                found.truncate(wanted);
            }
            let next = found.get(wanted.saturating_sub(1)).map(|row: &CallRow| row.id.clone());
            if found.len() == wanted && wanted > 0 {
                return Ok((found, next));
            }
            if is_last || end.is_none() {
                return Ok((found, None));
            }
            if looked >= MOST_PASSED_OVER {
                return Ok((found, end));
            }
            filter.before = end;
        }
    }

    /// What happened to a call, each with its number and its time.
    pub async fn events_of(&self, scope: &Scope, call: &CallId) -> Result<Vec<(i64, Timestamp, CallEvent)>, ToolError> {
        Ok(self.store.events(scope, call).await?)
    }

    /// The calls that come from a call or took a turn with what it staged, oldest first.
    pub async fn relatives_of(&self, scope: &Scope, call: &CallId) -> Result<Vec<CallRow>, ToolError> {
        Ok(self.store.relatives(scope, call).await?)
    }
}

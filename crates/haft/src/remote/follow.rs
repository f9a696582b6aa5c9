//! The calls of a gateway as they ask and end.

use std::collections::{HashMap, VecDeque};

use anyhow::Result;
use haft_runtime::{CallId, CallState};
use haft_store::CallFilter;

use super::{Remote, client::query, events::RemoteEvents};
use crate::backend::ListedCall;

/// What tells that a call has begun to wait, or has ended.
const TELLING: &str = "tool.needs_approval,tool.asks,tool.pending,tool.completed,tool.failed,tool.cancelled,tool.rejected,\
                       tool.interrupted,changes.committed,changes.undone";
/// How many of the last calls are looked at when something has happened.
const LOOK_BACK: u32 = 50;

/// Tells every call when it asks and when it ends, each once.
pub(crate) struct RemoteFollower<'a> {
    remote: &'a Remote,
    filter: CallFilter,
    events: RemoteEvents<'a>,
    /// How each call stood when it was told.
    told: HashMap<CallId, (CallState, Option<String>)>,
    next: VecDeque<ListedCall>,
}

impl<'a> RemoteFollower<'a> {
    pub(crate) async fn new(remote: &'a Remote, filter: &CallFilter) -> Result<Self> {
        let events = RemoteEvents::new(&remote.client, query("/api/events", &[("types", Some(TELLING.to_owned()))]));
        let filter = filter.clone();
        let mut follower = Self { remote, filter, events, told: HashMap::new(), next: VecDeque::new() };
        follower.look(follower.filter.limit).await?;
        Ok(follower)
    }

    /// The next call that asks or ends; waits for one.
    pub(crate) async fn next(&mut self) -> Result<ListedCall> {
        loop {
            if let Some(call) = self.next.pop_front() {
                return Ok(call);
            }
            self.events.next().await?;
            self.look(LOOK_BACK).await?;
        }
    }

    async fn look(&mut self, limit: u32) -> Result<()> {
        let filter = CallFilter { limit, ..self.filter.clone() };
        for call in self.remote.calls(&filter).await?.into_iter().rev() {
            let (state, status) = (call.row.state, call.row.status.clone());
            let is_under_way = matches!(state, CallState::Preparing | CallState::Executing);
            if !is_under_way && self.told.insert(call.row.id.clone(), (state, status.clone())) != Some((state, status))
            {
                self.next.push_back(call);
            }
        }
        Ok(())
    }
}

//! What happens in a tenant, as it happens.

use haft_runtime::{CallId, Scope, ToolError};
pub use haft_store::{EventStream, EventsOf, JournalEvent, StreamItem, ToldEvent};

use crate::Platform;

impl Platform {
    /// Hears every event of a tenant, or of one thing in it, after the event with this number; `None` begins now.
    pub async fn listen(&self, scope: &Scope, of: EventsOf, after: Option<i64>) -> Result<EventStream, ToolError> {
        Ok(self.store.listen(scope, of, after).await?)
    }

    /// The number of the last event of a call; 0 where there is none.
    pub async fn last_event_of(&self, scope: &Scope, call: &CallId) -> Result<i64, ToolError> {
        Ok(self.store.events(scope, call).await?.last().map_or(0, |(seq, _, _)| *seq))
    }
}

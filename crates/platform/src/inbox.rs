//! What reached callers after they had stopped waiting for it.

use haft_runtime::{CallId, Caller, LateResult, Scope, ToolError};
pub use haft_store::{InboxItem, InboxItemId, InboxOrder, InboxPage, InboxState};

use crate::Platform;

impl Platform {
    /// The items of a caller's own inbox.
    pub async fn inbox(&self, caller: &Caller, page: &InboxPage) -> Result<Vec<InboxItem>, ToolError> {
        Ok(self.store.inbox(caller, page).await?)
    }

    /// Puts an item of a caller's own inbox away; `None` where there is no such item.
    pub async fn consume(&self, caller: &Caller, item: &InboxItemId) -> Result<Option<InboxItem>, ToolError> {
        Ok(self.store.consume(caller, item).await?)
    }

    /// The result of a call that came after it had timed out.
    pub async fn late_result(&self, scope: &Scope, call: &CallId) -> Result<Option<LateResult>, ToolError> {
        Ok(self.store.late_result(scope, call).await?)
    }
}

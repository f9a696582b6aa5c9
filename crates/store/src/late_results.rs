//! Results that came after their calls had timed out. The calls themselves stay as they are.

use std::sync::Arc;

use haft_runtime::{CallId, CallRecord, CallState, Entry, LateResult, Scope};

use crate::{
    Store, StoreError,
    batch::StoreWrite,
    columns::{Columns, tenant},
    inbox::InboxRow,
    journal::of_call,
    journal_write::JournalWrite,
    sql::Statement,
};

/// A late result, ready to be written with its event and the item in its caller's inbox.
pub(crate) struct LateWrite {
    pub(crate) entry: JournalWrite,
    claim: Statement,
    inbox: Statement,
}

/// The first one counts, and none comes before its call has ended.
const KEEP: &str = "insert into late_results (tenant, call, body, given_by, given_at) \
                    select $1, $2, $3, $4, $5 where exists (select 1 from calls where tenant = $1 and id = $2) \
                    on conflict (tenant, call) do nothing returning 1 as kept";
const FIND: &str = "select body, given_by, given_at from late_results where tenant = $1 and call = $2";

impl LateWrite {
    fn new(owner: &str, call: &CallRecord, late: &LateResult) -> Result<Self, StoreError> {
        let entry = Entry {
            call: call.call.clone(),
            via: Arc::new(call.opening.caller.via.clone()),
            opening: None,
            state: CallState::Ended,
            turn: None,
            outcome: None,
            whole_output: None,
            events: vec![(late.at, late.event(call))],
            result_of: None,
        };
        let claim = of_call(KEEP, &call.scope, &call.call)
            .bind(serde_json::to_string(&late.submission)?)
            .bind(serde_json::to_string(&late.by)?)
            .bind(late.at.as_microsecond());
        Ok(Self {
            entry: JournalWrite::new(&call.scope, owner, &entry)?,
            claim,
            inbox: InboxRow::of_late(call, late)?.insert(tenant(&call.scope), &call.opening.caller),
        })
    }

    /// What decides whether it counts.
    pub(crate) fn claim(&self) -> Statement {
        self.claim.clone()
    }

    /// What puts it into the caller's inbox.
    pub(crate) fn inbox(&self) -> Statement {
        self.inbox.clone()
    }
}

impl Store {
    /// The result that came after a call had timed out.
    pub async fn late_result(&self, scope: &Scope, call: &CallId) -> Result<Option<LateResult>, StoreError> {
        let Some(row) = self.read_one(of_call(FIND, scope, call)).await? else { return Ok(None) };
        let columns = Columns { of: call.as_str(), row: &row };
        Ok(Some(LateResult {
            submission: columns.json("body")?,
            by: columns.json("given_by")?,
            at: columns.time("given_at")?,
        }))
    }

    /// Keeps one; `false` means that there is one already.
    pub(crate) async fn keep_late_result(&self, call: &CallRecord, late: &LateResult) -> Result<bool, StoreError> {
        let write = LateWrite::new(self.owner(), call, late)?;
        self.queue().write(StoreWrite::Late(Box::new(write))).await
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_late_results() {
        crate::schema::tests::assert_quick(&[super::KEEP, super::FIND]);
    }
}

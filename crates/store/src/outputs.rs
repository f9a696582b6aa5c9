//! The whole outputs of calls whose envelope holds only head and tail.

use haft_runtime::{CallId, End, Outcome, Scope, ToolOutput};

use crate::{Store, StoreError, columns::Columns, journal::of_call, sql::Statement};

const KEEP: &str = "insert into outputs (tenant, call, body) values ($1, $2, $3) \
                    on conflict (tenant, call) do update set body = excluded.body";
const FIND: &str = "select body from outputs where tenant = $1 and call = $2";

/// What writes the output of a call.
pub(crate) fn keep(tenant: &str, call: &str, body: &[u8]) -> Statement {
    Statement::new(KEEP).bind(tenant).bind(call).bind(body.to_vec())
}

/// The whole output: the stored one, else what the envelope of a success holds.
pub(crate) async fn find(store: &Store, scope: &Scope, call: &CallId) -> Result<Option<ToolOutput>, StoreError> {
    let found = store.read_one(of_call(FIND, scope, call)).await?;
    let envelope = async || Ok(store.ended_outcome(scope, call).await?.and_then(result_of));
    let Some(row) = found else { return envelope().await };
    let columns = Columns { of: call.as_str(), row: &row };
    let whole: ToolOutput =
        serde_json::from_slice(columns.bytes("body")?).map_err(|err| columns.damaged("body", err))?;
    if !whole.leaves_its_value() {
        return Ok(Some(whole));
    }
    Ok(envelope().await?.map(|envelope| whole.with_value_of(envelope)))
}

fn result_of(outcome: Outcome) -> Option<ToolOutput> {
    match outcome.end {
        End::Success { result } => Some(result),
        End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_outputs() {
        crate::schema::tests::assert_quick(&[super::KEEP, super::FIND]);
    }
}

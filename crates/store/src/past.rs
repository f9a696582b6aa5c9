//! The last calls with the evidence they were decided on, for deciding them again.

use haft_runtime::{CallEvent, CallId, Past, Scope, Within};
use sqlx::sqlite::SqliteRow;

use crate::{Store, StoreError, columns::Columns, journal::record};

/// The columns of a record, whether it was asked about, and what is left of its evidence.
macro_rules! past {
    ($rest:literal) => {
        concat!(
            "select tenant, id, workspace, tool, parent, caller, source, auto_approve, state, started_at, turn, input, ",
            "outcome, asked, ",
            "(select data from events where events.tenant = calls.tenant and events.call = calls.id ",
            "and events.kind = 'tool.staged' order by seq limit 1) as staged, ",
            "(select kind from events where events.tenant = calls.tenant and events.call = calls.id ",
            "and events.kind in ('tool.approved', 'tool.staged') order by seq limit 1) = 'tool.approved' as approved_first, ",
            "(select coalesce(body ->> '$.evidence.staged.isolation', body ->> '$.evidence.plain.isolation') ",
            "from questions where questions.tenant = calls.tenant and questions.call = calls.id ",
            "and body -> '$.evidence.form' is null and body -> '$.evidence.result' is null) as isolation, ",
            "(select body -> '$.evidence.plain.reach' ",
            "from questions where questions.tenant = calls.tenant and questions.call = calls.id ",
            "and body -> '$.evidence.form' is null and body -> '$.evidence.result' is null) as reach ",
            "from calls where tenant = $1 ",
            $rest
        )
    };
}
const LAST: &str = past!("order by id desc limit $2");
const LAST_OF_WORKSPACE: &str = past!("and workspace = $3 order by id desc limit $2");
const ONE: &str = past!("and id = $2");

impl Store {
    /// The last calls, newest first.
    pub async fn last_calls(&self, scope: &Scope, within: &Within, most: u32) -> Result<Vec<Past>, StoreError> {
        let sql = if within.only().is_some() { LAST_OF_WORKSPACE } else { LAST };
        let mut query = sqlx::query(sql).bind(scope.tenant().as_str()).bind(most);
        if let Some(workspace) = within.only() {
            query = query.bind(workspace.as_str());
        }
        query.fetch_all(self.reads().await?).await?.iter().map(past).collect()
    }

    /// One call.
    pub async fn past(&self, scope: &Scope, call: &CallId) -> Result<Option<Past>, StoreError> {
        let query = sqlx::query(ONE).bind(scope.tenant().as_str()).bind(call.as_str());
        query.fetch_optional(self.reads().await?).await?.as_ref().map(past).transpose()
    }
}

fn past(row: &SqliteRow) -> Result<Past, StoreError> {
    let record = record(row)?;
    let id = record.call.to_string();
    let columns = Columns { of: &id, row };
    let staged = columns.json_or_none("staged")?.and_then(|event: CallEvent| {
        if let CallEvent::Staged { changes, turn } = event { Some((changes, turn)) } else { None }
    });
    let isolation = columns.word_or_none("isolation")?;
    let staged_late = staged.is_some() && columns.plain("approved_first")?;
    let reach = columns.json_or_none("reach")?;
    Ok(Past { asked: columns.plain("asked")?, staged, staged_late, isolation, reach, record })
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_calls() {
        crate::schema::tests::assert_quick(&[super::LAST, super::LAST_OF_WORKSPACE, super::ONE]);
    }
}

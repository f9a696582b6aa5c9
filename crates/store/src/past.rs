//! The last calls with the evidence they were decided on, for deciding them again.

use std::collections::HashMap;

use haft_runtime::{CallEvent, CallId, Evidence, Isolation, Past, Question, Reach, Scope, Within};

use crate::{
    Store, StoreError,
    columns::{Columns, only, tenant},
    journal::{ended_records, of_call, open_records, record},
    journal_events::numbered,
    sql::{Row, Statement},
};

const LAST_OPEN: &str = open_records!("tenant = $1 order by id desc limit $2");
const LAST_ENDED: &str = ended_records!("tenant = $1 order by id desc limit $2");
const LAST_OPEN_OF_WORKSPACE: &str = open_records!("tenant = $1 and workspace = $3 order by id desc limit $2");
const LAST_ENDED_OF_WORKSPACE: &str = ended_records!("tenant = $1 and workspace = $3 order by id desc limit $2");
const ONE_OPEN: &str = open_records!("tenant = $1 and id = $2");
const ONE_ENDED: &str = ended_records!("tenant = $1 and id = $2");
/// What is left of the evidence: what was staged, and what was asked.
const STAGED: &str = "select call, seq, kinds, events from entries where tenant = $1 and call in ";
const ASKED: &str = "select call, body from questions where tenant = $1 and call in ";

/// What is known of how a call was decided.
#[derive(Default)]
struct Grounds {
    staged: Option<CallEvent>,
    staged_late: bool,
    isolation: Option<Isolation>,
    reach: Option<Reach>,
}

impl Store {
    /// The last calls, newest first.
    pub async fn last_calls(&self, scope: &Scope, within: &Within, most: u32) -> Result<Vec<Past>, StoreError> {
        let texts = match only(within) {
            Some(_) => [LAST_OPEN_OF_WORKSPACE, LAST_ENDED_OF_WORKSPACE],
            None => [LAST_OPEN, LAST_ENDED],
        };
        let statement = |sql| {
            let last = Statement::new(sql).bind(tenant(scope)).bind(most);
            if let Some(workspace) = only(within) { last.bind(workspace) } else { last }
        };
        let found = self.read_together(&texts.map(statement)).await?;
        let mut past = self.with_grounds(scope, found.into_iter().flatten().collect()).await?;
        past.sort_by(|one, other| other.record.call.cmp(&one.record.call));
        past.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(past)
    }

    /// One call.
    pub async fn past(&self, scope: &Scope, call: &CallId) -> Result<Option<Past>, StoreError> {
        let found = self.read_together(&[ONE_OPEN, ONE_ENDED].map(|sql| of_call(sql, scope, call))).await?;
        Ok(self.with_grounds(scope, found.into_iter().flatten().collect()).await?.into_iter().next())
    }

    async fn with_grounds(&self, scope: &Scope, rows: Vec<Row>) -> Result<Vec<Past>, StoreError> {
        let ids = rows.iter().map(|row| Columns { of: "calls", row }.text("id")).collect::<Result<Vec<_>, _>>()?;
        let mut grounds = self.grounds(scope, &ids).await?;
        let past = |(row, id): (&Row, &String)| {
            let Grounds { staged, staged_late, isolation, reach } = grounds.remove(id).unwrap_or_default();
            let staged = staged.and_then(|event| {
                if let CallEvent::Staged { changes, turn } = event { Some((changes, turn)) } else { None }
            });
            let asked = Columns { of: id, row }.flag("asked")?;
            Ok(Past { asked, staged, staged_late, isolation, reach, record: record(row)? })
        };
        rows.iter().zip(&ids).map(past).collect()
    }

    async fn grounds(&self, scope: &Scope, calls: &[String]) -> Result<HashMap<String, Grounds>, StoreError> {
        let of = |sql, rest| {
            let list = Statement::new(sql).bind(tenant(scope)).push_list(calls.iter().map(String::as_str));
            list.push(rest)
        };
        let found =
            self.read_together(&[of(STAGED, " order by call, seq"), of(ASKED, " order by call, number")]).await?;
        let mut grounds: HashMap<String, Grounds> = HashMap::new();
        for (of_entries, row) in
            found.iter().enumerate().flat_map(|(list, rows)| rows.iter().map(move |row| (list == 0, row)))
        {
            let call = Columns { of: "calls", row }.text("call")?;
            let columns = Columns { of: &call, row };
            let known = grounds.entry(call.clone()).or_default();
            if of_entries { known.add_entry(&columns)? } else { known.add_question(&columns.json("body")?) }
        }
        Ok(grounds)
    }
}

impl Grounds {
    /// The first staging counts, and whether the yes came before it.
    fn add_entry(&mut self, columns: &Columns<'_>) -> Result<(), StoreError> {
        let kinds = columns.text("kinds")?;
        if self.staged.is_some() || !(kinds.contains("tool.staged") || kinds.contains("tool.approved")) {
            return Ok(());
        }
        for (_, _, event) in numbered(columns)? {
            if matches!(event, CallEvent::Approved { .. }) {
                self.staged_late = true;
            }
            if matches!(event, CallEvent::Staged { .. }) {
                self.staged = Some(event);
                break;
            }
        }
        Ok(())
    }

    fn add_question(&mut self, question: &Question) {
        match question.evidence() {
            Some(Evidence::Staged { isolation, .. }) => self.isolation = *isolation,
            Some(Evidence::Plain(described)) => {
                self.isolation = described.isolation;
                self.reach.clone_from(&described.reach);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_calls() {
        let statements = [LAST_OPEN, LAST_ENDED, LAST_OPEN_OF_WORKSPACE, LAST_ENDED_OF_WORKSPACE, ONE_OPEN, ONE_ENDED];
        crate::schema::tests::assert_quick(&statements);
        let lists =
            [format!("{STAGED} ($2, $3) order by call, seq"), format!("{ASKED} ($2, $3) order by call, number")];
        crate::schema::tests::assert_quick(&lists.each_ref().map(String::as_str));
    }
}

//! The events that entries of the journal hold, and which entries hold those of one thing.

use std::sync::{Arc, OnceLock};

use haft_runtime::{CallEvent, CallId, Via};
use jiff::Timestamp;

use crate::{
    StoreError,
    columns::Columns,
    sql::{Row, Statement},
};

/// How many entries are read at once.
pub(crate) const PAGE: i64 = 256;

/// One event of the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEvent {
    /// Its number. Numbers only grow, and a higher one is never seen before a lower one.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// To which call.
    pub call: CallId,
    /// What the call is part of. For whom it is made, and whether it is a trial, stands in its record only.
    pub via: Arc<Via>,
    /// What happened.
    pub event: CallEvent,
    /// How it is told: written by the first who tells it, for all who listen.
    pub told: OnceLock<ToldEvent>,
}

/// The words for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldEvent {
    /// What it is called.
    pub name: String,
    /// What is told of it, as JSON in one line.
    pub data: String,
}

/// Whose events a listener hears, within one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsOf {
    /// Those of everything.
    Tenant,
    /// Those of one call.
    Call(CallId),
    /// Those of the calls of one session.
    Session(String),
    /// Those of the calls of one run.
    Run(String),
    /// Those of the calls of one agent.
    Agent(String),
    /// Those of the calls of one space.
    Space(String),
}

impl EventsOf {
    /// Whether an event is one of them.
    pub(crate) fn include(&self, event: &JournalEvent) -> bool {
        let is = |part: &Option<String>, wanted: &String| part.as_ref() == Some(wanted);
        match self {
            Self::Tenant => true,
            Self::Call(call) => *call == event.call,
            Self::Session(session) => is(&event.via.session, session),
            Self::Run(run) => is(&event.via.run, run),
            Self::Agent(agent) => is(&event.via.agent, agent),
            Self::Space(space) => is(&event.via.space, space),
        }
    }

    /// The entries of a tenant after a number and up to another one.
    pub(crate) fn page(&self, tenant: &str, after: i64, up_to: i64) -> Statement {
        let (sql, of) = match self {
            Self::Tenant => (ENTRIES, None),
            Self::Call(call) => (ENTRIES_OF_CALL, Some(call.as_str())),
            Self::Session(session) => (ENTRIES_OF_SESSION, Some(session.as_str())),
            Self::Run(run) => (ENTRIES_OF_RUN, Some(run.as_str())),
            Self::Agent(agent) => (ENTRIES_OF_AGENT, Some(agent.as_str())),
            Self::Space(space) => (ENTRIES_OF_SPACE, Some(space.as_str())),
        };
        let page = Statement::new(sql).bind(tenant).bind(after).bind(up_to).bind(PAGE);
        if let Some(of) = of { page.bind(of) } else { page }
    }
}

/// The entries after a number and up to another one, by the index that leads to those that are wanted.
macro_rules! entries {
    ($index:literal, $only:literal) => {
        concat!(
            "select seq, call, session, run, agent, space, events from entries ",
            $index,
            " where tenant = $1 and seq > $2 and seq <= $3 ",
            $only,
            " order by seq limit $4"
        )
    };
}
const ENTRIES: &str = entries!("", "");
const ENTRIES_OF_CALL: &str = entries!("/*index entries_of_call*/", "and call = $5");
const ENTRIES_OF_SESSION: &str = entries!("/*index entries_of_session*/", "and session = $5");
const ENTRIES_OF_RUN: &str = entries!("/*index entries_of_run*/", "and run = $5");
const ENTRIES_OF_AGENT: &str = entries!("/*index entries_of_agent*/", "and agent = $5");
const ENTRIES_OF_SPACE: &str = entries!("/*index entries_of_space*/", "and space = $5");

/// The events of entries, each with its number.
pub(crate) fn events_of(rows: &[Row]) -> Result<Vec<Arc<JournalEvent>>, StoreError> {
    let mut found = Vec::new();
    for row in rows {
        let call = Columns { of: "entries", row }.call_id("call")?;
        let columns = Columns { of: call.as_str(), row };
        let via = Arc::new(Via {
            session: columns.text_or_none("session")?,
            run: columns.text_or_none("run")?,
            agent: columns.text_or_none("agent")?,
            space: columns.text_or_none("space")?,
            ..Via::default()
        });
        for (seq, at, event) in numbered(&columns)? {
            found.push(Arc::new(JournalEvent {
                seq,
                at,
                call: call.clone(),
                via: Arc::clone(&via),
                event,
                told: OnceLock::new(),
            }));
        }
    }
    Ok(found)
}

/// The events of one entry, each with its number.
pub(crate) fn numbered(columns: &Columns<'_>) -> Result<Vec<(i64, Timestamp, CallEvent)>, StoreError> {
    let last = columns.number("seq")?;
    let events: Vec<(i64, CallEvent)> = columns.json("events")?;
    let first = last + 1 - i64::try_from(events.len()).unwrap_or(i64::MAX);
    let numbered = (first..).zip(events).map(|(seq, (at, event))| {
        let at = Timestamp::from_microsecond(at).map_err(|err| columns.damaged("events", err))?;
        Ok((seq, at, event))
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{assert_quick, assert_reads_only};

    #[test]
    fn entries_are_found_by_what_they_are_part_of() {
        assert_quick(&[ENTRIES]);
        let parts = [
            (ENTRIES_OF_CALL, "entries_of_call"),
            (ENTRIES_OF_SESSION, "entries_of_session"),
            (ENTRIES_OF_RUN, "entries_of_run"),
            (ENTRIES_OF_AGENT, "entries_of_agent"),
            (ENTRIES_OF_SPACE, "entries_of_space"),
        ];
        for (sql, index) in parts {
            let sql = crate::sqlite::with_hints(sql);
            assert_quick(&[&sql]);
            assert_reads_only(&sql, index);
        }
    }
}

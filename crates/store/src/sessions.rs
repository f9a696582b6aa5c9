//! Sessions: the threads that calls belong to.

use haft_runtime::{Caller, CallerId, CallerRef, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// What it is found by.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// Who began it.
    pub by: CallerRef,
    /// Since when.
    pub created_at: Timestamp,
}

/// How many calls a session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCalls {
    /// All of them.
    pub total: u32,
    /// Those that wait for somebody.
    pub waiting: u32,
    /// Those that are under way.
    pub running: u32,
}

macro_rules! sessions {
    ($index:literal, $rest:literal) => {
        concat!(
            "select id, title, caller, caller_name, created_at from sessions ",
            $index,
            " where tenant = $1 ",
            $rest
        )
    };
}
const INSERT: &str = "insert into sessions (tenant, id, title, caller, caller_name, created_at) \
                      values ($1, $2, $3, $4, $5, $6) returning 1 as added";
const FIND: &str = sessions!("", "and id = $2");
const PAGE: &str = sessions!("", "and id < $2 order by id desc limit $3");
const OWN_PAGE: &str =
    sessions!("/*index sessions_of_caller*/", "and caller = $4 and id < $2 order by id desc limit $3");
const ENDED: &str = "select count(*) as ended from calls /*index calls_of_session*/ where tenant = $1 and session = $2";
const OPEN: &str = "select count(*) as open, count(case when state = 'waiting' then 1 end) as waiting \
                    from open_calls /*index open_calls_of_session*/ where tenant = $1 and session = $2";
/// What comes after every id.
const LAST: &str = "~";

impl Store {
    /// Adds a session of a caller.
    pub async fn add_session(&self, caller: &Caller, (id, title): (&str, &str)) -> Result<(), StoreError> {
        let tenant = tenant(&caller.scope);
        let insert = Statement::new(INSERT).bind(tenant).bind(id).bind(title).bind(caller.id.to_string());
        let insert = insert.bind(caller.name.as_str()).bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::new(tenant, insert)).await.map(drop)
    }

    /// The session with this id.
    pub async fn session(&self, scope: &Scope, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        self.read_one(Statement::new(FIND).bind(tenant(scope)).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// Sessions, newest first, older than the one that is named: all of them, or those of one caller.
    pub async fn sessions(
        &self,
        scope: &Scope,
        of: Option<&CallerId>,
        (before, limit): (Option<&str>, u32),
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let page = Statement::new(if of.is_some() { OWN_PAGE } else { PAGE });
        let page = page.bind(tenant(scope)).bind(before.unwrap_or(LAST)).bind(limit);
        let page = if let Some(caller) = of { page.bind(caller.to_string()) } else { page };
        self.read(page).await?.iter().map(record).collect()
    }

    /// How many calls a session has, and how they stand.
    pub async fn calls_of_session(&self, scope: &Scope, id: &str) -> Result<SessionCalls, StoreError> {
        let counts = [ENDED, OPEN].map(|sql| Statement::new(sql).bind(tenant(scope)).bind(id));
        let found = self.read_together(&counts).await?;
        let [ended, open] = found.as_slice() else { return Ok(SessionCalls::default()) };
        let count = |rows: &[Row], column| rows.first().map_or(Ok(0), |row| Columns { of: "calls", row }.count(column));
        let (open, waiting, ended) = (count(open, "open")?, count(open, "waiting")?, count(ended, "ended")?);
        Ok(SessionCalls { total: ended + open, waiting, running: open - waiting })
    }
}

fn record(row: &Row) -> Result<SessionRecord, StoreError> {
    let columns = Columns { of: "sessions", row };
    let unread = |_| columns.damaged("caller", std::fmt::Error);
    Ok(SessionRecord {
        id: columns.text("id")?,
        title: columns.text("title")?,
        by: CallerRef { id: columns.text("caller")?.parse().map_err(unread)?, name: columns.text("caller_name")? },
        created_at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::schema::tests::{assert_quick, assert_reads_only};

    #[test]
    fn sessions_and_their_calls_are_found_without_reading_others() {
        use super::{ENDED, FIND, OPEN, OWN_PAGE, PAGE};
        assert_quick(&[FIND, PAGE, OWN_PAGE, ENDED, OPEN]);
        for (sql, index) in
            [(ENDED, "calls_of_session"), (OPEN, "open_calls_of_session"), (OWN_PAGE, "sessions_of_caller")]
        {
            assert_reads_only(&crate::sqlite::with_hints(sql), index);
        }
    }
}

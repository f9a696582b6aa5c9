//! Many writes in one transaction.
//!
//! Placeholders are numbered everywhere but in what the journal writes for each entry: SQLite looks numbered ones up
//! one after the other, which is slow for many rows.

use std::sync::OnceLock;

use sqlx::{Arguments, Executor, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use crate::{
    StoreError,
    addition::{self, Addition},
    counters::Tally,
    watch::News,
};

/// The most rows that one statement inserts.
pub(crate) const MOST_ROWS: usize = 128;

/// The most entries that are written by one text.
const MOST_IN_ONE_TRIP: usize = 3;

/// A query with what is bound to it so far.
pub(crate) type Bound = Query<'static, Sqlite, SqliteArguments>;

/// One write, whole in itself.
pub(crate) enum Write {
    /// An entry of the journal.
    Addition(Box<Addition>),
    /// One conditional statement about a call or a grant.
    Statement(Statement),
}

/// One statement with its arguments.
pub(crate) struct Statement {
    /// Whom it concerns.
    pub(crate) news: Vec<News>,
    /// The text.
    pub(crate) sql: &'static str,
    /// What is bound to it.
    pub(crate) arguments: SqliteArguments,
    /// What is done in the same transaction, if this touched a row.
    then: Option<Box<Statement>>,
}

impl Write {
    /// Whom it concerns.
    pub(crate) fn news(&self) -> &[News] {
        match self {
            Self::Addition(addition) => &addition.news,
            Self::Statement(statement) => &statement.news,
        }
    }
}

/// Writes all or nothing, and says of each whether it touched a row.
pub(crate) async fn write(conn: &mut SqliteConnection, writes: &[&Write]) -> Result<Vec<bool>, StoreError> {
    // One statement is a transaction by itself.
    if let [Write::Statement(statement)] = writes
        && statement.then.is_none()
    {
        return Ok(vec![statement.run(conn).await?]);
    }
    if let Some(few) = few_additions(writes) {
        addition::write_in_one_trip(conn, &few).await?;
        return Ok(vec![true; few.len()]);
    }
    conn.execute("begin immediate").await?;
    let written = match write_parts(conn, writes).await {
        Ok(touched) => conn.execute("commit").await.map(|_| touched).map_err(StoreError::from),
        Err(err) => Err(err),
    };
    if written.is_err() {
        // A connection that cannot even do this fails at the next beginning.
        conn.execute("rollback").await.ok();
    }
    written
}

/// What one trip can write: few entries, so that their texts stay prepared.
fn few_additions<'w>(writes: &[&'w Write]) -> Option<Vec<&'w Addition>> {
    if writes.len() > MOST_IN_ONE_TRIP {
        return None;
    }
    writes.iter().map(|write| write.as_addition().filter(|addition| addition.fits_in_one_trip())).collect()
}

async fn write_parts(conn: &mut SqliteConnection, writes: &[&Write]) -> Result<Vec<bool>, StoreError> {
    let mut tally = Tally::default();
    let additions: Vec<&Addition> = writes.iter().filter_map(|write| write.as_addition()).collect();
    addition::write_all(conn, &additions, &mut tally).await?;
    tally.write(conn).await?;
    let mut touched = Vec::with_capacity(writes.len());
    for write in writes {
        touched.push(match write {
            Write::Addition(_) => true,
            Write::Statement(statement) => statement.run(conn).await?,
        });
    }
    Ok(touched)
}

impl Write {
    fn as_addition(&self) -> Option<&Addition> {
        match self {
            Self::Addition(addition) => Some(addition),
            Self::Statement(_) => None,
        }
    }
}

impl Statement {
    /// A statement without arguments, that concerns nobody who waits.
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { news: Vec::new(), sql, arguments: SqliteArguments::default(), then: None }
    }

    /// The same with one more argument.
    pub(crate) fn bind<'t>(
        mut self,
        value: impl sqlx::Encode<'t, Sqlite> + sqlx::Type<Sqlite>,
    ) -> Result<Self, StoreError> {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        Ok(self)
    }

    /// The same as news for those who wait.
    pub(crate) fn waking(mut self, news: News) -> Self {
        self.news.push(news);
        self
    }

    /// The same with another one that counts only if this one does.
    pub(crate) fn and_then(mut self, next: Self) -> Self {
        self.then = Some(Box::new(next));
        self
    }

    async fn run(&self, conn: &mut SqliteConnection) -> Result<bool, StoreError> {
        let done = sqlx::query_with(self.sql, self.arguments.clone()).execute(&mut *conn).await?;
        let touched = done.rows_affected() > 0;
        if let (true, Some(next)) = (touched, &self.then) {
            sqlx::query_with(next.sql, next.arguments.clone()).execute(conn).await?;
        }
        Ok(touched)
    }
}

/// One insert for any number of rows. Each number has its own text, so that all stay prepared.
pub(crate) struct Insert {
    head: &'static str,
    columns: usize,
    tail: &'static str,
    texts: [OnceLock<String>; MOST_ROWS],
}

impl Insert {
    /// What stands before and after the rows, and how many columns each has.
    pub(crate) const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self { head, columns, tail, texts: [const { OnceLock::new() }; MOST_ROWS] }
    }

    /// The text for so many rows, at most [`MOST_ROWS`].
    pub(crate) fn text(&'static self, rows: usize) -> &'static str {
        let text = &self.texts[rows.clamp(1, MOST_ROWS) - 1];
        text.get_or_init(|| {
            let row = format!("({})", vec!["?"; self.columns].join(", "));
            format!("{} {} {}", self.head, vec![row; rows].join(", "), self.tail)
        })
    }
}

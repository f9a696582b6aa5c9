//! Many writes in one transaction.

use sqlx::{Arguments, Connection, SqliteConnection, sqlite::SqliteArguments};

use crate::{
    StoreError,
    addition::{self, Addition},
    counters::Tally,
    watch::News,
};

/// The most rows that one statement inserts.
const MOST_ROWS: usize = 64;

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
    if let [Write::Statement(statement)] = writes {
        // One statement is a transaction by itself.
        return Ok(vec![statement.run(conn).await?]);
    }
    let mut tx = conn.begin_with("begin immediate").await?;
    let mut tally = Tally::default();
    let additions: Vec<&Addition> = writes.iter().filter_map(|write| write.as_addition()).collect();
    addition::write_all(&mut tx, &additions, &mut tally).await?;
    tally.write(&mut tx).await?;
    let mut touched = Vec::with_capacity(writes.len());
    for write in writes {
        touched.push(match write {
            Write::Addition(_) => true,
            Write::Statement(statement) => statement.run(&mut tx).await?,
        });
    }
    tx.commit().await?;
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
        Self { news: Vec::new(), sql, arguments: SqliteArguments::default() }
    }

    /// The same with one more argument.
    pub(crate) fn bind<'t>(
        mut self,
        value: impl sqlx::Encode<'t, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    ) -> Result<Self, StoreError> {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        Ok(self)
    }

    /// The same as news for those who wait.
    pub(crate) fn waking(mut self, news: News) -> Self {
        self.news.push(news);
        self
    }

    async fn run(&self, conn: &mut SqliteConnection) -> Result<bool, StoreError> {
        let done = sqlx::query_with(self.sql, self.arguments.clone()).execute(conn).await?;
        Ok(done.rows_affected() > 0)
    }
}

/// The texts of one insert for 1, 2, 4 … rows: a batch of any size needs few statements, and all stay prepared.
pub(crate) fn texts(head: &str, columns: usize, tail: &str) -> Vec<String> {
    // Here and only here without numbers: SQLite looks numbered ones up one after the other, which is slow for many.
    let row = format!("({})", vec!["?"; columns].join(", "));
    let sizes = (0..=MOST_ROWS.ilog2()).map(|power| 1 << power);
    sizes.map(|rows: usize| format!("{head}{}{tail}", vec![row.as_str(); rows].join(", "))).collect()
}

/// The text for as many rows as a chunk has.
pub(crate) fn text_for(texts: &'static [String], rows: usize) -> &'static str {
    texts.get(rows.ilog2() as usize).map_or("", String::as_str)
}

/// Cuts rows into chunks for which there is a text.
pub(crate) fn chunks<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = 1 << rows.len().min(MOST_ROWS).checked_ilog2()?;
        let (chunk, rest) = rows.split_at(size);
        rows = rest;
        Some(chunk)
    })
}

//! What can be written: an entry of the journal, one statement about a call or a grant, or what lies in the tray.

use rusqlite::{Connection, types::Value};

use crate::{
    StoreError,
    addition::{Addition, Later},
    tray,
    watch::News,
};

/// One write, whole in itself.
pub(crate) enum Write {
    /// An entry of the journal.
    Addition(Box<Addition>),
    /// One that nobody waits for; whoever writes it makes its columns.
    Later(Box<Later>),
    /// One conditional statement about a call or a grant.
    Statement(Statement),
    /// Whatever lies in the tray is filed.
    Tray,
    /// Nothing. Whoever waits for it waits for everything that came before.
    Mark,
}

/// One statement with its arguments.
pub(crate) struct Statement {
    /// Whom it concerns.
    news: Vec<News>,
    sql: &'static str,
    arguments: Vec<Value>,
    /// What is done in the same transaction, if this touched a row.
    then: Option<Box<Statement>>,
}

impl Write {
    /// Whom it concerns.
    pub(crate) fn news(&self) -> &[News] {
        match self {
            Self::Addition(addition) => &addition.news,
            Self::Later(later) => &later.news,
            Self::Statement(statement) => &statement.news,
            Self::Tray | Self::Mark => &[],
        }
    }

    /// Where in the tray it lies until it is written.
    pub(crate) fn laid(&self) -> Option<u8> {
        match self {
            Self::Addition(addition) => addition.laid,
            Self::Later(_) | Self::Statement(_) | Self::Tray | Self::Mark => None,
        }
    }

    /// Makes columns of what has none yet, before anybody holds the database for it. What cannot be made is told by `run`.
    pub(crate) fn make_columns(&mut self) {
        if let Self::Later(later) = self
            && let Ok(addition) = later.addition()
        {
            *self = Self::Addition(Box::new(addition));
        }
    }

    /// Does it within the transaction of the connection, and says whether it touched a row.
    pub(crate) fn run(&self, conn: &Connection) -> Result<bool, StoreError> {
        match self {
            Self::Addition(addition) => addition.file(conn).map(|()| true),
            Self::Later(later) => later.addition()?.file(conn).map(|()| true),
            // It may be about a call whose entry still lies there.
            Self::Statement(statement) => tray::file_all(conn).and_then(|()| statement.run(conn)),
            Self::Tray => tray::file_all(conn).map(|()| true),
            Self::Mark => Ok(true),
        }
    }
}

impl Statement {
    /// A statement without arguments, that concerns nobody who waits.
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { news: Vec::new(), sql, arguments: Vec::new(), then: None }
    }

    /// The same with one more argument, for `$1` and so on.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.arguments.push(value.into());
        self
    }

    /// The same with one more text.
    pub(crate) fn bind_text(self, text: &str) -> Self {
        self.bind(text.to_owned())
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

    fn run(&self, conn: &Connection) -> Result<bool, StoreError> {
        let touched = self.run_alone(conn)? > 0;
        if let (true, Some(next)) = (touched, &self.then) {
            next.run_alone(conn)?;
        }
        Ok(touched)
    }

    /// SQLite takes `$2` for a name, so that the number is read from it here.
    fn run_alone(&self, conn: &Connection) -> Result<usize, rusqlite::Error> {
        let mut statement = conn.prepare_cached(self.sql)?;
        for place in 1..=statement.parameter_count() {
            let number = statement.parameter_name(place).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let argument = number.and_then(|number| self.arguments.get(number.checked_sub(1)?));
            let argument = argument.ok_or_else(|| rusqlite::Error::InvalidParameterName(self.sql.to_owned()))?;
            statement.raw_bind_parameter(place, argument)?;
        }
        statement.raw_execute()
    }
}

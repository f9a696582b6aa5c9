//! PostgreSQL: a few connections that are kept, one message to the server for each read or step of a transaction.
//!
//! Queries are unnamed and typed, so that nothing is prepared beforehand and a pooler such as PgBouncer may stand between.

use std::{
    future::poll_fn,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, future::maybe_done};
use jiff::Timestamp;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{
    Client, Config, NoTls,
    config::{Host, SslMode},
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    StoreError,
    batch::{self, StoreWrite},
    columns::Columns,
    db::{Transaction, Words, in_words_of},
    faults::{CutCommit, Faults},
    lock::lock,
    schema::{KNOWN, Versions},
    sql::{Row, Statement, Value},
};

/// Connections at the same time.
const CONNECTIONS: usize = 8;
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long one page of a copy may take.
const PAGE_ANSWER: Duration = Duration::from_secs(300);
/// How long a connection that is free is waited for, and how long between two looks for one.
const FREE: Duration = Duration::from_secs(5);
const FREE_PAUSE: Duration = Duration::from_millis(20);
/// Begins a transaction. A node that stops in the midst of it, or cannot be reached any more, holds rows that all others
/// need: the server takes them back soon.
const BEGIN: &str = "begin; set local idle_in_transaction_session_timeout = 5000";
/// How long it is tried to learn what became of a commit whose answer was lost, and how long between two tries.
const SETTLE: Duration = Duration::from_secs(15);
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// The last batch that a node has committed. Written with it, so that it can be read back when the answer was lost. An
/// attempt whose commit is still on its way is waited for here, and nothing is touched if that one is carried out.
const NOTE_BATCH: &str = "insert into nodes (id, lease_until, batch) \
                          values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint, $2) \
                          on conflict (id) do update set batch = excluded.batch where nodes.batch <> excluded.batch \
                          returning 1 as noted";
const LAST_BATCH: &str = "select batch from nodes where id = $1";

/// A database on a server.
pub(crate) struct Postgres {
    config: Config,
    /// The server as people may see it: no password.
    place: String,
    node: String,
    batch: AtomicI64,
    faults: Option<Faults>,
    idle: Mutex<Vec<PostgresConnection>>,
    free: Arc<Semaphore>,
    /// The server's clock, and when it was looked at.
    clock: Mutex<(Timestamp, Instant)>,
}

/// Writes that are committed together, as often as that is tried.
pub(crate) struct Batch<'a> {
    number: i64,
    writes: &'a [&'a StoreWrite],
    /// What an attempt touched whose commit got no answer.
    unsettled: Option<Vec<bool>>,
}

/// One connection and the task that speaks with the server.
struct PostgresConnection {
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection in use; it goes back when it is given back, and is closed otherwise.
pub(crate) struct LentConnection {
    connection: PostgresConnection,
    _permit: OwnedSemaphorePermit,
}

impl Postgres {
    /// Connects, brings the database to the newest version, and finds out whether it can be used.
    pub(crate) async fn open(url: &str, node: &str, faults: Option<Faults>) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|_| StoreError::Url)?;
        let place = place(&config);
        if !url.contains("sslmode=") && is_near(&config) {
            config.ssl_mode(SslMode::Disable);
        }
        config.connect_timeout(CONNECT).application_name("haft");
        let (idle, free) = (Mutex::default(), Arc::new(Semaphore::new(CONNECTIONS)));
        let (node, batch, clock) = (node.to_owned(), AtomicI64::new(0), Mutex::new((Timestamp::now(), Instant::now())));
        let postgres = Self { config, place, node, batch, faults, idle, free, clock };
        postgres.check_encoding().await?;
        postgres.bring_up().await?;
        postgres.look_at_clock().await?;
        Ok(postgres)
    }

    /// The server's time. Between two looks it goes on by itself, whatever becomes of this machine's clock.
    pub(crate) fn now(&self) -> Timestamp {
        let (time, looked) = *lock(&self.clock);
        time.checked_add(looked.elapsed()).unwrap_or(time)
    }

    /// Looks at the server's clock.
    pub(crate) async fn look_at_clock(&self) -> Result<Timestamp, StoreError> {
        const TIME: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint as time";
        let rows = self.read(&[Statement { sql: TIME.into(), args: Vec::new() }]).await?;
        let Some(row) = rows.first().and_then(|rows| rows.first()) else { return Err(StoreError::Closed) };
        let time = Columns { of: "the database", row }.time("time")?;
        *lock(&self.clock) = (time, Instant::now());
        Ok(time)
    }

    /// Where it lies, how large it is, and its version.
    pub(crate) async fn describe(&self) -> Result<(String, u64, String), StoreError> {
        const FACTS: &str =
            "select pg_database_size(current_database()) as bytes, current_setting('server_version') as version";
        let rows = self.read(&[Statement { sql: FACTS.into(), args: Vec::new() }]).await?;
        let Some(row) = rows.first().and_then(|rows| rows.first()) else { return Err(StoreError::Closed) };
        let columns = Columns { of: "the database", row };
        let version = format!("PostgreSQL {}", columns.text("version")?);
        Ok((self.place.clone(), columns.number("bytes")?.unsigned_abs(), version))
    }

    /// The rows of several statements, all of the same moment. What a lost connection left unread is read once more.
    pub(crate) async fn read(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        match self.read_once(statements).await {
            Err(StoreError::Unreachable { .. }) => self.read_once(statements).await,
            read => read,
        }
    }

    async fn read_once(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        let lent = self.lend().await?;
        let client = &lent.connection.client;
        let rows = if statements.len() == 1 {
            self.answered(run_all(client, statements)).await?
        } else {
            let begun = client.batch_execute("begin isolation level repeatable read read only");
            let (begun, rows) =
                self.answered(async { Ok(futures_util::join!(begun, run_all(client, statements))) }).await?;
            self.said(begun)?;
            let rows = rows?;
            self.said(client.batch_execute("commit").await)?;
            rows
        };
        self.give_back(lent);
        Ok(rows)
    }

    /// A connection that sees everything as it is now.
    pub(crate) async fn snapshot(&self) -> Result<LentConnection, StoreError> {
        let lent = self.lend().await?;
        let client = &lent.connection.client;
        self.told(client, "begin isolation level repeatable read read only").await?;
        // It begins with the first look.
        self.answered(run_all(client, &[Versions::statement()])).await?;
        Ok(lent)
    }

    /// The rows of one statement on such a connection.
    pub(crate) async fn read_within(
        &self,
        lent: &LentConnection,
        statement: &Statement,
    ) -> Result<Vec<Row>, StoreError> {
        let answers = run_all(&lent.connection.client, std::slice::from_ref(statement));
        let rows = timeout(PAGE_ANSWER, answers).await.unwrap_or_else(|_| Err(self.silent()))?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Writes page after page in one transaction.
    pub(crate) async fn load(
        &self,
        mut next_page: impl AsyncFnMut() -> Result<Option<Vec<Statement>>, StoreError>,
    ) -> Result<(), StoreError> {
        let lent = self.lend().await?;
        let client = &lent.connection.client;
        self.told(client, "begin").await?;
        while let Some(page) = next_page().await? {
            timeout(PAGE_ANSWER, run_all(client, &page)).await.unwrap_or_else(|_| Err(self.silent()))?;
        }
        let committed = timeout(PAGE_ANSWER, client.batch_execute("commit")).await;
        // An error at this point says nothing: the server may have committed before the connection broke.
        let unknown = || StoreError::CommitUnknown { place: self.place.clone() };
        committed.map_err(|_| unknown())?.map_err(|_| unknown())?;
        self.give_back(lent);
        Ok(())
    }

    /// Writes to be committed together.
    pub(crate) fn batch<'a>(&self, writes: &'a [&'a StoreWrite]) -> Batch<'a> {
        Batch { number: self.batch.fetch_add(1, Ordering::Relaxed) + 1, writes, unsettled: None }
    }

    /// Writes all or nothing. A commit whose answer was lost is looked up by its number.
    pub(crate) async fn transaction(&self, batch: &mut Batch<'_>) -> Result<Vec<bool>, StoreError> {
        let lent = self.lend().await?;
        let client = &lent.connection.client;
        // Anything that goes wrong before the commit ends with the connection, and the server takes everything back.
        self.told(client, BEGIN).await?;
        let applied = self.answered(async {
            let args = vec![self.node.as_str().into(), batch.number.into()];
            let noted = client.run(&[Statement { sql: NOTE_BATCH.into(), args }]).await?;
            if noted.iter().all(Vec::is_empty) {
                return Ok(None);
            }
            batch::apply(client, batch.writes).await.map(Some)
        });
        let touched = match applied.await {
            Ok(Some(touched)) => touched,
            given_up => {
                // Where the connection still answers, it is free for the next.
                let answers = !matches!(given_up, Err(StoreError::Silent { .. }));
                if answers && self.told(client, "rollback").await.is_ok() {
                    self.give_back(lent);
                }
                return given_up.map(|_committed_before| batch.unsettled.take().unwrap_or_default());
            }
        };
        let mut cut = CutCommit::No;
        if let Some(faults) = self.faults {
            sleep(faults.delay()).await;
            if faults.conflict() {
                return Err(StoreError::Conflict(Arc::from(Box::from("on purpose"))));
            }
            cut = faults.cut();
        }
        if cut != CutCommit::Before {
            let committed = self.told(client, "commit").await;
            if committed.is_ok() && cut == CutCommit::No {
                self.give_back(lent);
                return Ok(touched);
            }
        }
        // An error at this point says nothing: the server may have committed before the connection broke, or do so yet.
        drop(lent);
        if self.was_committed(batch.number).await? {
            return Ok(touched);
        }
        batch.unsettled = Some(touched);
        Err(StoreError::Conflict(Arc::from(Box::from("the connection broke before the commit"))))
    }

    async fn was_committed(&self, number: i64) -> Result<bool, StoreError> {
        let last = [Statement::new(LAST_BATCH).bind(self.node.as_str())];
        let read = async {
            loop {
                match self.read_once(&last).await {
                    Ok(rows) => return rows.first().and_then(|rows| rows.first()?.get("batch").cloned()),
                    Err(_) => sleep(SETTLE_PAUSE).await,
                }
            }
        };
        match timeout(SETTLE, read).await {
            Ok(found) => Ok(found == Some(Value::Int(Some(number)))),
            Err(_) => Err(StoreError::CommitUnknown { place: self.place.clone() }),
        }
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        self.free.close();
        lock(&self.idle).clear();
    }

    async fn lend(&self) -> Result<LentConnection, StoreError> {
        let deadline = Instant::now() + FREE;
        let free = timeout_at(deadline, Arc::clone(&self.free).acquire_owned()).await;
        let permit = free.map_err(|_| self.silent())?.map_err(|_| StoreError::Closed)?;
        loop {
            let idle = {
                let mut idle = lock(&self.idle);
                idle.retain(|connection| !connection.client.is_closed());
                idle.pop()
            };
            let connected = match idle {
                Some(connection) => Ok(connection),
                None => self.connect().await,
            };
            match connected {
                // One that is in use now may be free in a moment.
                Err(StoreError::NoConnection { .. }) if Instant::now() < deadline => sleep(FREE_PAUSE).await,
                connected => return Ok(LentConnection { connection: connected?, _permit: permit }),
            }
        }
    }

    fn give_back(&self, lent: LentConnection) {
        if !self.free.is_closed() {
            lock(&self.idle).push(lent.connection);
        }
    }

    async fn connect(&self) -> Result<PostgresConnection, StoreError> {
        let connecting = async {
            if self.config.get_ssl_mode() == SslMode::Disable {
                let (client, connection) = self.said(self.config.connect(NoTls).await)?;
                // Whoever uses the client hears when the connection breaks.
                return Ok(PostgresConnection { client, task: tokio::spawn(async { drop(connection.await) }) });
            }
            let (tls, _) = MakeRustlsConnect::with_native_certs().map_err(|_| StoreError::Certificates)?;
            let (client, connection) = self.said(self.config.connect(tls).await)?;
            Ok(PostgresConnection { client, task: tokio::spawn(async { drop(connection.await) }) })
        };
        // A server that takes the connection and then says nothing is as good as none.
        timeout(CONNECT, connecting).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Text must be able to hold every letter.
    async fn check_encoding(&self) -> Result<(), StoreError> {
        let lent = self.lend().await?;
        let asked = lent.connection.client.query_typed("select current_setting('server_encoding')", &[]).await;
        let encoding: String = self.said(asked)?.first().map(|row| row.get(0)).unwrap_or_default();
        self.give_back(lent);
        if encoding != "UTF8" {
            return Err(StoreError::Encoding { place: self.place.clone(), encoding });
        }
        Ok(())
    }

    /// Brings the database to the newest version. Two programs may try at once: the second finds that it is done.
    async fn bring_up(&self) -> Result<(), StoreError> {
        let mut tries = 3;
        loop {
            let found = self.versions().await?;
            if found.schema >= KNOWN {
                return Ok(());
            }
            tries -= 1;
            match self.migrate(found).await {
                Err(_) if tries > 0 => sleep(SETTLE_PAUSE).await,
                migrated => return migrated,
            }
        }
    }

    async fn migrate(&self, found: Versions) -> Result<(), StoreError> {
        let lent = self.lend().await?;
        let client = &lent.connection.client;
        self.said(client.batch_execute("begin").await)?;
        for step in found.steps() {
            self.said(client.batch_execute(&in_words_of(Words::Postgres, step)).await)?;
        }
        run_all(client, &Versions::note()).await?;
        self.said(client.batch_execute("commit").await)?;
        self.give_back(lent);
        Ok(())
    }

    async fn versions(&self) -> Result<Versions, StoreError> {
        const TABLES: &str = "select (count(*) filter (where table_name in ('calls', 'entries', 'meta')))::bigint \
                              from information_schema.tables where table_schema = current_schema()";
        let lent = self.lend().await?;
        let rows = self.said(lent.connection.client.query_typed(TABLES, &[]).await)?;
        let tables: i64 = rows.first().map_or(0, |row| row.get(0));
        self.give_back(lent);
        match tables {
            0 => Ok(Versions { schema: 0, oldest_reader: 0 }),
            3 => {
                let rows = self.read(&[Versions::statement()]).await?;
                Versions::of(rows.first().map(Vec::as_slice).unwrap_or_default()).check(&self.place)
            }
            _ => Err(StoreError::Foreign { place: self.place.clone() }),
        }
    }

    /// Waits for the server's answer, but not for ever.
    async fn answered<T>(&self, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(ANSWER, asked).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// The same for a word that has no rows.
    async fn told(&self, client: &Client, word: &str) -> Result<(), StoreError> {
        self.answered(async { self.said(client.batch_execute(word).await) }).await
    }

    fn said<T>(&self, answer: Result<T, tokio_postgres::Error>) -> Result<T, StoreError> {
        answer.map_err(|err| self.error(err))
    }

    /// The error with the name of the server in it, where that helps.
    fn error(&self, err: tokio_postgres::Error) -> StoreError {
        let mut err = StoreError::from(err);
        if let StoreError::Unreachable { place, .. }
        | StoreError::NoConnection { place }
        | StoreError::NotLetIn { place, .. } = &mut err
        {
            place.clone_from(&self.place);
        }
        err
    }

    fn silent(&self) -> StoreError {
        StoreError::Silent { place: self.place.clone() }
    }
}

/// Runs the statements in their order without waiting for one answer before the next is sent. The first that fails is
/// told.
pub(crate) async fn run_all(client: &Client, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
    let groups: Vec<&[Statement]> =
        statements.chunk_by(|one, next| one.sql == next.sql && only_inserts(&one.sql)).collect();
    let mut answers: Vec<_> = groups.iter().map(|group| maybe_done(Box::pin(run_together(client, group)))).collect();
    // Invariant: a statement is sent when its future is first looked at, and answers come in the order of the statements.
    poll_fn(|cx| {
        let mut waiting = false;
        for answer in &mut answers {
            waiting |= answer.poll_unpin(cx).is_pending();
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let mut rows = Vec::with_capacity(statements.len());
    for (group, answer) in groups.iter().zip(&mut answers) {
        rows.extend(Pin::new(answer).take_output().transpose()?);
        // Inserts have no rows to give back.
        rows.resize(rows.len() + group.len() - 1, Vec::new());
    }
    Ok(rows)
}

/// Whether a statement inserts a row and does nothing else.
fn only_inserts(sql: &str) -> bool {
    sql.starts_with("insert into ")
        && sql.contains(VALUES)
        && !sql.contains(" returning ")
        && !sql.contains(" on conflict ")
}

const VALUES: &str = " values (";

/// Several inserts of the same text are one of many rows: the server reads and plans each text anew.
async fn run_together(client: &Client, group: &[Statement]) -> Result<Vec<Row>, StoreError> {
    match group {
        [one] => run(client, one).await,
        many => run(client, &with_many_rows(many)).await,
    }
}

fn with_many_rows(inserts: &[Statement]) -> Statement {
    let text = inserts.first().map_or("", |insert| &insert.sql);
    let (into, row) = text.split_once(VALUES).unwrap_or((text, ""));
    let (mut sql, mut args) = (format!("{into} values "), Vec::new());
    for (place, insert) in inserts.iter().enumerate() {
        sql.push_str(if place == 0 { "(" } else { ", (" });
        push_renumbered(&mut sql, row, args.len());
        args.extend(insert.args.iter().cloned());
    }
    Statement { sql: sql.into(), args }
}

/// Adds a text with every `$n` counted from another number.
fn push_renumbered(sql: &mut String, text: &str, before: usize) {
    let mut parts = text.split('$');
    sql.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        let number: usize = part[..end].parse().unwrap_or_default();
        sql.push_str(&format!("${}{}", number + before, &part[end..]));
    }
}

async fn run(client: &Client, statement: &Statement) -> Result<Vec<Row>, StoreError> {
    let args: Vec<(&(dyn ToSql + Sync), Type)> = statement.args.iter().map(typed).collect();
    let rows = client.query_typed(&statement.sql, &args).await?;
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let columns: Arc<[String]> = first.columns().iter().map(|column| column.name().to_owned()).collect();
    rows.iter().map(|row| read_row(row, &columns)).collect()
}

fn typed(value: &Value) -> (&(dyn ToSql + Sync), Type) {
    match value {
        Value::Text(text) => (text, Type::TEXT),
        Value::Int(number) => (number, Type::INT8),
        Value::Bytes(bytes) => (bytes, Type::BYTEA),
    }
}

fn read_row(row: &tokio_postgres::Row, columns: &Arc<[String]>) -> Result<Row, StoreError> {
    let value = |place: usize| -> Result<Value, tokio_postgres::Error> {
        Ok(match *row.columns()[place].type_() {
            Type::INT8 => Value::Int(row.try_get(place)?),
            Type::INT4 => Value::Int(row.try_get::<_, Option<i32>>(place)?.map(i64::from)),
            Type::BOOL => Value::Int(row.try_get::<_, Option<bool>>(place)?.map(i64::from)),
            Type::BYTEA => Value::Bytes(row.try_get(place)?),
            _ => Value::Text(row.try_get(place)?),
        })
    };
    let values = (0..columns.len()).map(value).collect::<Result<_, _>>()?;
    Ok(Row { columns: Arc::clone(columns), values })
}

/// Where it is, as people may see it.
fn place(config: &Config) -> String {
    let host = config.get_hosts().first().map_or_else(
        || "localhost".to_owned(),
        |host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        },
    );
    let port = config.get_ports().first().map_or_else(String::new, |port| format!(":{port}"));
    format!("postgres://{host}{port}/{}", config.get_dbname().or(config.get_user()).unwrap_or_default())
}

/// Whether nobody is between: a socket, or this machine.
fn is_near(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    })
}

/// The lease by which others see that a node lives. Its time is the server's, so that no two clocks are compared; SQLite has
/// locked files instead, so that these statements need not be in the common dialect.
pub(crate) struct NodeLease;

impl NodeLease {
    /// Makes or prolongs it.
    pub(crate) fn renew(id: &str, lease: Duration) -> Statement {
        Self::statement(
            "insert into nodes (id, lease_until, batch) \
             values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2, 0) \
             on conflict (id) do update set lease_until = excluded.lease_until",
        )
        .bind(id)
        .bind(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX))
    }

    /// Gives it back.
    pub(crate) fn end(id: &str) -> Statement {
        Self::statement("delete from nodes where id = $1").bind(id)
    }

    /// A row if it has not run out.
    pub(crate) fn alive(id: &str) -> Statement {
        let sql = "select 1 as alive from nodes where id = $1 \
                   and lease_until > (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        Self::statement(sql).bind(id)
    }

    /// Every other one that has not run out.
    pub(crate) fn others(id: &str) -> Statement {
        let sql = "select id from nodes where id <> $1 \
                   and lease_until > (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        Self::statement(sql).bind(id)
    }

    /// How many have run out an hour ago or longer.
    pub(crate) fn count_dead() -> Statement {
        Self::statement(
            "select count(*) as count from nodes where \
             lease_until < (extract(epoch from clock_timestamp()) * 1000000)::bigint - 3600000000",
        )
    }

    /// Removes them.
    pub(crate) fn forget_dead() -> Statement {
        Self::statement(
            "delete from nodes where \
             lease_until < (extract(epoch from clock_timestamp()) * 1000000)::bigint - 3600000000 returning id",
        )
    }

    fn statement(sql: &'static str) -> Statement {
        Statement { sql: sql.into(), args: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_of_one_text_become_one_of_many_rows() {
        let insert = |number: i64, text: &str| {
            Statement::new("insert into t (a, b, c) values ($1, $2, 1)").bind(number).bind(text)
        };
        let together = with_many_rows(&[insert(1, "x"), insert(2, "y")]);
        assert_eq!(together.sql, "insert into t (a, b, c) values ($1, $2, 1), ($3, $4, 1)");
        assert_eq!(together.args, [Value::from(1_i64), Value::from("x"), Value::from(2_i64), Value::from("y")]);
        assert!(only_inserts(&together.sql));
        for other in [
            "insert into t (a) values ($1) returning 1 as made",
            "insert into t (a) values ($1) on conflict (a) do nothing",
            "insert into t (a) select $1",
            "delete from t where a = $1",
        ] {
            assert!(!only_inserts(other), "{other}");
        }
    }
}

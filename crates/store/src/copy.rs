//! Copying everything into another database, and counting it on both sides.

use haft_runtime::HouseWide;

use crate::{
    Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::Columns,
    sql::{Row, Statement, Value},
};

/// How many rows are copied at once.
const PAGE: i64 = 200;

/// A table: its name, its columns, and how many of them, from the first on, are its key.
struct TableSpec {
    name: &'static str,
    columns: &'static [&'static str],
    key: usize,
}

/// Every table but those that say how the database itself is (`meta`) and who is alive (`nodes`).
const TABLES: &[TableSpec] = &[
    TableSpec { name: "heads", columns: &["tenant", "seq", "version", "forgotten"], key: 1 },
    TableSpec { name: "entries", columns: &["tenant", "seq", "at", "call", "kinds", "events"], key: 2 },
    TableSpec {
        name: "open_calls",
        columns: &[
            "tenant",
            "id",
            "workspace",
            "tool",
            "parent",
            "caller",
            "source",
            "auto_approve",
            "owner",
            "state",
            "stop_wanted",
            "answered",
            "asked",
            "status",
            "code",
            "isolation",
            "turn_of",
            "turn_direction",
            "started_at",
            "finished_at",
            "duration_ms",
            "turn",
            "input",
            "outcome",
        ],
        key: 2,
    },
    TableSpec {
        name: "calls",
        columns: &[
            "tenant",
            "id",
            "workspace",
            "tool",
            "parent",
            "caller",
            "source",
            "auto_approve",
            "owner",
            "ended_seq",
            "asked",
            "status",
            "code",
            "isolation",
            "turn_of",
            "turn_direction",
            "started_at",
            "finished_at",
            "duration_ms",
            "turn",
            "input",
            "outcome",
        ],
        key: 2,
    },
    TableSpec {
        name: "questions",
        columns: &["tenant", "call", "number", "workspace", "asked_at", "expires_at", "open", "answer", "body"],
        key: 3,
    },
    TableSpec {
        name: "grants",
        columns: &[
            "tenant",
            "id",
            "workspace",
            "tool",
            "bounds",
            "caller",
            "until",
            "uses_left",
            "used",
            "created_at",
            "last_used",
            "revoked",
        ],
        key: 2,
    },
    TableSpec { name: "outputs", columns: &["tenant", "call", "body"], key: 2 },
    TableSpec {
        name: "counters",
        columns: &[
            "tenant",
            "workspace",
            "day",
            "tool",
            "bucket",
            "calls",
            "success",
            "error",
            "rejected",
            "cancelled",
            "asked",
            "cached",
            "retried",
            "total_ms",
        ],
        key: 5,
    },
];

/// How many rows of a table there are on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Which table.
    pub table: &'static str,
    /// How many rows were there to copy.
    pub from: i64,
    /// How many rows are in the copy now.
    pub to: i64,
}

impl Store {
    /// Copies everything into another database that is still empty, and counts it on both sides. Nobody may write to
    /// either meanwhile. `told` hears of every page.
    pub async fn copy_to(
        &self,
        _house: &HouseWide,
        other: &Store,
        told: impl Fn(&'static str, i64),
    ) -> Result<Vec<CopiedTable>, StoreError> {
        if let Some(busy) = self.first_alive().await? {
            return Err(StoreError::InUse(busy));
        }
        for table in TABLES {
            if other.count(table).await? > 0 {
                return Err(StoreError::NotEmpty(table.name));
            }
        }
        let mut copied = Vec::new();
        // The numbers come last: the first page of anything else would make them anew.
        for table in TABLES.iter().skip(1).chain(TABLES.first()) {
            self.copy_table(other, table, &told).await?;
            copied.push(CopiedTable {
                table: table.name,
                from: self.count(table).await?,
                to: other.count(table).await?,
            });
        }
        Ok(copied)
    }

    /// Removes everything, so that a copy can take its place.
    pub async fn clear(&self, _house: &HouseWide) -> Result<(), StoreError> {
        if let Some(busy) = self.first_alive().await? {
            return Err(StoreError::InUse(busy));
        }
        for table in TABLES {
            let delete = Statement::new(format!("delete from {} returning 1 as gone", table.name));
            self.write(StoreWrite::Change(ConditionalWrite::of_database(delete))).await?;
        }
        Ok(())
    }

    async fn copy_table(
        &self,
        other: &Store,
        table: &TableSpec,
        told: &impl Fn(&'static str, i64),
    ) -> Result<(), StoreError> {
        let (mut last, mut done) = (None, 0);
        loop {
            let rows = self.read(table.page(last.as_ref())).await?;
            let Some(end) = rows.last() else { return Ok(()) };
            last = Some(end.clone());
            done += i64::try_from(rows.len()).unwrap_or(i64::MAX);
            let mut inserts = rows.iter().map(|row| table.insert(row));
            if let Some(first) = inserts.next() {
                // Without a tenant of its own: it takes no numbers.
                let change = inserts.fold(
                    ConditionalWrite::of_database(first.push(" returning 1 as copied")),
                    ConditionalWrite::and_then,
                );
                other.write(StoreWrite::Change(change)).await?;
            }
            told(table.name, done);
        }
    }

    async fn count(&self, table: &TableSpec) -> Result<i64, StoreError> {
        let count = Statement::new(format!("select count(*) as rows from {}", table.name));
        self.read_one(count).await?.map_or(Ok(0), |row| Columns { of: table.name, row: &row }.number("rows"))
    }

    /// A call that another process carries at this moment.
    async fn first_alive(&self) -> Result<Option<String>, StoreError> {
        let carried = Statement::new("select id, owner from open_calls where state <> 'waiting' order by id");
        for row in self.read(carried).await? {
            let columns = Columns { of: "open_calls", row: &row };
            if matches!(self.node().look_at(&columns.text("owner")?).await, crate::nodes::Life::Alive) {
                return Ok(Some(columns.text("id")?));
            }
        }
        Ok(None)
    }
}

impl TableSpec {
    /// The next rows after one, in the order of the key.
    fn page(&self, after: Option<&Row>) -> Statement {
        let (columns, key) = (self.columns.join(", "), self.columns[..self.key].join(", "));
        let mut page = Statement::new(format!("select {columns} from {}", self.name));
        if let Some(row) = after {
            page = page.push(&format!(" where ({key}) > ("));
            for (place, value) in row.values.iter().take(self.key).enumerate() {
                page = page.push_bind(if place == 0 { "" } else { ", " }, value.clone());
            }
            page = page.push(")");
        }
        page.push_bind(&format!(" order by {key} limit "), PAGE)
    }

    fn insert(&self, row: &Row) -> Statement {
        let mut insert = Statement::new(format!("insert into {} ({}) values (", self.name, self.columns.join(", ")));
        for (place, value) in row.values.iter().enumerate() {
            insert = insert.push_bind(if place == 0 { "" } else { ", " }, self.typed(place, value));
        }
        insert.push(")")
    }

    /// SQLite does not say of which type a null is, and PostgreSQL wants to know.
    fn typed(&self, place: usize, value: &Value) -> Value {
        const NUMBERS: [&str; 5] = ["finished_at", "duration_ms", "until", "uses_left", "last_used"];
        match value {
            Value::Text(None) | Value::Int(None) if NUMBERS.contains(&self.columns[place]) => Value::Int(None),
            Value::Text(_) | Value::Int(_) | Value::Bytes(_) => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table or a column that was added and forgotten here would be left behind.
    #[test]
    fn every_column_of_every_table_is_copied() {
        let text = crate::schema::VERSIONS.concat();
        let known: Vec<String> =
            TABLES.iter().map(|table| format!("{}({})", table.name, table.columns.join(","))).collect();
        let mut found = Vec::new();
        for table in text.split("create table ").skip(1) {
            let (name, rest) = table.split_once(" (").unwrap();
            let body = rest.split(") {table}").next().unwrap();
            let lines = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("primary key"));
            let columns: Vec<&str> = lines.map(|line| line.split(' ').next().unwrap()).collect();
            found.push(format!("{name}({})", columns.join(",")));
        }
        found.retain(|table| !table.starts_with("meta(") && !table.starts_with("nodes("));
        assert_eq!(found, known);
    }
}

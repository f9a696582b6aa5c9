//! Copying everything into another database, and counting it on both sides.

use haft_runtime::HouseWide;

use crate::{
    DatabaseSnapshot, Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::Columns,
    schema::VERSIONS,
    sql::{Row, Statement, Value},
};

/// How many rows are copied at once, and how many of those that may be large.
const PAGE: i64 = 200;
const LARGE_PAGE: i64 = 8;

/// How the database itself is, and who is alive: no part of what a copy holds.
const LEFT_OUT: [&str; 2] = ["meta", "nodes"];

/// A table as the schema has it. Its key comes first in its columns.
pub(crate) struct TableSpec {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<ColumnSpec>,
    key: usize,
}

pub(crate) struct ColumnSpec {
    pub(crate) name: &'static str,
    is_number: bool,
    is_bytes: bool,
}

/// Every table that is copied, from the text of the schema: none can be forgotten here.
pub(crate) fn tables() -> Vec<TableSpec> {
    let texts = VERSIONS.iter().flat_map(|text| text.split("create table ").skip(1));
    let mut tables: Vec<TableSpec> =
        texts.filter_map(TableSpec::read).filter(|table| !LEFT_OUT.contains(&table.name)).collect();
    // A later version adds columns to the tables of an earlier one.
    let added = VERSIONS.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("alter table "));
    for (name, column) in added.filter_map(|line| line.split_once(" add column ")) {
        let table = tables.iter_mut().find(|table| table.name == name);
        table.into_iter().for_each(|table| table.columns.extend(ColumnSpec::read(column)));
    }
    tables
}

/// The tables whose rows belong to one tenant each.
pub(crate) fn tables_of_tenants() -> impl Iterator<Item = &'static str> {
    let of_tenant = |table: &TableSpec| table.columns.iter().any(|column| column.name == "tenant");
    tables().into_iter().filter(of_tenant).map(|table| table.name)
}

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

/// Whether a copy takes the place of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOver {
    /// It is refused where anything is.
    Nothing,
    /// What is there goes in the same transaction, where the database is a server.
    Everything,
}

impl Store {
    /// Copies everything into another database that is still empty, and counts it on both sides. Nobody may write to
    /// either meanwhile. `told` hears of every page.
    pub async fn copy_to(
        &self,
        house: &HouseWide,
        other: &Store,
        told: impl Fn(&'static str, i64),
    ) -> Result<Vec<CopiedTable>, StoreError> {
        if let Some(busy) = self.first_alive().await? {
            return Err(StoreError::InUse(busy));
        }
        self.snapshot(house).await?.copy_to(house, (other, CopyOver::Nothing), told).await
    }

    /// Removes everything, so that a copy can take its place.
    pub async fn clear(&self, _house: &HouseWide) -> Result<(), StoreError> {
        if let Some(busy) = self.first_alive().await? {
            return Err(StoreError::InUse(busy));
        }
        for table in tables() {
            let delete = Statement::new(format!("delete from {} returning 1 as gone", table.name));
            self.write(StoreWrite::Change(ConditionalWrite::of_database(delete))).await?;
        }
        Ok(())
    }

    /// The first table that has rows; `None` where the database is empty.
    pub async fn first_filled(&self, _house: &HouseWide) -> Result<Option<&'static str>, StoreError> {
        for table in tables() {
            if self.read_one(table.any_row()).await?.is_some() {
                return Ok(Some(table.name));
            }
        }
        Ok(None)
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

impl DatabaseSnapshot {
    /// How many rows each table has.
    pub async fn counts(&self, _house: &HouseWide) -> Result<Vec<(&'static str, i64)>, StoreError> {
        let mut counts = Vec::new();
        for table in tables() {
            counts.push((table.name, count(&table, &self.read(&table.count()).await?)?));
        }
        Ok(counts)
    }

    /// Copies everything into another database, and counts it on both sides. A server has all of it or nothing
    /// afterwards. `told` hears of every page.
    pub async fn copy_to(
        &self,
        house: &HouseWide,
        (other, over): (&Store, CopyOver),
        told: impl Fn(&'static str, i64),
    ) -> Result<Vec<CopiedTable>, StoreError> {
        let tables = tables();
        let mut first = match (over, other.first_filled(house).await?) {
            (CopyOver::Nothing, Some(filled)) => return Err(StoreError::NotEmpty(filled)),
            (CopyOver::Nothing, None) => None,
            (CopyOver::Everything, _) => Some(tables.iter().map(TableSpec::delete).collect()),
        };
        let (mut place, mut last, mut done) = (0, None, 0);
        let next_page = async || -> Result<Option<Vec<Statement>>, StoreError> {
            if let Some(first) = first.take() {
                return Ok(Some(first));
            }
            while let Some(table) = tables.get(place) {
                let rows = self.read(&table.page(last.as_ref())).await?;
                if let Some(end) = rows.last() {
                    last = Some(end.clone());
                    done += i64::try_from(rows.len()).unwrap_or(i64::MAX);
                    told(table.name, done);
                    return Ok(Some(rows.iter().map(|row| table.insert(row)).collect()));
                }
                (place, last, done) = (place + 1, None, 0);
            }
            Ok(None)
        };
        other.load(next_page).await?;
        if let Some(key) = self.master_key_number().await? {
            other.note_master_key(house, key).await?;
        }
        let mut copied = Vec::new();
        for table in &tables {
            let from = count(table, &self.read(&table.count()).await?)?;
            copied.push(CopiedTable { table: table.name, from, to: count(table, &other.read(table.count()).await?)? });
        }
        Ok(copied)
    }
}

fn count(table: &TableSpec, rows: &[Row]) -> Result<i64, StoreError> {
    rows.first().map_or(Ok(0), |row| Columns { of: table.name, row }.number("rows"))
}

impl TableSpec {
    /// A table from its text: a line for each column, or for the key.
    fn read(text: &'static str) -> Option<Self> {
        let (name, rest) = text.split_once(" (")?;
        let (body, _) = rest.split_once("\n) {")?;
        let mut table = Self { name, columns: Vec::new(), key: 1 };
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(key) = line.strip_prefix("primary key (") {
                table.key = key.split(',').count();
                continue;
            }
            table.columns.push(ColumnSpec::read(line)?);
        }
        Some(table)
    }

    fn count(&self) -> Statement {
        Statement::new(format!("select count(*) as rows from {}", self.name))
    }

    fn any_row(&self) -> Statement {
        Statement::new(format!("select 1 as filled from {} limit 1", self.name))
    }

    fn delete(&self) -> Statement {
        Statement::new(format!("delete from {}", self.name))
    }

    /// The names of the columns of its key.
    pub(crate) fn key_names(&self) -> Vec<&'static str> {
        self.columns.iter().take(self.key).map(|column| column.name).collect()
    }

    /// The names of the first so many columns, with commas between.
    fn names(&self, count: usize) -> String {
        let names: Vec<&str> = self.columns.iter().take(count).map(|column| column.name).collect();
        names.join(", ")
    }

    /// The next rows after one, in the order of the key.
    fn page(&self, after: Option<&Row>) -> Statement {
        let (columns, key) = (self.names(self.columns.len()), self.names(self.key));
        let mut page = Statement::new(format!("select {columns} from {}", self.name));
        if let Some(row) = after {
            page = page.push(&format!(" where ({key}) > ("));
            for (place, value) in row.values.iter().take(self.key).enumerate() {
                page = page.push_bind(if place == 0 { "" } else { ", " }, value.clone());
            }
            page = page.push(")");
        }
        let rows = if self.columns.iter().any(|column| column.is_bytes) { LARGE_PAGE } else { PAGE };
        page.push_bind(&format!(" order by {key} limit "), rows)
    }

    fn insert(&self, row: &Row) -> Statement {
        let columns = self.names(self.columns.len());
        let mut insert = Statement::new(format!("insert into {} ({columns}) values (", self.name));
        for (place, (value, column)) in row.values.iter().zip(&self.columns).enumerate() {
            insert = insert.push_bind(if place == 0 { "" } else { ", " }, column.typed(value));
        }
        insert.push(")")
    }
}

impl ColumnSpec {
    /// A column from its text: its name, then its type.
    fn read(text: &'static str) -> Option<Self> {
        let (name, kind) = text.split_once(' ')?;
        Some(Self { name, is_number: kind.starts_with("{int}"), is_bytes: kind.starts_with("{bytes}") })
    }

    /// SQLite does not say of which type a null is, and PostgreSQL wants to know.
    fn typed(&self, value: &Value) -> Value {
        match value {
            Value::Text(None) if self.is_number => Value::Int(None),
            Value::Text(_) | Value::Int(_) | Value::Bytes(_) => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of a table as a new database has them.
    fn columns_in_database(table: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        std::fs::File::create(&path).unwrap();
        drop(crate::sqlite::Sqlite::open(&path, crate::Durability::Normal, None).unwrap());
        let conn = rusqlite::Connection::open(&path).unwrap();
        let mut columns = conn.prepare(&format!("pragma table_info({table})")).unwrap();
        let names = columns.query_map([], |row| row.get::<_, String>("name")).unwrap();
        names.collect::<Result<Vec<_>, _>>().unwrap().join(", ")
    }

    #[test]
    fn the_tables_are_those_of_the_schema() {
        let found: Vec<(&str, String)> = tables().iter().map(|table| (table.name, table.names(table.key))).collect();
        let keys = |name: &str| found.iter().find(|(table, _)| *table == name).map(|(_, key)| key.as_str());
        assert_eq!(found.len(), VERSIONS.concat().matches("create table ").count() - LEFT_OUT.len());
        assert_eq!(keys("heads"), Some("tenant"));
        assert_eq!(keys("entries"), Some("tenant, seq"));
        assert_eq!(keys("counters"), Some("tenant, workspace, day, tool, bucket"));
        for table in tables() {
            let key = format!("primary key ({})", table.names(table.key));
            assert!(table.key == 1 || VERSIONS.concat().contains(&key), "{}: the key comes first", table.name);
            assert_eq!(columns_in_database(table.name), table.names(table.columns.len()), "{}", table.name);
            assert!(table.columns.len() > 2 && table.columns.iter().any(|column| !column.is_number), "{}", table.name);
        }
    }
}

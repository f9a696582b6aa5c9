//! The tables, their version, and which programs may use them.

use haft_runtime::HouseWide;

use crate::{
    StoreError,
    sql::{Row, Statement, Value},
};

/// Each text leads from the version that is its index to the next.
pub(crate) const VERSIONS: &[&str] = &[include_str!("../schema/0001.sql"), include_str!("../schema/0002.sql")];

/// The newest version that is known here.
pub(crate) const KNOWN: i64 = 2;

/// The oldest program, by the newest version that it knows, that may use a database of the newest version. A change that
/// only adds leaves this as it is.
pub(crate) const OLDEST_READER: i64 = 1;

impl crate::Store {
    /// The newest version of the tables that this program knows.
    pub fn newest_schema(_house: &HouseWide) -> i64 {
        KNOWN
    }
}

/// What a database says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The version of its tables.
    pub(crate) schema: i64,
    /// The oldest program that may use it.
    pub(crate) oldest_reader: i64,
}

impl Versions {
    /// What to read from a database that has the table `meta`.
    pub(crate) fn statement() -> Statement {
        Statement::new("select name, number from meta order by name")
    }

    /// From the rows of that statement.
    pub(crate) fn of(rows: &[Row]) -> Self {
        let number = |wanted: &str| {
            let named = |row: &&Row| row.get("name") == Some(&Value::from(wanted));
            let Some(Value::Int(Some(number))) = rows.iter().find(named).and_then(|row| row.get("number")) else {
                return 0;
            };
            *number
        };
        Self { schema: number("schema"), oldest_reader: number("oldest_reader") }
    }

    /// Refuses a database that needs a newer program, or that does not say which one it needs. A newer one that only added
    /// something may be used.
    pub(crate) fn check(self, place: &str) -> Result<Self, StoreError> {
        if self.schema == 0 {
            return Err(StoreError::Foreign { place: place.to_owned() });
        }
        if self.oldest_reader > KNOWN {
            let place = place.to_owned();
            return Err(StoreError::Newer { place, needs: self.oldest_reader, known: KNOWN });
        }
        Ok(self)
    }

    /// The texts that lead from this version to the newest.
    pub(crate) fn steps(self) -> &'static [&'static str] {
        VERSIONS.get(usize::try_from(self.schema).unwrap_or(0)..).unwrap_or_default()
    }

    /// What writes the newest versions down.
    pub(crate) fn note() -> [Statement; 2] {
        const NOTE: &str = "insert into meta (name, number) values ($1, $2) \
                            on conflict (name) do update set number = excluded.number";
        let note = |name: &str, number: i64| Statement::new(NOTE).bind(name).bind(number);
        [note("schema", KNOWN), note("oldest_reader", OLDEST_READER)]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_text() {
        assert_eq!(VERSIONS.len() as i64, KNOWN);
    }

    #[test]
    fn an_older_program_is_refused_only_by_what_it_cannot_read() {
        let newer = Versions { schema: KNOWN + 3, oldest_reader: KNOWN };
        assert!(newer.check("x").is_ok());
        let err = Versions { oldest_reader: KNOWN + 1, ..newer }.check("x").unwrap_err();
        assert!(err.to_string().contains("newer haft"), "{err}");
    }

    /// The steps that SQLite would take for a statement.
    pub(crate) fn plan(statement: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        std::fs::File::create(&path).unwrap();
        drop(crate::sqlite::Sqlite::open(&path, crate::Durability::Normal, None).unwrap());
        let conn = rusqlite::Connection::open(&path).unwrap();
        let mut plan = conn.prepare(&format!("explain query plan {statement}")).unwrap();
        let steps = plan.raw_query().mapped(|step| step.get("detail"));
        steps.collect::<Result<_, _>>().unwrap()
    }

    /// Fails when a statement across all tenants reads more than this index of a few rows.
    pub(crate) fn assert_reads_only(statement: &str, index: &str) {
        let steps = plan(statement);
        assert!(steps[0].contains(index), "{statement}\n{steps:?}");
    }

    /// Fails when one of the statements reads a whole table, or sorts what an index could give in order.
    pub(crate) fn assert_quick(statements: &[&str]) {
        for statement in statements {
            for step in plan(statement) {
                // A row of constants is no table.
                assert!(!step.starts_with("SCAN") || step == "SCAN CONSTANT ROW", "{statement}\n{step}");
                assert!(!step.contains("TREE FOR ORDER BY"), "{statement}\n{step}");
            }
        }
    }
}

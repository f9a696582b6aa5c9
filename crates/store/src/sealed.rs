//! Everything that the master key seals, in one list, and sealing it anew with another key.

use haft_runtime::HouseWide;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::Columns,
    copy::{TableSpec, tables},
    sql::{Statement, Value},
    tenants,
};

/// Every table with a column `sealed`, and what its rows are sealed as: a text with names of columns in braces.
const SEALED: &[(&str, &str)] = &[
    ("secrets", "{tenant}/{name}"),
    ("upstream_logins", "login/{tenant}/{server}/{holder}"),
    ("upstream_login_attempts", "login/{tenant}/{server}/{holder}"),
];

/// A value that the master key has sealed.
#[derive(Clone)]
pub struct SealedRow {
    table: &'static str,
    key: Vec<(&'static str, String)>,
    /// What it is sealed as.
    pub sealed_as: String,
    /// The value as it is sealed now.
    pub sealed: Vec<u8>,
}

impl SealedRow {
    /// Writes another value in the place of this one, if it is still there.
    fn replaced_by(&self, sealed: &[u8]) -> Statement {
        let mut update = Statement::new(format!("update {} set sealed = $1 where sealed = $2", self.table))
            .bind(sealed.to_vec())
            .bind(self.sealed.clone());
        for (column, value) in &self.key {
            update = update.push_bind(&format!(" and {column} = "), value.as_str());
        }
        update
    }
}

impl Store {
    /// Everything that is sealed, of all tenants.
    pub async fn sealed_rows(&self, _house: &HouseWide) -> Result<Vec<SealedRow>, StoreError> {
        let mut found = Vec::new();
        let tables = tables();
        for (name, sealed_as) in SEALED {
            let Some(table) = tables.iter().find(|table| table.name == *name) else { continue };
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            let all = Statement::new(format!("select {} from {name}", columns.join(", ")));
            for row in self.read(all).await? {
                found.push(sealed_row(table, sealed_as, &Columns { of: table.name, row: &row })?);
            }
        }
        Ok(found)
    }

    /// Notes another master key and writes what was sealed anew, all or nothing; `false` where the key of the database is
    /// another one than the first.
    pub async fn reseal(
        &self,
        _house: &HouseWide,
        (old, new): (i64, i64),
        rows: &[(SealedRow, Vec<u8>)],
    ) -> Result<bool, StoreError> {
        let first = ConditionalWrite::of_database(tenants::replace_key(old, new))
            .unaudited("the secrets stay what they are, and the operator belongs to no tenant");
        let updates = rows.iter().map(|(row, sealed)| row.replaced_by(sealed));
        self.change(updates.fold(first, ConditionalWrite::and_then)).await
    }
}

fn sealed_row(table: &TableSpec, sealed_as: &str, columns: &Columns<'_>) -> Result<SealedRow, StoreError> {
    let mut filled = sealed_as.to_owned();
    for column in &table.columns {
        let place = format!("{{{}}}", column.name);
        if let (true, Some(Value::Text(Some(text)))) = (filled.contains(&place), columns.row.get(column.name)) {
            filled = filled.replace(&place, text);
        }
    }
    let key = table.key_names().into_iter().map(|name| Ok((name, columns.text(name)?)));
    Ok(SealedRow {
        table: table.name,
        key: key.collect::<Result<_, StoreError>>()?,
        sealed_as: filled,
        sealed: columns.bytes("sealed")?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever adds a column `sealed` says here what its rows are sealed as; otherwise a new master key would not open them.
    #[test]
    fn every_sealed_column_is_in_the_list() {
        let has_sealed = |table: &&TableSpec| table.columns.iter().any(|column| column.name == "sealed");
        let tables = tables();
        let mut sealed: Vec<&str> = tables.iter().filter(has_sealed).map(|table| table.name).collect();
        let mut listed: Vec<&str> = SEALED.iter().map(|(table, _)| *table).collect();
        sealed.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, sealed);
        for (name, sealed_as) in SEALED {
            let table = tables.iter().find(|table| table.name == *name).unwrap();
            for place in sealed_as.split('{').skip(1) {
                let column = place.split('}').next().unwrap();
                assert!(table.columns.iter().any(|known| known.name == column), "{name}: no column {column}");
            }
        }
        let other = VERSIONS
            .concat()
            .lines()
            .filter(|line| line.contains("{bytes}") && !line.starts_with("--") && !line.contains("sealed {bytes}"))
            .count();
        assert_eq!(other, 2, "bytes that are not sealed: outputs and pieces of media; sealed ones are called `sealed`");
    }

    use crate::schema::VERSIONS;
}

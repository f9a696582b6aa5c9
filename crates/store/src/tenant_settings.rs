//! What the operator has set for one tenant.

use haft_runtime::Scope;
use serde_json::Value;

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::Statement,
    tenants,
};

const FIND: &str = "select value from tenant_settings where tenant = $1 and name = $2";
const INSERT: &str = "insert into tenant_settings (tenant, name, value) values ($1, $2, $3) \
                      on conflict do nothing returning 1 as saved";
const UPDATE: &str = "update tenant_settings set value = $3 where tenant = $1 and name = $2 and value = $4 \
                      returning 1 as saved";

impl Store {
    /// What a setting says for a tenant.
    pub async fn tenant_setting(&self, scope: &Scope, name: &str) -> Result<Option<String>, StoreError> {
        let found = self.read_one(Statement::new(FIND).bind(tenant(scope)).bind(name)).await?;
        found.map(|row| Columns { of: "tenant_settings", row: &row }.text("value")).transpose()
    }

    /// Changes a setting of a tenant, if it still says what it said before; `false` when it does not.
    pub async fn change_tenant_setting(
        &self,
        scope: &Scope,
        (name, before): (&str, Option<&str>),
        value: &str,
    ) -> Result<bool, StoreError> {
        let key = |sql| Statement::new(sql).bind(tenant(scope)).bind(name).bind(value);
        let change = match before {
            None => key(INSERT),
            Some(before) => key(UPDATE).bind(before),
        };
        let act = AuditEntry::new(AuditAction::SettingChanged, scope, ("setting", name))
            .change(before.map_or(Value::Null, said), said(value));
        let change = ConditionalWrite::new(tenant(scope), change).and_then(tenants::changed(scope));
        self.change(change.audited(act)).await
    }
}

/// What a setting says; most of them are JSON.
fn said(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_setting_is_found_without_reading_the_others() {
        crate::schema::tests::assert_quick(&[super::FIND, super::UPDATE]);
    }
}

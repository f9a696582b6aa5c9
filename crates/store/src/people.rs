//! People, and which tenants they belong to in which role.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError, TenantRecord,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants, upstream_logins,
    usage::within_quota,
};

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRecord {
    /// What they are found by.
    pub id: String,
    /// Their address, in lower case.
    pub email: String,
    /// The name that others read.
    pub name: String,
    /// The argon2id hash of their password, where they have one.
    pub password: Option<String>,
}

/// A person in a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Who.
    pub person: PersonRecord,
    /// In which role.
    pub role: String,
    /// Since when.
    pub since: Timestamp,
    /// Which notices they want, as JSON; `None` where they have not said.
    pub notices: Option<String>,
}

macro_rules! people {
    ($rest:literal) => {
        concat!("select id, email, name, password from people ", $rest)
    };
}
const INSERT: &str = "insert into people (id, email, name, password, created_at) values ($1, $2, $3, null, $4) \
                      on conflict do nothing returning 1 as added";
const BY_EMAIL: &str = people!("where email = $1");
const BY_ID: &str = people!("where id = $1");
const SET_PASSWORD: &str = "update people set password = $2 where id = $1 returning 1 as changed";
/// Somebody of several tenants keeps the name that they have.
const NAME: &str = "update people set name = $3 where id = $2 and not exists (select 1 from memberships \
                    where person = $2 and tenant <> $1) returning 1 as changed";
const JOIN: &str = concat!(
    "insert into memberships (tenant, person, role, created_at) select $1, $2, $3, $4",
    within_quota!("people", "memberships c where", "$1"),
    " on conflict do nothing returning 1 as added"
);
/// The last owner of a tenant stays one. Writes of a tenant come one after the other, so that two cannot both leave.
const CHANGE_ROLE: &str = "update memberships set role = $3 where tenant = $1 and person = $2 and ($3 = 'owner' \
                           or role <> 'owner' or exists (select 1 from memberships o where o.tenant = $1 \
                           and o.person <> $2 and o.role = 'owner')) returning 1 as changed";
const LEAVE: &str = "delete from memberships where tenant = $1 and person = $2 and (role <> 'owner' \
                     or exists (select 1 from memberships o where o.tenant = $1 and o.person <> $2 \
                     and o.role = 'owner')) returning 1 as removed";
const SET_NOTICES: &str =
    "update memberships set notices = $3 where tenant = $1 and person = $2 returning 1 as changed";
const ROLE: &str = "select role from memberships where tenant = $1 and person = $2";
const MEMBERS: &str = "select p.id, p.email, p.name, p.password, m.role, m.created_at, m.notices from memberships m \
                       join people p on p.id = m.person where m.tenant = $1 order by m.person";
const TENANTS: &str = "select t.id as tenant, t.slug, t.name, t.version, t.created_at, m.role from memberships m \
                       join tenants t on t.id = m.tenant where m.person = $1 order by m.tenant";
const END_SIGN_INS: &str = "delete from sign_ins where person = $1 and tenant = $2 and id <> $3";
const END_ALL_SIGN_INS: &str = "delete from sign_ins where person = $1 and id <> $2";
const END_LINKS: &str = "delete from sign_in_links where person = $1 and tenant = $2";
const END_ALL_LINKS: &str = "delete from sign_in_links where person = $1";
const END_KEYS: &str = "delete from api_keys where tenant = $1 and made_by = $2";
const CHANGED_EVERYWHERE: &str = "update tenants set version = version + 1 where id in (select tenant from memberships \
                                  where person = $1)";

impl Store {
    /// Adds a person; `false` when the address is taken.
    pub async fn add_person(&self, _house: &HouseWide, person: &PersonRecord) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let insert = Statement::new(INSERT).bind(person.id.as_str()).bind(person.email.as_str());
        let insert = insert.bind(person.name.as_str()).bind(now);
        // Whoever belongs to no tenant may nothing; joining one is the act.
        self.change(ConditionalWrite::of_database(insert).unaudited("nobody in any tenant yet")).await
    }

    /// The person with this address.
    pub async fn person_by_email(&self, _house: &HouseWide, email: &str) -> Result<Option<PersonRecord>, StoreError> {
        self.read_one(Statement::new(BY_EMAIL).bind(email)).await?.as_ref().map(person).transpose()
    }

    /// The person with this id.
    pub async fn person(&self, _house: &HouseWide, id: &str) -> Result<Option<PersonRecord>, StoreError> {
        self.read_one(Statement::new(BY_ID).bind(id)).await?.as_ref().map(person).transpose()
    }

    /// Keeps the hash of a person's password, and ends all their sign-ins and links but one.
    pub async fn set_password(&self, scope: &Scope, (id, hash): (&str, &str), but: &str) -> Result<bool, StoreError> {
        let set = ConditionalWrite::of_database(Statement::new(SET_PASSWORD).bind(id).bind(hash));
        let set = set.and_then(Statement::new(END_ALL_SIGN_INS).bind(id).bind(but));
        let set = set.and_then(Statement::new(END_ALL_LINKS).bind(id));
        let act = AuditEntry::new(AuditAction::PasswordSet, scope, ("person", id));
        self.change(set.and_then(Statement::new(CHANGED_EVERYWHERE).bind(id)).audited(act)).await
    }

    /// Changes the name of somebody who belongs to this tenant alone; `false` when they do not.
    pub async fn name_person(&self, scope: &Scope, person: &str, name: &str) -> Result<bool, StoreError> {
        let change = Statement::new(NAME).bind(tenant(scope)).bind(person).bind(name);
        let act = AuditEntry::new(AuditAction::PersonRenamed, scope, ("person", person));
        let act = act.change(Value::Null, json!({"name": name}));
        self.change(ConditionalWrite::new(tenant(scope), change).audited(act)).await
    }

    /// Takes somebody into a tenant; `false` when they are there already, or the tenant has as many people as it may.
    pub async fn add_member(&self, scope: &Scope, person: &str, role: &str) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let join = Statement::new(JOIN).bind(tenant(scope)).bind(person).bind(role).bind(now);
        let email = self.read_one(Statement::new(BY_ID).bind(person)).await?;
        let email = email.map(|row| Columns { of: "people", row: &row }.text("email")).transpose()?;
        let act = AuditEntry::new(AuditAction::PersonAdded, scope, ("person", person));
        let act = act.change(Value::Null, json!({"email": email, "role": role}));
        self.change(ConditionalWrite::new(tenant(scope), join).audited(act)).await
    }

    /// Gives somebody another role, and ends their sign-ins there but one. `false` when they are no member, or the last
    /// owner.
    pub async fn change_role(
        &self,
        scope: &Scope,
        (person, role): (&str, &str),
        but: &str,
    ) -> Result<bool, StoreError> {
        let change = Statement::new(CHANGE_ROLE).bind(tenant(scope)).bind(person).bind(role);
        let end = Statement::new(END_SIGN_INS).bind(person).bind(tenant(scope)).bind(but);
        let change = ConditionalWrite::new(tenant(scope), change).and_then(end).and_then(tenants::changed(scope));
        let before = self.role_of(scope, person).await?;
        let act = AuditEntry::new(AuditAction::RoleChanged, scope, ("person", person));
        self.change(change.audited(act.change(json!({"role": before}), json!({"role": role})))).await
    }

    /// Takes somebody out of a tenant with their sign-ins, links and keys there; `false` when they were no member, or are
    /// the last owner.
    pub async fn remove_member(&self, scope: &Scope, person: &str) -> Result<bool, StoreError> {
        let leave = Statement::new(LEAVE).bind(tenant(scope)).bind(person);
        let ends = [
            Statement::new(END_SIGN_INS).bind(person).bind(tenant(scope)).bind(""),
            Statement::new(END_LINKS).bind(person).bind(tenant(scope)),
            Statement::new(END_KEYS).bind(tenant(scope)).bind(person),
            upstream_logins::forget_person(scope, person),
            tenants::changed(scope),
        ];
        let leave = ConditionalWrite::new(tenant(scope), leave);
        let before = json!({"role": self.role_of(scope, person).await?});
        let act = AuditEntry::new(AuditAction::PersonRemoved, scope, ("person", person)).change(before, Value::Null);
        self.change(ends.into_iter().fold(leave, ConditionalWrite::and_then).audited(act)).await
    }

    /// Keeps which notices a member wants; `false` when they are no member.
    pub async fn set_notices(&self, scope: &Scope, person: &str, wanted: &str) -> Result<bool, StoreError> {
        let set = Statement::new(SET_NOTICES).bind(tenant(scope)).bind(person).bind(wanted);
        let act = AuditEntry::new(AuditAction::SettingChanged, scope, ("person", person));
        let act = act.change(Value::Null, json!({"notices": wanted}));
        self.change(ConditionalWrite::new(tenant(scope), set).audited(act)).await
    }

    /// The role of somebody in a tenant.
    pub async fn role_of(&self, scope: &Scope, person: &str) -> Result<Option<String>, StoreError> {
        let row = self.read_one(Statement::new(ROLE).bind(tenant(scope)).bind(person)).await?;
        row.map(|row| Columns { of: "memberships", row: &row }.text("role")).transpose()
    }

    /// Everybody in a tenant.
    pub async fn members(&self, scope: &Scope) -> Result<Vec<MemberRecord>, StoreError> {
        let rows = self.read(Statement::new(MEMBERS).bind(tenant(scope))).await?;
        let member = |row: &Row| {
            let columns = Columns { of: "memberships", row };
            let (role, since) = (columns.text("role")?, columns.time("created_at")?);
            Ok(MemberRecord { person: person(row)?, role, since, notices: columns.text_or_none("notices")? })
        };
        rows.iter().map(member).collect()
    }

    /// The tenants that somebody belongs to, each with their role.
    pub async fn tenants_of(
        &self,
        _house: &HouseWide,
        person: &str,
    ) -> Result<Vec<(TenantRecord, String)>, StoreError> {
        let rows = self.read(Statement::new(TENANTS).bind(person)).await?;
        let with_role = |row: &Row| Ok((tenants::record(row)?, Columns { of: "memberships", row }.text("role")?));
        rows.iter().map(with_role).collect()
    }
}

fn person(row: &Row) -> Result<PersonRecord, StoreError> {
    let columns = Columns { of: "people", row };
    Ok(PersonRecord {
        id: columns.text("id")?,
        email: columns.text("email")?,
        name: columns.text("name")?,
        password: columns.text_or_none("password")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_everybody() {
        use super::*;
        let people = [BY_EMAIL, BY_ID, SET_PASSWORD, SET_NOTICES, NAME, ROLE, MEMBERS, TENANTS];
        let changes = [CHANGE_ROLE, LEAVE, END_SIGN_INS, END_ALL_SIGN_INS, END_KEYS, CHANGED_EVERYWHERE];
        crate::schema::tests::assert_quick(&people);
        crate::schema::tests::assert_quick(&changes);
    }
}

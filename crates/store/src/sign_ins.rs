//! Sign-ins of people, and the one-use links that lead to them. Both are found by the hash of what their person holds.

use haft_runtime::{CallerId, CallerKind, CallerRef, HouseWide, Scope, Source};
use jiff::Timestamp;

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
    tenants,
};

/// Somebody who is signed in, with everything that one request needs to know of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInRecord {
    /// The hash of what the browser holds.
    pub id: String,
    /// The tenant that they look at.
    pub scope: Scope,
    /// What that tenant is called.
    pub slug: String,
    /// The version of its tools and workspaces.
    pub version: i64,
    /// Who.
    pub person: String,
    /// The name that others read.
    pub name: String,
    /// Their role there.
    pub role: String,
    /// The hash of what a page must send with every change.
    pub csrf: String,
    /// The process that it ends with; `None` when it outlives processes.
    pub process: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

/// A sign-in that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignIn {
    /// The hash of what the browser holds.
    pub id: String,
    /// Who.
    pub person: String,
    /// The hash of what a page must send with every change.
    pub csrf: String,
    /// The process that it ends with.
    pub process: Option<String>,
    /// Until when.
    pub expires_at: Timestamp,
}

macro_rules! sign_ins {
    ($rest:literal) => {
        concat!(
            "select s.id, s.person, s.tenant, s.csrf, s.process, s.created_at, s.expires_at, p.name, m.role, t.slug, ",
            "t.version from sign_ins s join people p on p.id = s.person join memberships m on m.tenant = s.tenant ",
            "and m.person = s.person join tenants t on t.id = s.tenant where ",
            $rest
        )
    };
}
const INSERT: &str = "insert into sign_ins (id, person, tenant, csrf, process, created_at, expires_at) \
                      values ($1, $2, $3, $4, $5, $6, $7) returning 1 as added";
const FIND: &str = sign_ins!("s.id = $1");
const OF_PERSON: &str = sign_ins!("s.person = $1 order by s.id");
const END: &str = "delete from sign_ins where id = $1 returning 1 as ended";
const MOVE: &str = "update sign_ins set tenant = $2 where id = $1 returning 1 as moved";
const PERSON: &str = "select person from sign_ins where id = $1";
const NAME: &str = "select name from people where id = $1";
const ANY: &str = "select 1 as signed_in from sign_ins limit 1";
const FORGET: &str = "delete from sign_ins where expires_at < $1";
const FORGET_LINKS: &str = "delete from sign_in_links where expires_at < $1";
const ADD_LINK: &str = "insert into sign_in_links (id, person, tenant, expires_at) values ($1, $2, $3, $4) \
                        returning 1 as added";
const LINK: &str = "select person, tenant from sign_in_links where id = $1 and expires_at > $2";
const USE_LINK: &str = "delete from sign_in_links where id = $1 and expires_at > $2 returning 1 as used";

impl Store {
    /// Begins a sign-in.
    pub async fn add_sign_in(&self, scope: &Scope, sign_in: &NewSignIn) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        let insert = Statement::new(INSERT)
            .bind(sign_in.id.as_str())
            .bind(sign_in.person.as_str())
            .bind(tenant(scope))
            .bind(sign_in.csrf.as_str())
            .bind(sign_in.process.as_deref())
            .bind(now)
            .bind(sign_in.expires_at.as_microsecond());
        let act = AuditEntry::new(AuditAction::SignInBegan, scope, ("person", &sign_in.person));
        let name = self.read_one(Statement::new(NAME).bind(sign_in.person.as_str())).await?;
        let name = name.map(|row| Columns { of: "people", row: &row }.text("name")).transpose()?.unwrap_or_default();
        let id = CallerId { kind: CallerKind::Person, id: sign_in.person.clone() };
        let act = act.by(CallerRef { id, name }, Source::Web);
        self.change(ConditionalWrite::of_database(insert).audited(act)).await.map(drop)
    }

    /// Forgets the sign-ins and links whose time is over.
    pub async fn forget_expired_sign_ins(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        let [sign_ins, links] = [FORGET, FORGET_LINKS].map(|sql| Statement::new(sql).bind(now));
        for forget in [sign_ins, links] {
            self.change(ConditionalWrite::of_database(forget).unaudited("their time is over")).await?;
        }
        Ok(())
    }

    /// Who holds this, if they are still signed in and still a member.
    pub async fn sign_in(&self, _house: &HouseWide, id: &str) -> Result<Option<SignInRecord>, StoreError> {
        self.read_one(Statement::new(FIND).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// Where somebody is signed in.
    pub async fn sign_ins_of(&self, _house: &HouseWide, person: &str) -> Result<Vec<SignInRecord>, StoreError> {
        self.read(Statement::new(OF_PERSON).bind(person)).await?.iter().map(record).collect()
    }

    /// Ends a sign-in that looks at this tenant; `false` when there is none.
    pub async fn end_sign_in(&self, scope: &Scope, id: &str) -> Result<bool, StoreError> {
        let end = ConditionalWrite::of_database(Statement::new(END).bind(id)).and_then(tenants::changed(scope));
        let person = self.person_of_sign_in(id).await?.unwrap_or_default();
        self.change(end.audited(AuditEntry::new(AuditAction::SignInEnded, scope, ("person", &person)))).await
    }

    /// Has somebody who is signed in look at another tenant from now on.
    pub async fn move_sign_in(&self, scope: &Scope, id: &str) -> Result<bool, StoreError> {
        let person = self.person_of_sign_in(id).await?.unwrap_or_default();
        let act = AuditEntry::new(AuditAction::SignInMoved, scope, ("person", &person));
        self.change(ConditionalWrite::of_database(Statement::new(MOVE).bind(id).bind(tenant(scope))).audited(act)).await
    }

    async fn person_of_sign_in(&self, id: &str) -> Result<Option<String>, StoreError> {
        let row = self.read_one(Statement::new(PERSON).bind(id)).await?;
        row.map(|row| Columns { of: "sign_ins", row: &row }.text("person")).transpose()
    }

    /// Whether anybody has signed in.
    pub async fn anybody_signed_in(&self, _house: &HouseWide) -> Result<bool, StoreError> {
        Ok(self.read_one(Statement::new(ANY)).await?.is_some())
    }

    /// Keeps a link by the hash of its code.
    pub async fn add_link(
        &self,
        scope: &Scope,
        (id, person): (&str, &str),
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let add = Statement::new(ADD_LINK).bind(id).bind(person).bind(tenant(scope));
        let act = AuditEntry::new(AuditAction::LinkMade, scope, ("person", person));
        let add = ConditionalWrite::of_database(add.bind(expires_at.as_microsecond()));
        self.change(add.audited(act)).await.map(drop)
    }

    /// Whether there is a link that has not been used and can be.
    pub async fn has_link(&self, _house: &HouseWide, id: &str) -> Result<bool, StoreError> {
        let now = Timestamp::now().as_microsecond();
        Ok(self.read_one(Statement::new(LINK).bind(id).bind(now)).await?.is_some())
    }

    /// Uses a link up: whose it is and where it leads. It works once.
    pub async fn use_link(&self, _house: &HouseWide, id: &str) -> Result<Option<(Scope, String)>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let Some(row) = self.read_one(Statement::new(LINK).bind(id).bind(now)).await? else { return Ok(None) };
        let columns = Columns { of: "sign_in_links", row: &row };
        let found = (columns.scope_of_tenant()?, columns.text("person")?);
        let using = ConditionalWrite::of_database(Statement::new(USE_LINK).bind(id).bind(now));
        let used = self.change(using.unaudited("the sign-in that it leads to is the act")).await?;
        Ok(used.then_some(found))
    }
}

fn record(row: &Row) -> Result<SignInRecord, StoreError> {
    let columns = Columns { of: "sign_ins", row };
    Ok(SignInRecord {
        id: columns.text("id")?,
        scope: columns.scope_of_tenant()?,
        slug: columns.text("slug")?,
        version: columns.number("version")?,
        person: columns.text("person")?,
        name: columns.text("name")?,
        role: columns.text("role")?,
        csrf: columns.text("csrf")?,
        process: columns.text_or_none("process")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_sign_in_is_found_without_reading_the_others() {
        use super::{END, FIND, FORGET, FORGET_LINKS, LINK, MOVE, OF_PERSON, PERSON, USE_LINK};
        crate::schema::tests::assert_quick(&[FIND, OF_PERSON, END, MOVE, LINK, USE_LINK, FORGET, FORGET_LINKS, PERSON]);
    }
}

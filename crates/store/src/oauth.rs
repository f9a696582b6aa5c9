//! What programs hold that people let in by OAuth.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant, word, workspace},
    sql::{Row, Statement},
};

/// A program that registered itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClientRecord {
    /// What it is called by.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// Where people may be sent back to, as a JSON list.
    pub redirect_uris: String,
}

/// A yes of a person to a program, with everything that one request needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRecord {
    /// What it is found by.
    pub id: String,
    /// The tenant that it is for, and the workspace where there is one.
    pub scope: Scope,
    /// What that tenant is called.
    pub slug: String,
    /// The version of its tools and workspaces.
    pub version: i64,
    /// Who said yes.
    pub person: String,
    /// The name that others read.
    pub name: String,
    /// Their role there now.
    pub role: String,
    /// The program.
    pub client: String,
    /// What that is called.
    pub client_name: String,
    /// What it may do, as words with commas between.
    pub scopes: String,
    /// The address that its tokens are for.
    pub resource: String,
    /// Since when.
    pub created_at: Timestamp,
}

/// A yes that was just said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConsent {
    /// What it is found by.
    pub id: String,
    /// Who said yes.
    pub person: String,
    /// The program.
    pub client: String,
    /// What that is called.
    pub client_name: String,
    /// What it may do, as words with commas between.
    pub scopes: String,
    /// The address that its tokens are for.
    pub resource: String,
}

/// What a program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthTokenKind {
    /// Becomes tokens, once.
    Code,
    /// Comes with requests.
    Access,
    /// Becomes new tokens, once.
    Refresh,
}

/// A code or token that is about to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOAuthToken {
    /// Its hash.
    pub id: String,
    /// What it is for.
    pub kind: OAuthTokenKind,
    /// Where a code is sent to.
    pub redirect_uri: Option<String>,
    /// What whoever holds a code has to show.
    pub challenge: Option<String>,
    /// Until when.
    pub expires_at: Timestamp,
}

/// A code or token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthTokenRecord {
    /// What it is for.
    pub kind: OAuthTokenKind,
    /// Where a code was sent to.
    pub redirect_uri: Option<String>,
    /// What whoever holds a code has to show.
    pub challenge: Option<String>,
    /// Until when.
    pub expires_at: Timestamp,
    /// Whether it was used up.
    pub used: bool,
    /// The yes that it hangs on.
    pub consent: ConsentRecord,
}

/// A day in microseconds.
const A_DAY: i64 = 24 * 3600 * 1_000_000;

const ADD_CLIENT: &str = "insert into oauth_clients (id, name, redirect_uris, created_at) values ($1, $2, $3, $4) \
                          returning 1 as added";
const CLIENT: &str = "select id, name, redirect_uris from oauth_clients where id = $1";
const CLIENT_USED: &str = "update oauth_clients set used_at = $2 where id = $1 and used_at is null";
const ADD_CONSENT: &str = "insert into oauth_consents (id, tenant, workspace, person, client, client_name, scopes, \
                           resource, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning 1 as added";
const ADD_TOKEN: &str = "insert into oauth_tokens (id, consent, kind, redirect_uri, challenge, expires_at) \
                         values ($1, $2, $3, $4, $5, $6)";
macro_rules! consents {
    ($more:literal, $rest:literal) => {
        concat!(
            "select c.id, c.tenant, c.workspace, c.person, c.client, c.client_name, c.scopes, c.resource, c.created_at, p.name, ",
            "m.role, s.slug, s.version",
            $more,
            " from oauth_consents c join people p on p.id = c.person join memberships m on m.tenant = c.tenant ",
            "and m.person = c.person join tenants s on s.id = c.tenant ",
            $rest
        )
    };
}
const TOKEN: &str = consents!(
    ", t.kind, t.redirect_uri, t.challenge, t.expires_at, t.used_at",
    "join oauth_tokens t on t.consent = c.id where t.id = $1"
);
const CONSENT: &str = consents!("", "where c.id = $1");
const OF_PERSON: &str = consents!("", "where c.tenant = $1 and c.person = $2 order by c.id");
const LET_IN: &str = "select tenant, workspace, person, client_name from oauth_consents where id = $1";
const USE: &str = "update oauth_tokens set used_at = $2 where id = $1 and used_at is null returning 1 as used";
const PROLONG: &str = "update oauth_consents set expires_at = $2 where id = $1";
const END: &str = "delete from oauth_consents where id = $1 returning 1 as ended";
const END_TOKENS: &str = "delete from oauth_tokens where consent = $1";
const FORGET_TOKENS: &str = "delete from oauth_tokens where expires_at < $1";
const FORGET_CONSENTS: &str = "delete from oauth_consents where expires_at < $1";
const FORGET_CLIENTS: &str = "delete from oauth_clients where used_at is null and created_at < $1";

impl Store {
    /// Keeps a program that registered itself.
    pub async fn add_oauth_client(&self, _house: &HouseWide, client: &OAuthClientRecord) -> Result<(), StoreError> {
        let add = Statement::new(ADD_CLIENT)
            .bind(client.id.as_str())
            .bind(client.name.as_str())
            .bind(client.redirect_uris.as_str())
            .bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::of_database(add)).await.map(drop)
    }

    /// The program that registered itself under this id.
    pub async fn oauth_client(&self, _house: &HouseWide, id: &str) -> Result<Option<OAuthClientRecord>, StoreError> {
        let Some(row) = self.read_one(Statement::new(CLIENT).bind(id)).await? else { return Ok(None) };
        let columns = Columns { of: "oauth_clients", row: &row };
        let (id, name) = (columns.text("id")?, columns.text("name")?);
        Ok(Some(OAuthClientRecord { id, name, redirect_uris: columns.text("redirect_uris")? }))
    }

    /// Keeps a yes and the code for it.
    pub async fn add_consent(
        &self,
        scope: &Scope,
        consent: &NewConsent,
        code: &NewOAuthToken,
    ) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        let add = Statement::new(ADD_CONSENT)
            .bind(consent.id.as_str())
            .bind(tenant(scope))
            .bind(workspace(scope))
            .bind(consent.person.as_str())
            .bind(consent.client.as_str())
            .bind(consent.client_name.as_str())
            .bind(consent.scopes.as_str())
            .bind(consent.resource.as_str())
            .bind(now)
            .bind(code.expires_at.as_microsecond());
        let used = Statement::new(CLIENT_USED).bind(consent.client.as_str()).bind(now);
        let write = ConditionalWrite::of_database(add).and_then(token(&consent.id, code)?).and_then(used);
        let what = json!({"name": consent.client_name, "client": consent.client, "scopes": consent.scopes,
            "person": consent.person, "workspace": workspace(scope)});
        let act = AuditEntry::new(AuditAction::ProgramLetIn, scope, ("program", &consent.id));
        self.change(write.audited(act.change(Value::Null, what))).await.map(drop)
    }

    /// The code or token with this hash, if its person is still a member.
    pub async fn oauth_token(&self, _house: &HouseWide, id: &str) -> Result<Option<OAuthTokenRecord>, StoreError> {
        self.read_one(Statement::new(TOKEN).bind(id)).await?.as_ref().map(token_record).transpose()
    }

    /// A yes, if its person is still a member.
    pub async fn consent(&self, _house: &HouseWide, id: &str) -> Result<Option<ConsentRecord>, StoreError> {
        self.read_one(Statement::new(CONSENT).bind(id)).await?.as_ref().map(consent_record).transpose()
    }

    /// What a person said yes to in a tenant.
    pub async fn consents_of(&self, scope: &Scope, person: &str) -> Result<Vec<ConsentRecord>, StoreError> {
        let all = Statement::new(OF_PERSON).bind(tenant(scope)).bind(person);
        self.read(all).await?.iter().map(consent_record).collect()
    }

    /// Uses a code or token up and gives new ones for it; `false` when somebody has used it before.
    pub async fn exchange_oauth_token(
        &self,
        _house: &HouseWide,
        (id, consent): (&str, &str),
        new: &[NewOAuthToken],
    ) -> Result<bool, StoreError> {
        let used = Statement::new(USE).bind(id).bind(Timestamp::now().as_microsecond());
        let mut write = ConditionalWrite::of_database(used);
        for given in new {
            write = write.and_then(token(consent, given)?);
        }
        let last = new.iter().map(|given| given.expires_at.as_microsecond()).max().unwrap_or_default();
        self.change(write.and_then(Statement::new(PROLONG).bind(consent).bind(last))).await
    }

    /// Takes a yes back, with everything that hangs on it; `false` when there is none.
    pub async fn end_consent(&self, _house: &HouseWide, id: &str) -> Result<bool, StoreError> {
        let Some(row) = self.read_one(Statement::new(LET_IN).bind(id)).await? else { return Ok(false) };
        let columns = Columns { of: "oauth_consents", row: &row };
        let what = json!({"name": columns.text("client_name")?, "person": columns.text("person")?});
        let act = AuditEntry::new(AuditAction::ProgramEnded, &columns.scope()?, ("program", id));
        let end = ConditionalWrite::of_database(Statement::new(END).bind(id)).audited(act.change(what, Value::Null));
        self.change(end.and_then(Statement::new(END_TOKENS).bind(id))).await
    }

    /// Forgets codes, tokens and consents whose time is over, and programs that nobody let in for a day.
    pub async fn forget_expired_oauth(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let now = Timestamp::now().as_microsecond();
        for (sql, before) in [(FORGET_TOKENS, now), (FORGET_CONSENTS, now), (FORGET_CLIENTS, now - A_DAY)] {
            let forget = ConditionalWrite::of_database(Statement::new(sql).bind(before));
            self.change(forget.unaudited("their time is over")).await?;
        }
        Ok(())
    }
}

fn token(consent: &str, given: &NewOAuthToken) -> Result<Statement, StoreError> {
    Ok(Statement::new(ADD_TOKEN)
        .bind(given.id.as_str())
        .bind(consent)
        .bind(word(&given.kind)?)
        .bind(given.redirect_uri.as_deref())
        .bind(given.challenge.as_deref())
        .bind(given.expires_at.as_microsecond()))
}

fn token_record(row: &Row) -> Result<OAuthTokenRecord, StoreError> {
    let columns = Columns { of: "oauth_tokens", row };
    Ok(OAuthTokenRecord {
        kind: columns.word("kind")?,
        redirect_uri: columns.text_or_none("redirect_uri")?,
        challenge: columns.text_or_none("challenge")?,
        expires_at: columns.time("expires_at")?,
        used: columns.time_or_none("used_at")?.is_some(),
        consent: consent_record(row)?,
    })
}

fn consent_record(row: &Row) -> Result<ConsentRecord, StoreError> {
    let columns = Columns { of: "oauth_consents", row };
    Ok(ConsentRecord {
        id: columns.text("id")?,
        scope: columns.scope()?,
        slug: columns.text("slug")?,
        version: columns.number("version")?,
        person: columns.text("person")?,
        name: columns.text("name")?,
        role: columns.text("role")?,
        client: columns.text("client")?,
        client_name: columns.text("client_name")?,
        scopes: columns.text("scopes")?,
        resource: columns.text("resource")?,
        created_at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_token_is_found_without_reading_the_others() {
        use super::{
            CLIENT, CONSENT, END, END_TOKENS, FORGET_CLIENTS, FORGET_CONSENTS, FORGET_TOKENS, OF_PERSON, TOKEN,
        };
        let finds = [CLIENT, TOKEN, CONSENT, OF_PERSON];
        let ends = [END, END_TOKENS, FORGET_TOKENS, FORGET_CONSENTS, FORGET_CLIENTS];
        crate::schema::tests::assert_quick(&[&finds[..], &ends[..]].concat());
    }
}

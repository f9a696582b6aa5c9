//! Signing in by OpenID Connect: browsers that are at a provider, and which account there is whom.

use haft_runtime::{HouseWide, TenantId};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::Columns,
    sql::{Row, Statement},
};

/// A browser that was sent to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcRequest {
    /// The hash of what the provider sends back.
    pub id: String,
    /// What the provider is called in the settings.
    pub provider: String,
    /// The hash of the browser's cookie.
    pub browser: String,
    /// The tenant that the person wants to look at.
    pub tenant_slug: Option<String>,
    /// The page that they want to see then.
    pub page: String,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

/// An account at a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OidcAccount<'a> {
    /// The provider.
    pub issuer: &'a str,
    /// What the account is called there, for ever.
    pub subject: &'a str,
}

const ADD: &str = "insert into oidc_requests (id, provider, browser, tenant_slug, page, expires_at) \
                   values ($1, $2, $3, $4, $5, $6) returning 1 as added";
const FIND: &str = "select id, provider, browser, tenant_slug, page, expires_at from oidc_requests \
                    where id = $1 and browser = $2 and expires_at > $3";
const USE: &str = "delete from oidc_requests where id = $1 and browser = $2 and expires_at > $3 returning 1 as used";
const FORGET: &str = "delete from oidc_requests where expires_at < $1";
const PERSON: &str = "select person from oidc_accounts where issuer = $1 and subject = $2";
const LINK: &str = "insert into oidc_accounts (issuer, subject, person, created_at) values ($1, $2, $3, $4) \
                    on conflict do nothing returning 1 as linked";
const UNLINK: &str = "delete from oidc_accounts where person = $1 returning 1 as unlinked";

impl Store {
    /// Keeps that a browser goes to a provider.
    pub async fn add_oidc_request(&self, _house: &HouseWide, request: &OidcRequest) -> Result<(), StoreError> {
        let add = Statement::new(ADD)
            .bind(request.id.as_str())
            .bind(request.provider.as_str())
            .bind(request.browser.as_str())
            .bind(request.tenant_slug.as_deref())
            .bind(request.page.as_str())
            .bind(request.expires_at.as_microsecond());
        self.change(ConditionalWrite::of_database(add)).await.map(drop)
    }

    /// Uses up what was kept of a browser that comes back. It counts once, and in no other browser.
    pub async fn use_oidc_request(
        &self,
        _house: &HouseWide,
        id: &str,
        browser: &str,
    ) -> Result<Option<OidcRequest>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let about = |sql: &'static str| Statement::new(sql).bind(id).bind(browser).bind(now);
        let Some(row) = self.read_one(about(FIND)).await? else { return Ok(None) };
        let request = request(&row)?;
        Ok(self.change(ConditionalWrite::of_database(about(USE))).await?.then_some(request))
    }

    /// Forgets browsers that have not come back in time.
    pub async fn forget_expired_oidc_requests(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET).bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::of_database(forget)).await.map(drop)
    }

    /// Whose account this is.
    pub async fn person_of_account(
        &self,
        _house: &HouseWide,
        account: OidcAccount<'_>,
    ) -> Result<Option<String>, StoreError> {
        let row = self.read_one(Statement::new(PERSON).bind(account.issuer).bind(account.subject)).await?;
        row.map(|row| Columns { of: "oidc_accounts", row: &row }.text("person")).transpose()
    }

    /// Says whose account this is; `false` when it is somebody's, or the person has another one of this provider.
    pub async fn link_account(
        &self,
        _house: &HouseWide,
        account: OidcAccount<'_>,
        person: &str,
    ) -> Result<bool, StoreError> {
        let link = Statement::new(LINK).bind(account.issuer).bind(account.subject).bind(person);
        let link = link.bind(Timestamp::now().as_microsecond());
        let act = act(AuditAction::AccountLinked, person).change(Value::Null, json!({"issuer": account.issuer}));
        self.change(ConditionalWrite::of_database(link).audited(act)).await
    }

    /// Forgets all accounts of a person; `false` when there are none.
    pub async fn unlink_accounts(&self, _house: &HouseWide, person: &str) -> Result<bool, StoreError> {
        let unlink = ConditionalWrite::of_database(Statement::new(UNLINK).bind(person));
        self.change(unlink.audited(act(AuditAction::AccountUnlinked, person))).await
    }
}

/// An act about somebody in whichever tenants: it is in the operator's log.
fn act(action: AuditAction, person: &str) -> AuditEntry {
    AuditEntry::in_tenant(action, &TenantId::local(), ("person", person))
}

fn request(row: &Row) -> Result<OidcRequest, StoreError> {
    let columns = Columns { of: "oidc_requests", row };
    Ok(OidcRequest {
        id: columns.text("id")?,
        provider: columns.text("provider")?,
        browser: columns.text("browser")?,
        tenant_slug: columns.text_or_none("tenant_slug")?,
        page: columns.text("page")?,
        expires_at: columns.time("expires_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_account_is_found_without_reading_the_others() {
        use super::{FIND, FORGET, PERSON, UNLINK, USE};
        crate::schema::tests::assert_quick(&[FIND, USE, FORGET, PERSON, UNLINK]);
    }
}

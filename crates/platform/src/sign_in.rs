//! Signing in: by a link that works once, or by a password. What the browser holds is kept only as its hash.

use std::{net::IpAddr, time::Duration};

use haft_runtime::{ErrorCode, Scope, TenantId, ToolError};
pub use haft_store::SignInRecord;
use haft_store::{AuditAction, AuditEntry, NewSignIn, TenantRecord};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Platform, Role, TenantSettings, TenantView,
    attempts::Tried,
    password,
    platform::{mistake, not_found},
    random,
};

/// How long a link works.
const LINK_LASTS: Duration = Duration::from_secs(15 * 60);
/// The longest mail address.
const LONGEST_MAIL: usize = 254;

/// A password that somebody gives to sign in.
#[derive(Clone, Copy)]
pub struct PasswordSignIn<'a> {
    /// Their mail address.
    pub email: &'a str,
    /// Their password.
    pub password: &'a str,
    /// The tenant; the first one by default.
    pub tenant: Option<&'a str>,
    /// Where the request comes from, where that says anything.
    pub from: Option<IpAddr>,
}

/// A password that shall take the place of another one.
#[derive(Clone, Copy)]
pub struct PasswordChange<'a> {
    /// The one before, where there is one.
    pub old: Option<&'a str>,
    /// The new one.
    pub new: &'a str,
    /// Where the request comes from, where that says anything.
    pub from: Option<IpAddr>,
}

/// What a browser gets when somebody has signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The value of the cookie.
    pub cookie: String,
    /// What the page must send with every change.
    pub csrf: String,
}

/// A sign-in as its person sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInView {
    /// What it is ended by.
    pub id: String,
    /// The tenant that it looks at.
    pub tenant: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// How long sign-ins last here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInsLast {
    /// Until they run out.
    TheirTime,
    /// No longer than this process: so it is on a machine that others may use.
    WithTheProcess,
}

impl Platform {
    /// The code of a link by which somebody signs in once.
    pub async fn make_link(&self, scope: &Scope, person: &str) -> Result<String, ToolError> {
        let code = random::text(random::SECRET)?;
        self.store.add_link(scope, (&random::hash(&code), person), after(LINK_LASTS)).await?;
        Ok(code)
    }

    /// Sees to it that the tenant of this machine has an owner, and makes a link for them.
    pub async fn local_owner_link(&self, user: &str) -> Result<String, ToolError> {
        let local = self.tenant("local").await?;
        let person = self.have_local_user(&local.scope, user, Role::Owner).await?;
        self.make_link(&local.scope, &person).await
    }

    /// Sees to it that this machine's own user has a role in a tenant, and says who that is.
    pub async fn have_local_user(&self, scope: &Scope, user: &str, role: Role) -> Result<String, ToolError> {
        let person = self.have_person(&format!("{user}@localhost")).await?;
        self.have_member(scope, &person.id, role).await?;
        Ok(person.id)
    }

    /// Whether the code of a link has not been used yet, and still can be.
    pub async fn is_unused(&self, code: &str) -> Result<bool, ToolError> {
        Ok(self.store.has_link(&self.house, &random::hash(code)).await?)
    }

    /// Whether anybody has ever signed in.
    pub async fn anybody_signed_in(&self) -> Result<bool, ToolError> {
        Ok(self.store.anybody_signed_in(&self.house).await?)
    }

    /// Signs in by the code of a link, which is used up.
    pub async fn sign_in_by_link(&self, code: &str, last: SignInsLast) -> Result<SignedIn, ToolError> {
        let Some((scope, person)) = self.store.use_link(&self.house, &random::hash(code)).await? else {
            self.note_failed_sign_in(None).await?;
            let message =
                "this link does not work any more; ask for another one, or run `haft open` on the machine itself";
            return Err(ToolError::new(ErrorCode::Unauthorized, message));
        };
        self.begin(&scope, &person, last).await
    }

    /// Signs in by address and password. It takes as long and is counted alike, whether or not there is such an address.
    pub async fn sign_in_by_password(
        &self,
        given: &PasswordSignIn<'_>,
        last: SignInsLast,
    ) -> Result<SignedIn, ToolError> {
        let refused = || ToolError::new(ErrorCode::Unauthorized, "the address or the password is wrong");
        let email: String = given.email.trim().to_lowercase().chars().take(LONGEST_MAIL).collect();
        let mut tried = vec![Tried::Mail(email.clone())];
        tried.extend(given.from.map(Tried::from));
        self.attempts.take(&tried)?;
        let person = self.store.person_by_email(&self.house, &email).await?;
        let kept = person.as_ref().and_then(|person| person.password.clone());
        if !password::is_right(&self.hashing, kept, given.password.to_owned()).await? {
            self.note_failed_sign_in(person.as_ref().map(|person| person.id.as_str())).await?;
            return Err(refused());
        }
        let person = person.ok_or_else(refused)?;
        let tenants = self.store.tenants_of(&self.house, &person.id).await?;
        let wanted = |(found, _): &&(TenantRecord, String)| given.tenant.is_none_or(|wanted| found.slug == wanted);
        let (tenant, _) = tenants.iter().find(wanted).ok_or_else(refused)?;
        self.attempts.give_back(&tried);
        self.begin(&tenant.scope, &person.id, last).await
    }

    /// Writes down a sign-in that was refused: in the log of a tenant of whoever it was about, else in the operator's. What was
    /// typed is no part of it, since it may be a password in the wrong place.
    async fn note_failed_sign_in(&self, person: Option<&str>) -> Result<(), ToolError> {
        let tenants = match person {
            Some(person) => self.store.tenants_of(&self.house, person).await?,
            None => Vec::new(),
        };
        let local = TenantId::local();
        let tenant = tenants.first().map_or(&local, |(tenant, _)| tenant.scope.tenant());
        let on = ("person", person.unwrap_or("unknown"));
        let act = AuditEntry::in_tenant(AuditAction::SignInFailed, tenant, on);
        Ok(self.store.note_act(&self.house, act).await?)
    }

    async fn begin(&self, scope: &Scope, person: &str, last: SignInsLast) -> Result<SignedIn, ToolError> {
        let (cookie, csrf) = (random::text(random::SECRET)?, random::text(random::SECRET)?);
        let process = match last {
            SignInsLast::TheirTime => None,
            SignInsLast::WithTheProcess => Some(self.store.owner().to_owned()),
        };
        let sign_in = NewSignIn {
            id: random::hash(&cookie),
            person: person.to_owned(),
            csrf: random::hash(&csrf),
            process,
            expires_at: after(length(self.settings(scope).await?)),
        };
        self.store.add_sign_in(scope, &sign_in).await?;
        Ok(SignedIn { cookie, csrf })
    }

    /// Whether a page sent what only it was given.
    pub fn is_from_its_page(&self, sign_in: &SignInRecord, csrf: &str) -> bool {
        random::is_secret(&sign_in.csrf, csrf)
    }

    /// Ends the sign-in that asks.
    pub async fn sign_out(&self, sign_in: &SignInRecord) -> Result<(), ToolError> {
        self.store.end_sign_in(&sign_in.scope, &sign_in.id).await?;
        Ok(())
    }

    /// Ends a sign-in of this person; one of somebody else is not found.
    pub async fn end_sign_in(&self, person: &str, id: &str) -> Result<(), ToolError> {
        let own = self.store.sign_ins_of(&self.house, person).await?;
        let meant = own.iter().find(|sign_in| public_id(sign_in) == id);
        self.sign_out(meant.ok_or_else(|| not_found("such sign-in"))?).await
    }

    /// Where a person is signed in.
    pub async fn sign_ins(&self, current: &SignInRecord) -> Result<Vec<SignInView>, ToolError> {
        let view = |sign_in: SignInRecord| SignInView {
            current: sign_in.id == current.id,
            id: public_id(&sign_in),
            tenant: sign_in.slug,
            since: sign_in.created_at,
            until: sign_in.expires_at,
        };
        let own = self.store.sign_ins_of(&self.house, &current.person).await?.into_iter();
        Ok(own.filter(|sign_in| self.counts(sign_in)).map(view).collect())
    }

    /// Whether a sign-in is not over.
    pub(crate) fn counts(&self, sign_in: &SignInRecord) -> bool {
        let ends_with_another_process = sign_in.process.as_deref().is_some_and(|process| process != self.store.owner());
        sign_in.expires_at > Timestamp::now() && !ends_with_another_process
    }

    /// The tenants that a person belongs to.
    pub async fn tenants_of(&self, person: &str) -> Result<Vec<TenantView>, ToolError> {
        let own = self.store.tenants_of(&self.house, person).await?;
        Ok(own.iter().map(|(tenant, _)| TenantView::from(tenant)).collect())
    }

    /// Has somebody who is signed in look at another of their tenants.
    pub async fn change_tenant(&self, sign_in: &SignInRecord, slug: &str) -> Result<(), ToolError> {
        let own = self.store.tenants_of(&self.house, &sign_in.person).await?;
        let wanted = own.iter().find(|(tenant, _)| tenant.slug == slug);
        let (tenant, _) = wanted.ok_or_else(|| not_found(&format!("tenant `{slug}`")))?;
        self.store.move_sign_in(&tenant.scope, &sign_in.id).await?;
        Ok(())
    }

    /// Sets the password of somebody who is signed in and knows the one before. All their other sign-ins and links end.
    pub async fn change_password(&self, sign_in: &SignInRecord, change: &PasswordChange<'_>) -> Result<(), ToolError> {
        let person = self.store.person(&self.house, &sign_in.person).await?;
        let person = person.ok_or_else(|| not_found("such person"))?;
        if let Some(kept) = person.password {
            let old = change.old.ok_or_else(|| mistake("send the `oldPassword` too"))?;
            let mut tried = vec![Tried::Person(person.id.clone())];
            tried.extend(change.from.map(Tried::from));
            self.attempts.take(&tried)?;
            if !password::is_right(&self.hashing, Some(kept), old.to_owned()).await? {
                return Err(ToolError::new(ErrorCode::Forbidden, "the old password is wrong"));
            }
            self.attempts.give_back(&tried);
        }
        let hash = password::hash(&self.hashing, change.new.to_owned()).await?;
        self.store.set_password(&sign_in.scope, (&person.id, &hash), &sign_in.id).await?;
        Ok(())
    }
}

/// What others may know a sign-in by: nothing that the browser holds or that it is found by.
fn public_id(sign_in: &SignInRecord) -> String {
    let mut id = random::hash(&format!("sign-in {}", sign_in.id));
    id.truncate(24);
    format!("si_{id}")
}

/// How long people of a tenant stay signed in.
pub(crate) fn length(settings: TenantSettings) -> Duration {
    Duration::from_secs(u64::from(settings.sign_in_hours) * 3600)
}

/// So long from now.
pub(crate) fn after(time: Duration) -> Timestamp {
    Timestamp::now().checked_add(time).unwrap_or(Timestamp::MAX)
}

//! People: who belongs to a tenant, and in which role.

use haft_runtime::{CallerKind, ErrorCode, Scope, ToolError};
use haft_store::PersonRecord;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    CallerIdentity, Platform, QuotaKind, Role,
    platform::{mistake, not_found},
};

/// Somebody in a tenant, as others see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonView {
    /// What they are found by.
    pub id: String,
    /// Their address.
    pub email: String,
    /// The name that others read.
    pub name: String,
    /// What they are here.
    pub role: String,
    /// Since when.
    pub since: Timestamp,
}

/// Somebody to be added.
#[derive(Clone, Copy, Debug)]
pub struct NewPerson<'a> {
    /// Their address.
    pub email: &'a str,
    /// What they shall be here.
    pub role: &'a str,
    /// The name that others read; the beginning of the address by default.
    pub name: Option<&'a str>,
}

/// What shall be another about somebody.
#[derive(Clone, Copy, Debug, Default)]
pub struct PersonChange<'a> {
    /// Their role.
    pub role: Option<&'a str>,
    /// Their name.
    pub name: Option<&'a str>,
}

/// Somebody who was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPerson {
    /// What they are found by.
    pub id: String,
    /// The code of a link by which they sign in once.
    pub code: String,
}

impl Platform {
    /// Adds somebody to a tenant for the operator, or changes their role, and makes a link for them to sign in by.
    pub async fn add_person(&self, scope: &Scope, email: &str, role: Role) -> Result<AddedPerson, ToolError> {
        let person = self.have_person(email).await?;
        self.have_member(scope, &person.id, role).await?;
        let code = self.make_link(scope, &person.id).await?;
        Ok(AddedPerson { id: person.id, code })
    }

    /// Sees to it that somebody has a role in a tenant.
    pub(crate) async fn have_member(&self, scope: &Scope, person: &str, role: Role) -> Result<(), ToolError> {
        let known = self.store.role_of(scope, person).await?;
        if known.as_deref() == Some(role.word()) || self.store.add_member(scope, person, role.word()).await? {
            return Ok(());
        }
        if known.is_none()
            && let Some(full) = self.reached_quota(scope, QuotaKind::People).await?
        {
            return Err(full);
        }
        match self.store.change_role(scope, (person, role.word()), "").await? {
            true => Ok(()),
            false => Err(last_owner()),
        }
    }

    /// Adds somebody to the tenant of whoever asks, and makes a link for them to sign in by.
    ///
    /// A link makes whoever holds it that person, in all their tenants. So nobody is added who belongs to another tenant:
    /// only the operator may bring tenants together.
    pub async fn invite(&self, asks: &CallerIdentity, new: &NewPerson<'_>) -> Result<AddedPerson, ToolError> {
        let scope = &asks.caller.scope;
        let role = role_of_person(new.role)?;
        self.refuse_beyond_own_role(asks, &[role.word()]).await?;
        let name = new.name.map(checked_name).transpose()?;
        let person = self.have_person(new.email).await?;
        let elsewhere = ToolError::new(
            ErrorCode::Conflict,
            format!("`{}` cannot be added from here; ask the operator to run `haft admin person add`", person.email),
        );
        if self.belongs_elsewhere(scope, &person.id).await? {
            return Err(elsewhere);
        }
        if !self.store.add_member(scope, &person.id, role.word()).await? {
            if self.store.role_of(scope, &person.id).await?.is_none()
                && let Some(full) = self.reached_quota(scope, QuotaKind::People).await?
            {
                return Err(full);
            }
            let message = format!("`{}` is here already; change their role instead", person.email);
            return Err(ToolError::new(ErrorCode::AlreadyExists, message));
        }
        // Another tenant may have added them at the same moment.
        if self.belongs_elsewhere(scope, &person.id).await? {
            self.store.remove_member(scope, &person.id).await?;
            return Err(elsewhere);
        }
        if let Some(name) = name {
            self.store.name_person(scope, &person.id, name).await?;
        }
        let code = self.make_link(scope, &person.id).await?;
        Ok(AddedPerson { id: person.id, code })
    }

    async fn belongs_elsewhere(&self, scope: &Scope, person: &str) -> Result<bool, ToolError> {
        let tenants = self.store.tenants_of(&self.house, person).await?;
        Ok(tenants.iter().any(|(tenant, _)| tenant.scope.tenant() != scope.tenant()))
    }

    /// The person with an address, who is made where there is none yet.
    pub(crate) async fn have_person(&self, email: &str) -> Result<PersonRecord, ToolError> {
        let email = email.trim().to_lowercase();
        let (name, host) = email.split_once('@').ok_or_else(|| mistake(format!("`{email}` is no mail address")))?;
        if name.is_empty() || host.is_empty() || email.len() > 254 || email.contains(char::is_whitespace) {
            return Err(mistake(format!("`{email}` is no mail address")));
        }
        if let Some(known) = self.store.person_by_email(&self.house, &email).await? {
            return Ok(known);
        }
        let id = format!("pe_{}", uuid::Uuid::now_v7().simple());
        let new = PersonRecord { id, name: name.to_owned(), email: email.clone(), password: None };
        if self.store.add_person(&self.house, &new).await? {
            return Ok(new);
        }
        // Somebody else was quicker.
        self.store.person_by_email(&self.house, &email).await?.ok_or_else(|| not_found("such person"))
    }

    /// Everybody in a tenant.
    pub async fn people(&self, scope: &Scope) -> Result<Vec<PersonView>, ToolError> {
        let members = self.store.members(scope).await?.into_iter();
        let view = |member: haft_store::MemberRecord| PersonView {
            id: member.person.id,
            email: member.person.email,
            name: member.person.name,
            role: member.role,
            since: member.since,
        };
        Ok(members.map(view).collect())
    }

    /// Changes the role or the name of somebody in the tenant of whoever asks. A tenant always keeps an owner.
    pub async fn change_person(
        &self,
        asks: &CallerIdentity,
        person: &str,
        change: &PersonChange<'_>,
    ) -> Result<PersonView, ToolError> {
        let scope = &asks.caller.scope;
        let name = change.name.map(checked_name).transpose()?;
        let role = change.role.map(role_of_person).transpose()?;
        let before = self.store.role_of(scope, person).await?.ok_or_else(|| not_found("such person here"))?;
        if let Some(role) = role.filter(|role| role.word() != before) {
            self.refuse_beyond_own_role(asks, &[&before, role.word()]).await?;
            // Whoever changes their own role stays signed in where they do so.
            let here = asks.sign_in.as_ref().filter(|sign_in| sign_in.person == person);
            let but = here.map_or("", |sign_in| sign_in.id.as_str());
            if !self.store.change_role(scope, (person, role.word()), but).await? {
                return Err(last_owner());
            }
        }
        if let Some(name) = name
            && !self.store.name_person(scope, person, name).await?
        {
            let message = "they belong to other tenants, too, and keep the name that they have there";
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        let people = self.people(scope).await?;
        people.into_iter().find(|view| view.id == person).ok_or_else(|| not_found("such person here"))
    }

    /// Takes somebody out of the tenant of whoever asks.
    pub async fn dismiss(&self, asks: &CallerIdentity, person: &str) -> Result<(), ToolError> {
        let role = self.store.role_of(&asks.caller.scope, person).await?;
        let role = role.ok_or_else(|| not_found("such person here"))?;
        self.refuse_beyond_own_role(asks, &[&role]).await?;
        self.remove_person(&asks.caller.scope, person).await
    }

    /// Takes somebody out of a tenant, for the operator.
    pub async fn remove_person(&self, scope: &Scope, person: &str) -> Result<(), ToolError> {
        if self.store.remove_member(scope, person).await? {
            return Ok(());
        }
        match self.store.role_of(scope, person).await? {
            Some(_) => Err(last_owner()),
            None => Err(not_found("such person here")),
        }
    }

    /// Only owners make owners and take them away.
    async fn refuse_beyond_own_role(&self, asks: &CallerIdentity, roles: &[&str]) -> Result<(), ToolError> {
        let owner = Role::Owner.word();
        if !roles.contains(&owner) {
            return Ok(());
        }
        let own = match asks.caller.id.kind {
            CallerKind::Person => self.store.role_of(&asks.caller.scope, &asks.caller.id.id).await?,
            CallerKind::Agent | CallerKind::Key | CallerKind::Token | CallerKind::Owner | CallerKind::House => None,
        };
        match own.as_deref() == Some(owner) {
            true => Ok(()),
            false => Err(ToolError::new(ErrorCode::Forbidden, "only an owner makes owners or takes them away")),
        }
    }
}

fn last_owner() -> ToolError {
    ToolError::new(ErrorCode::Conflict, "they are the last owner here; make somebody else an owner first")
}

/// The role that a word means, if people can have it.
fn role_of_person(word: &str) -> Result<Role, ToolError> {
    let role = Role::parse(word).filter(|role| *role != Role::Agent);
    role.ok_or_else(|| mistake(format!("`{word}` is no role: owner, admin, member or viewer")))
}

fn checked_name(name: &str) -> Result<&str, ToolError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 100 || name.contains(char::is_control) {
        return Err(mistake("a name has 1 to 100 characters"));
    }
    Ok(name)
}

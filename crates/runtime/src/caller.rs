//! Who asks, who answers, and for whom.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallRecord, Scope};

/// What kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallerKind {
    /// Somebody who signed in.
    Person,
    /// An agent that haft runs.
    Agent,
    /// An API key.
    Key,
    /// A token that may do one thing, such as ending one waiting call.
    Token,
    /// The owner of this machine's own workspaces. Whatever client speaks for the owner here is the owner too; what the
    /// client calls itself is only a name to show.
    Owner,
    /// haft itself.
    House,
}

impl CallerKind {
    const ALL: &[Self] = &[Self::Person, Self::Agent, Self::Key, Self::Token, Self::Owner, Self::House];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Key => "key",
            Self::Token => "token",
            Self::Owner => "owner",
            Self::House => "house",
        }
    }
}

/// Who somebody is, whatever they are called. Grants, answers and kept results go by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CallerId {
    /// What kind of caller.
    pub kind: CallerKind,
    /// Which one of that kind, within the tenant.
    pub id: String,
}

impl CallerId {
    /// The owner of this machine's own workspaces.
    pub fn owner() -> Self {
        Self { kind: CallerKind::Owner, id: "local".to_owned() }
    }
}

/// `owner:local`: as a flag or a column has it.
impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.word(), self.id)
    }
}

impl FromStr for CallerId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |word: &str| CallerKind::ALL.iter().copied().find(|kind| kind.word() == word);
        let parts = text.split_once(':').filter(|(_, id)| !id.is_empty());
        let read = parts.and_then(|(kind, id)| Some(Self { kind: known(kind)?, id: id.to_owned() }));
        read.ok_or_else(|| format!("`{text}` names no caller; write a kind and an id, like `owner:local`"))
    }
}

/// Somebody in a record: who it was, and what they were called then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CallerRef {
    /// Who.
    #[serde(flatten)]
    pub id: CallerId,
    /// The name people see.
    pub name: String,
}

impl fmt::Display for CallerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What a call is part of, and for whom it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Via {
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The people it is made for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_behalf_of: Vec<CallerRef>,
    /// The calls that led to it by a request over HTTP, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// What it only tries; `None` where it is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// What a call tries. It is recorded like any other, and counted nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trial {
    /// A tool as it is saved.
    Saved,
    /// A tool that is saved nowhere: only the process that was given it can do the work.
    Draft,
}

impl Via {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a caller may do: names such as `workspace.read`. They are looked up each time a call is authorized and are never
/// part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions(PermissionSet);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PermissionSet {
    Everything,
    Only(Arc<BTreeSet<String>>),
}

impl Permissions {
    /// Whatever there is.
    pub fn everything() -> Self {
        Self(PermissionSet::Everything)
    }

    /// Nothing at all.
    pub fn none() -> Self {
        Self::only([])
    }

    /// These and no others.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self(PermissionSet::Only(Arc::new(names.into_iter().collect())))
    }

    /// Whether this one is among them.
    pub fn allow(&self, permission: &str) -> bool {
        match &self.0 {
            PermissionSet::Everything => true,
            PermissionSet::Only(names) => names.contains(permission),
        }
    }
}

/// Through which door a call or an answer came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The command line.
    Cli,
    /// An MCP client.
    Mcp,
    /// A page, by somebody who is signed in.
    Web,
    /// A program, by HTTP.
    Api,
    /// A page that whoever was sent its link opens: they are known by the link alone.
    Link,
    /// An approver, who gave another input than was asked for.
    Edit,
    /// haft itself.
    House,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub id: CallerId,
    /// The name people see.
    pub name: String,
    /// Where the caller is at home.
    pub scope: Scope,
    /// What the caller may do.
    pub permissions: Permissions,
    /// The door the caller came in by.
    pub source: Source,
    /// What the call is part of.
    pub via: Via,
}

impl Caller {
    /// The local owner, who may do everything.
    pub fn owner(name: impl Into<String>, scope: Scope, source: Source) -> Self {
        let (id, permissions) = (CallerId::owner(), Permissions::everything());
        Self { id, name: name.into(), scope, permissions, source, via: Via::default() }
    }

    /// haft itself, which answers where nobody else has.
    pub(crate) fn house(scope: &Scope) -> Self {
        Self {
            id: CallerId { kind: CallerKind::House, id: "haft".to_owned() },
            name: "haft".to_owned(),
            scope: scope.clone(),
            permissions: Permissions::none(),
            source: Source::House,
            via: Via::default(),
        }
    }

    /// Who it is and what they are called, for a record.
    pub fn who(&self) -> CallerRef {
        CallerRef { id: self.id.clone(), name: self.name.clone() }
    }

    /// Whether they may see a call of their tenant: their own, or everybody's.
    pub fn may_see(&self, call: &CallRecord) -> bool {
        call.opening.caller.who.id == self.id || self.permissions.allow("calls.team.read")
    }

    /// Their name, where they ask by a form of their own and for nobody else. What they fill in is their yes to it.
    pub(crate) fn own_form(&self) -> Option<&str> {
        let is_own = is_own_form((self.id.kind, self.source), &self.via);
        is_own.then_some(&self.name)
    }

    /// What the journal keeps of the caller.
    pub fn record(&self) -> CallerRecord {
        CallerRecord { who: self.who(), source: self.source, via: self.via.clone() }
    }
}

/// A caller as the journal keeps it. The scope is the record's own. Permissions are left out on purpose: whoever carries
/// the call on asks the guard what the caller may do by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallerRecord {
    /// Who, and by what name.
    #[serde(flatten)]
    pub who: CallerRef,
    /// The door the caller came in by.
    pub source: Source,
    /// What the call was part of.
    #[serde(default, skip_serializing_if = "Via::is_empty")]
    pub via: Via,
}

impl CallerRecord {
    /// Their name, where they asked by a form of their own and for nobody else.
    pub(crate) fn own_form(&self) -> Option<&str> {
        let is_own = is_own_form((self.who.id.kind, self.source), &self.via);
        is_own.then_some(&self.who.name)
    }

    /// The caller again, at home in the record's scope, with what they may do now.
    pub fn with(self, scope: Scope, permissions: Permissions) -> Caller {
        let Self { who: CallerRef { id, name }, source, via } = self;
        Caller { id, name, scope, permissions, source, via }
    }
}

/// A page acts for a person only with the cookie and the secret of their sign-in.
fn is_own_form((kind, source): (CallerKind, Source), via: &Via) -> bool {
    kind == CallerKind::Person && source == Source::Web && via.on_behalf_of.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for kind in CallerKind::ALL {
            assert_eq!(json!(kind), json!(kind.word()));
            let id = CallerId { kind: *kind, id: "a:b".to_owned() };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in ["", "anna", "owner:", "user:anna", ":x"] {
            wrong.parse::<CallerId>().unwrap_err();
        }
    }

    #[test]
    fn a_record_says_who_and_not_what_they_may() {
        let who = CallerRef { id: CallerId::owner(), name: "anna".to_owned() };
        let via = Via { run: Some("r1".to_owned()), on_behalf_of: vec![who.clone()], ..Via::default() };
        let record = CallerRecord { who, source: Source::Cli, via };
        let anna = json!({"kind": "owner", "id": "local", "name": "anna"});
        let mut written = anna.clone();
        written["source"] = json!("cli");
        written["via"] = json!({"run": "r1", "onBehalfOf": [anna]});
        assert_eq!(json!(record), written);
        assert_eq!(serde_json::from_value::<CallerRecord>(written).unwrap(), record);
    }

    #[test]
    fn only_a_person_at_a_page_and_for_nobody_else_asks_by_their_own_form() {
        let who = |kind| CallerRef { id: CallerId { kind, id: "p1".to_owned() }, name: "anna".to_owned() };
        let record = |kind, source, on_behalf_of| CallerRecord {
            who: who(kind),
            source,
            via: Via { on_behalf_of, ..Via::default() },
        };
        let person = CallerKind::Person;
        assert_eq!(record(person, Source::Web, vec![]).own_form(), Some("anna"));
        assert_eq!(record(person, Source::Web, vec![who(person)]).own_form(), None);
        for source in [Source::Api, Source::Mcp, Source::Cli, Source::Edit, Source::House] {
            assert_eq!(record(person, source, vec![]).own_form(), None, "{source:?}");
        }
        for kind in CallerKind::ALL.iter().filter(|kind| **kind != person) {
            assert_eq!(record(*kind, Source::Web, vec![]).own_form(), None, "{kind:?}");
        }
    }

    #[test]
    fn permissions_are_a_set() {
        let reads = Permissions::only(["workspace.read".to_owned()]);
        assert!(reads.allow("workspace.read") && !reads.allow("workspace.write"));
        assert!(Permissions::everything().allow("workspace.write") && !Permissions::none().allow("workspace.read"));
    }
}

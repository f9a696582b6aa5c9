//! The rules that a tenant decides by.

use haft_runtime::{AutoApprove, Caller, ErrorCode, Past, Rule, Scope, ToolError, Within};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Platform, platform::mistake};

/// Under which name they are set.
const SETTING: &str = "policy";
/// Every decision looks at each of them.
const MOST_RULES: usize = 1000;

/// What a tenant decides by, in the version that holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantRules {
    /// How often they were saved; 0 where nobody has.
    pub version: i64,
    /// The rules; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What may happen without asking.
    pub auto_approve: AutoApprove,
    /// Who saved them last, and when.
    pub saved: Option<(String, Timestamp)>,
}

/// The same as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRules {
    version: i64,
    rules: Vec<Value>,
    auto_approve: AutoApprove,
    saved_by: String,
    saved_at: Timestamp,
}

/// What every setting has that counts its versions.
#[derive(Deserialize)]
struct Versioned {
    version: i64,
}

impl Platform {
    /// The rules of a tenant as they are now.
    pub async fn rules(&self, scope: &Scope) -> Result<TenantRules, ToolError> {
        match self.store.tenant_setting(scope, SETTING).await? {
            Some(text) => read(&text),
            None => Ok(TenantRules::default()),
        }
    }

    /// Puts rules in the place of those of a version; refused when others hold by now.
    pub async fn set_rules(
        &self,
        caller: &Caller,
        (rules, auto_approve): (&[Rule], AutoApprove),
        over: i64,
    ) -> Result<TenantRules, ToolError> {
        let stored = StoredRules {
            version: over + 1,
            rules: rules.iter().map(Rule::written).collect(),
            auto_approve,
            saved_by: caller.id.to_string(),
            saved_at: Timestamp::now(),
        };
        let text = serde_json::to_string(&stored).map_err(|err| unreadable(&err))?;
        self.replace_version(&caller.scope, (SETTING, over), &text).await?;
        read(&text)
    }

    /// Puts another text in the place of a setting that counts its versions; refused when another version holds by now.
    pub(crate) async fn replace_version(
        &self,
        scope: &Scope,
        (setting, over): (&str, i64),
        text: &str,
    ) -> Result<(), ToolError> {
        let version = |text: &str| serde_json::from_str::<Versioned>(text).map_or(0, |kept| kept.version);
        let before = self.store.tenant_setting(scope, setting).await?;
        let mut now = before.as_deref().map_or(0, version);
        if now == over {
            if self.store.change_tenant_setting(scope, (setting, before.as_deref()), text).await? {
                self.look_at_version(scope).await?;
                return Ok(());
            }
            now = self.store.tenant_setting(scope, setting).await?.as_deref().map_or(0, version);
        }
        let message = format!("the rules are in version {now} by now; read them again");
        Err(ToolError::new(ErrorCode::Conflict, message).with("version", now))
    }

    /// The last calls of a caller's tenant with what they were decided on, newest first.
    pub async fn last_calls(&self, caller: &Caller, within: &Within, most: u32) -> Result<Vec<Past>, ToolError> {
        Ok(self.store.last_calls(&caller.scope, within, most).await?)
    }
}

/// The rules that somebody wrote.
pub fn read_rules(written: &[Value]) -> Result<Vec<Rule>, ToolError> {
    if written.len() > MOST_RULES {
        return Err(mistake(format!("there are {} rules; {MOST_RULES} are the most", written.len())));
    }
    let read = |(rule, number): (&Value, usize)| {
        let name = format!("rule {number} of the tenant");
        Rule::read(rule, &name).map_err(|err| mistake(format!("rule {number}: {err}")))
    };
    written.iter().zip(1..).map(read).collect()
}

fn read(text: &str) -> Result<TenantRules, ToolError> {
    let stored: StoredRules = serde_json::from_str(text).map_err(|err| unreadable(&err))?;
    Ok(TenantRules {
        version: stored.version,
        rules: read_rules(&stored.rules)?,
        auto_approve: stored.auto_approve,
        saved: Some((stored.saved_by, stored.saved_at)),
    })
}

fn unreadable(err: &serde_json::Error) -> ToolError {
    ToolError::new(ErrorCode::Internal, format!("the rules of the tenant cannot be read: {err}"))
}

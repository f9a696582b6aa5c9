//! What still names a tool that somebody wants to delete.

use haft_runtime::{ErrorCode, Scope, ToolError};
use serde_json::{Value, json};

use super::AuthoredTools;

impl AuthoredTools {
    /// Refuses to delete a tool that something names: whoever takes its name next would have its grants.
    pub(super) async fn refuse_referred(&self, scope: &Scope, slug: &str) -> Result<(), ToolError> {
        let grants = self.platform.store.usable_grants_anywhere(scope, slug).await?;
        let mut referrers: Vec<Value> = grants.iter().map(|grant| json!({"kind": "grant", "id": grant.id})).collect();
        let rules = self.platform.rules(scope).await?.rules;
        let named = rules.iter().filter(|rule| rule.tool.as_deref() == Some(slug));
        referrers.extend(named.map(|rule| json!({"kind": "rule", "id": rule.name})));
        if referrers.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = referrers.iter().filter_map(|one| one["id"].as_str()).collect();
        let message = format!("`{slug}` is still named by {}; take that back first", ids.join(", "));
        Err(ToolError::new(ErrorCode::Conflict, message).with("referrers", referrers))
    }
}

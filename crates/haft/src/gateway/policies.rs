//! Which rules decide about the calls of a tenant.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_platform::{ApprovalRules, Platform, TenantRules};
use haft_runtime::{Caller, Layers, Policies, Policy, PolicyVersions, Scope, Source, ToolError, Tools};

use super::folders::{OpenFolder, TenantFolders};
use crate::{rooms, rules};

/// For how many scopes the rules are kept at hand.
const MOST_SCOPES: usize = 1024;

/// The rules of each tenant, and behind them those that hold where it works: the user's own in the user's folders, and the
/// built-in ones.
pub(super) struct TenantPolicies {
    platform: Arc<Platform>,
    folders: Arc<TenantFolders>,
    catalog: Arc<Layers>,
    kept: Mutex<HashMap<Scope, KeptPolicy>>,
}

/// The rules of a scope, and what they were made from.
struct KeptPolicy {
    version: i64,
    tools: Arc<Tools>,
    folder: Option<Arc<OpenFolder>>,
    policy: Arc<Policy>,
}

impl TenantPolicies {
    pub(super) fn new(platform: &Arc<Platform>, folders: &Arc<TenantFolders>, catalog: &Arc<Layers>) -> Self {
        let (platform, folders, catalog) = (platform.clone(), folders.clone(), catalog.clone());
        Self { platform, folders, catalog, kept: Mutex::default() }
    }

    async fn policy(&self, scope: &Scope) -> Result<Arc<Policy>, ToolError> {
        let version = self.platform.version(scope).await?;
        let folder = self.folders.find(scope);
        let tools = self.catalog.tools(&Caller::owner("haft", scope.clone(), Source::House));
        if let Some(known) = self.known(scope, version, (&tools, folder.as_ref())) {
            return Ok(known);
        }
        let (rules, approvals) = (self.platform.rules(scope).await?, self.platform.approval_rules(scope).await?);
        let policy = Arc::new(self.made((rules, &approvals), &tools, folder.as_deref()));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_SCOPES {
            kept.clear();
        }
        kept.insert(scope.clone(), KeptPolicy { version, tools, folder, policy: Arc::clone(&policy) });
        Ok(policy)
    }

    fn known(
        &self,
        scope: &Scope,
        version: i64,
        (tools, folder): (&Arc<Tools>, Option<&Arc<OpenFolder>>),
    ) -> Option<Arc<Policy>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.get(scope)?;
        let same_folder = match (&known.folder, folder) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let same = known.version == version && Arc::ptr_eq(&known.tools, tools) && same_folder;
        same.then(|| Arc::clone(&known.policy))
    }

    fn made(
        &self,
        (own, approvals): (TenantRules, &ApprovalRules),
        tools: &Tools,
        folder: Option<&OpenFolder>,
    ) -> Policy {
        let settings = folder.map_or(&self.folders.settings, |folder| &folder.settings);
        let there = match folder.is_some_and(|folder| folder.project.is_some()) {
            true => rooms::policy(settings, tools),
            false => Policy {
                defaults: settings.shipped().rules(),
                ..Policy::without_rules(settings.sandbox.minimum_unasked)
            },
        };
        Policy {
            rules: rules::named(own.rules, tools),
            defaults: there.rules.into_iter().chain(there.defaults).collect(),
            mode: Some(own.auto_approve),
            tightening: there.tightening.into_iter().chain(rules::named(approvals.asking(), tools)).collect(),
            minimum_unasked: there.minimum_unasked,
            versions: Some(PolicyVersions { policy: own.version, approval_rules: approvals.version }),
        }
    }
}

impl Policies for TenantPolicies {
    fn of<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Arc<Policy>, ToolError>> {
        Box::pin(self.policy(scope))
    }
}

//! Letting go of what is past, by jobs: of each tenant's journal, and of each node's data folder.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use haft_platform::{JobEnd, JobRunner, Platform};
use haft_runtime::{ErrorCode, Scope, ToolError};
use haft_store::{ClaimedJob, JobOwner, Store};

use crate::{
    retention::{Sweep, Swept, sweep_folder, sweep_journal},
    settings::Settings,
};

const EVERY: Duration = Duration::from_secs(24 * 3600);

/// Forgets the old calls and outputs of a tenant.
pub(super) struct JournalRetention {
    pub(super) platform: Arc<Platform>,
    pub(super) settings: Settings,
}

impl JobRunner for JournalRetention {
    fn kind(&self) -> &'static str {
        "retention"
    }

    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>> {
        Box::pin(async move {
            let JobOwner::Tenant(scope) = &job.of else { return Ok(JobEnd::Done) };
            let own = self.platform.settings(scope).await?.retention;
            let (store, settings) = (self.platform.store(), &self.settings);
            told(sweep_journal(store, settings, (scope, &own), Sweep::Remove).await)
        })
    }
}

/// Removes the old changes of every tenant from the data folder of this node.
pub(super) struct FolderRetention {
    pub(super) store: Store,
    pub(super) settings: Settings,
    /// The tenant of this machine's own user, whose changes most of them are.
    pub(super) local: Scope,
}

impl JobRunner for FolderRetention {
    fn kind(&self) -> &'static str {
        "changes"
    }

    fn is_for_each_node(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, _job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>> {
        Box::pin(async move { told(sweep_folder(&self.store, &self.settings, &self.local).await) })
    }
}

fn told(swept: anyhow::Result<Swept>) -> Result<JobEnd, ToolError> {
    let failed = |err: anyhow::Error| ToolError::new(ErrorCode::ExecutionError, format!("{err:#}"));
    let Swept { calls, outputs, changes, orphans, .. } = swept.map_err(failed)?;
    tracing::info!(calls, outputs = outputs.count, changes = changes.count + orphans.count, "old data was removed");
    Ok(JobEnd::Again(EVERY))
}

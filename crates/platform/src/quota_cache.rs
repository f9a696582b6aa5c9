//! The quotas of tenants, each as of a version, and of what was warned already.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use haft_runtime::{Scope, TenantId};
use haft_store::QuotaKind;

use crate::quotas::KnownQuotas;

/// For how many tenants warnings are remembered.
const MOST_WARNED: usize = 10_000;

/// What is kept at hand so that a call without a quota costs nothing.
#[derive(Default)]
pub(crate) struct QuotaCache {
    known: Mutex<HashMap<TenantId, (i64, KnownQuotas)>>,
    warned: Mutex<HashSet<(TenantId, QuotaKind)>>,
}

impl QuotaCache {
    pub(crate) fn get(&self, scope: &Scope, version: i64) -> Option<KnownQuotas> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(scope.tenant()).filter(|(known, _)| *known == version).map(|(_, quotas)| *quotas)
    }

    pub(crate) fn keep(&self, scope: &Scope, version: i64, quotas: KnownQuotas) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.tenant().clone(), (version, quotas));
        // With other quotas it is time for another warning.
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).retain(|(tenant, _)| tenant != scope.tenant());
    }

    /// Whether nobody was warned of this yet.
    pub(crate) fn warns(&self, scope: &Scope, kind: QuotaKind) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() >= MOST_WARNED {
            warned.clear();
        }
        warned.insert((scope.tenant().clone(), kind))
    }
}

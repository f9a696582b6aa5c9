//! How many large requests are read at a time: each is in memory until it is whole.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::{HeaderMap, header};
use haft_runtime::{ErrorCode, TenantId, ToolError};

use crate::problem::Problem;

/// What is no longer than this is never counted.
const SMALL: usize = 256 << 10;
/// How many of one tenant, and how many in all.
const MOST_EACH: usize = 16;
const MOST: usize = 128;

/// The large requests that are being read.
#[derive(Clone, Default)]
pub struct LargeBodies(Arc<Mutex<HashMap<TenantId, usize>>>);

/// The place of one large request among the others, free when it is dropped.
#[derive(Clone)]
pub(crate) struct BodyPlace {
    _held: Option<Arc<HeldPlace>>,
}

struct HeldPlace {
    bodies: LargeBodies,
    tenant: TenantId,
}

impl LargeBodies {
    /// A place for the body that a head tells of; refused when there are too many.
    pub(crate) fn place(&self, headers: &HeaderMap, tenant: &TenantId) -> Result<BodyPlace, Problem> {
        let told = headers.get(header::CONTENT_LENGTH).and_then(|told| told.to_str().ok()?.parse::<usize>().ok());
        let is_large =
            told.unwrap_or(if headers.contains_key(header::TRANSFER_ENCODING) { usize::MAX } else { 0 }) > SMALL;
        if !is_large {
            return Ok(BodyPlace { _held: None });
        }
        let mut counted = self.counted();
        let all: usize = counted.values().sum();
        let own = counted.entry(tenant.clone()).or_default();
        if *own >= MOST_EACH || all >= MOST {
            let message = "too many large requests come at this moment; try again soon";
            return Err(ToolError::new(ErrorCode::RateLimited, message).with("retryAfterMs", 1000).into());
        }
        *own += 1;
        let held = HeldPlace { bodies: self.clone(), tenant: tenant.clone() };
        Ok(BodyPlace { _held: Some(Arc::new(held)) })
    }

    fn counted(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut counted = self.bodies.counted();
        if let Some(own) = counted.get_mut(&self.tenant) {
            *own -= 1;
        }
        counted.retain(|_, own| *own > 0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_tenant_has_so_many_large_requests_at_a_time_and_others_have_their_own() {
        let (bodies, acme, bolt) = (LargeBodies::default(), TenantId::local(), TenantId::parse("tn_bolt").unwrap());
        let of =
            |length: &str| HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from_str(length).unwrap())]);
        let large = of("1000000");
        let held: Vec<BodyPlace> = (0..MOST_EACH).map(|_| bodies.place(&large, &acme).unwrap()).collect();
        let refused = bodies.place(&large, &acme).err().unwrap();
        assert_eq!(refused.error().code, ErrorCode::RateLimited);
        bodies.place(&of("1000"), &acme).unwrap();
        bodies.place(&HeaderMap::new(), &acme).unwrap();
        bodies.place(&large, &bolt).unwrap();
        let endless = HeaderMap::from_iter([(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"))]);
        assert!(bodies.place(&endless, &acme).is_err());
        drop(held);
        bodies.place(&endless, &acme).unwrap();
        assert!(bodies.counted().is_empty());
    }
}

//! A request that was sent twice with the same `Idempotency-Key` starts one call.

use haft_runtime::{CallId, Caller, CallsInHand, ErrorCode, ToolError};
use haft_store::KeyUse;

use crate::{Platform, platform::mistake, random};

/// The longest key.
const LONGEST: usize = 200;

impl Platform {
    /// The call that a request with this key has started before; `None` when it shall start this one, which is in hand. A
    /// key that was used for another request is refused.
    pub async fn started_before(
        &self,
        caller: &Caller,
        (key, request): (&str, &str),
        call: (&CallId, &CallsInHand),
    ) -> Result<Option<CallId>, ToolError> {
        if key.is_empty() || key.len() > LONGEST {
            return Err(mistake(format!("an Idempotency-Key has 1 to {LONGEST} characters")));
        }
        let digest = random::hash(request);
        match self.store.use_idempotency_key(caller, (key, &digest), call).await? {
            KeyUse::New => Ok(None),
            KeyUse::Before(call, known) if known == digest => Ok(Some(call)),
            KeyUse::Before(..) => {
                let message = "this Idempotency-Key was used for another request; take a new one";
                Err(ToolError::new(ErrorCode::Conflict, message))
            }
        }
    }
}

//! Requests that were sent twice with the same key.

use std::time::Duration;

use haft_runtime::{CallId, Caller, CallsInHand, HouseWide};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    nodes::Life,
    sql::Statement,
};

/// How long a key is remembered.
const LASTS: Duration = Duration::from_secs(24 * 3600);

const CLAIM: &str = "insert into idempotency_keys (tenant, caller, name, digest, call, owner, created_at) \
                     values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, caller, name) do update set \
                     digest = excluded.digest, call = excluded.call, owner = excluded.owner, \
                     created_at = excluded.created_at where idempotency_keys.created_at < $8 returning 1 as claimed";
const TAKE_OVER: &str = "update idempotency_keys set call = $4, owner = $5 \
                         where tenant = $1 and caller = $2 and name = $3 and call = $6 returning 1 as taken";
const FORGET: &str = "delete from idempotency_keys where created_at < $1";
const FIND: &str = "select digest, call, owner from idempotency_keys where tenant = $1 and caller = $2 and name = $3";

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It is new, and stands for this call from now on.
    New,
    /// It stands for an earlier request: this call, and the digest of what was sent.
    Before(CallId, String),
}

impl Store {
    /// Has a key of a caller stand for a call, which is in hand, unless it stands for one already.
    pub async fn use_idempotency_key(
        &self,
        caller: &Caller,
        (key, digest): (&str, &str),
        (call, in_hand): (&CallId, &CallsInHand),
    ) -> Result<KeyUse, StoreError> {
        let now = Timestamp::now();
        let oldest = now.checked_sub(LASTS).unwrap_or(Timestamp::UNIX_EPOCH);
        let (tenant, who) = (tenant(&caller.scope), caller.id.to_string());
        let of_key = |sql| Statement::new(sql).bind(tenant).bind(who.as_str()).bind(key);
        self.node().hold().await?;
        let claim = of_key(CLAIM).bind(digest).bind(call.as_str()).bind(self.owner()).bind(now.as_microsecond());
        if self.change(ConditionalWrite::new(tenant, claim.bind(oldest.as_microsecond()))).await? {
            return Ok(KeyUse::New);
        }
        let Some(row) = self.read_one(of_key(FIND)).await? else { return Ok(KeyUse::New) };
        let columns = Columns { of: "idempotency_keys", row: &row };
        let (first, known) = (columns.call_id("call")?, columns.text("digest")?);
        let may_start = self.may_start(in_hand, &first, &columns.text("owner")?).await;
        if !may_start && self.call_row(&caller.scope, &first).await?.is_none() {
            let take_over = of_key(TAKE_OVER).bind(call.as_str()).bind(self.owner()).bind(first.as_str());
            if known == digest && self.change(ConditionalWrite::new(tenant, take_over)).await? {
                return Ok(KeyUse::New);
            }
        }
        Ok(KeyUse::Before(first, known))
    }

    /// Whether the process that was about to start a call may do so yet.
    async fn may_start(&self, in_hand: &CallsInHand, call: &CallId, owner: &str) -> bool {
        if owner == self.owner() {
            return in_hand.has(call) || self.queue().owes(call.as_str());
        }
        matches!(self.node().look_at(owner).await, Life::Alive)
    }

    /// Forgets the keys that are older than they are remembered.
    pub async fn forget_old_idempotency_keys(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let oldest = Timestamp::now().checked_sub(LASTS).unwrap_or(Timestamp::UNIX_EPOCH);
        let forget = Statement::new(FORGET).bind(oldest.as_microsecond());
        self.change(ConditionalWrite::of_database(forget)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_keys() {
        crate::schema::tests::assert_quick(&[super::FIND, super::FORGET, super::TAKE_OVER]);
    }
}

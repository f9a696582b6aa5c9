//! How much a tenant may have and use.

use std::time::Duration;

use haft_runtime::{ErrorCode, Scope, ToolError};
pub use haft_store::QuotaKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Platform, platform::mistake};

/// From how much of a quota on its tenant is warned, in percent.
const WARN_AT: i64 = 80;
const DAY: i64 = 24 * 3600;

/// How much of something a tenant may have, and has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaView {
    /// What it is about: `calls_per_day`, `people`, `keys`, `tools`, `open_questions` or `media` (bytes).
    pub name: String,
    /// The most; absent where the operator set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<i64>,
    /// How much it is now. Calls are counted only where there is a quota, open questions up to 10,000.
    pub used: i64,
    /// Whether four fifths of it are used.
    pub near: bool,
}

impl Platform {
    /// How much a tenant may have and has of everything.
    pub async fn quotas(&self, scope: &Scope) -> Result<Vec<QuotaView>, ToolError> {
        let used = self.store.quota_use(scope).await?.into_iter();
        Ok(used
            .map(|quota| QuotaView {
                name: quota.kind.word().to_owned(),
                most: quota.most,
                used: quota.used,
                near: quota.most.is_some_and(|most| is_near(quota.used, most)),
            })
            .collect())
    }

    /// Sets quotas as `name=number`, sizes with a unit, or `name=` to lift one.
    pub async fn set_quotas(&self, scope: &Scope, written: &[String]) -> Result<(), ToolError> {
        let quotas = written.iter().map(|written| read(written)).collect::<Result<Vec<_>, _>>()?;
        for (kind, most) in quotas {
            self.store.set_quota(scope, kind, most).await?;
        }
        self.look_at_version(scope).await.map(drop)
    }

    /// The quotas that a tenant has, as of the last change.
    async fn known_quotas(&self, scope: &Scope) -> Result<KnownQuotas, ToolError> {
        let version = self.version(scope).await?;
        if let Some(known) = self.quota_cache.get(scope, version) {
            return Ok(known);
        }
        let quotas = self.store.quotas(scope).await?;
        let most = |kind: QuotaKind| quotas.iter().find(|(known, _)| *known == kind).map(|(_, most)| *most);
        let known = KnownQuotas {
            calls_per_day: most(QuotaKind::CallsPerDay),
            open_questions: most(QuotaKind::OpenQuestions),
            media: most(QuotaKind::Media),
        };
        self.quota_cache.keep(scope, version, known);
        Ok(known)
    }

    /// Refuses a call that has not begun while its tenant has used up what it may.
    pub async fn refuse_beyond_quota(&self, scope: &Scope) -> Result<(), ToolError> {
        let KnownQuotas { calls_per_day, open_questions, .. } = self.known_quotas(scope).await?;
        for (kind, most) in [(QuotaKind::CallsPerDay, calls_per_day), (QuotaKind::OpenQuestions, open_questions)] {
            let Some(most) = most else { continue };
            let used = self.store.used(scope, kind, Some(most)).await?;
            if used >= most {
                return Err(reached(kind, most));
            }
            if is_near(used, most) && self.quota_cache.warns(scope, kind) {
                tracing::warn!(tenant = %scope.tenant(), quota = kind.word(), used, most, "a quota is nearly used up");
            }
        }
        Ok(())
    }

    /// Counts a call that begins, or refuses it. Of two nodes that ask for the last one at once, one is refused.
    pub(crate) async fn count_call(&self, scope: &Scope) -> Result<(), ToolError> {
        let Some(most) = self.known_quotas(scope).await?.calls_per_day else { return Ok(()) };
        if self.store.take_call(scope).await? {
            return Ok(());
        }
        // The operator may have lifted it meanwhile.
        let still = self.store.quotas(scope).await?.iter().any(|(kind, _)| *kind == QuotaKind::CallsPerDay);
        if still { Err(reached(QuotaKind::CallsPerDay, most)) } else { Ok(()) }
    }

    /// The most bytes of media that a tenant may have, where the operator says so for this one.
    pub(crate) async fn most_media(&self, scope: &Scope) -> Result<Option<u64>, ToolError> {
        Ok(self.known_quotas(scope).await?.media.map(|most| u64::try_from(most).unwrap_or(0)))
    }

    /// That something could not be added because of a quota; `None` where that is not why.
    pub(crate) async fn reached_quota(&self, scope: &Scope, kind: QuotaKind) -> Result<Option<ToolError>, ToolError> {
        let quotas = self.store.quotas(scope).await?;
        let Some((_, most)) = quotas.into_iter().find(|(known, _)| *known == kind) else { return Ok(None) };
        let used = self.store.used(scope, kind, Some(most)).await?;
        Ok((used >= most).then(|| reached(kind, most)))
    }
}

/// What is looked at for each call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownQuotas {
    calls_per_day: Option<i64>,
    open_questions: Option<i64>,
    media: Option<i64>,
}

fn is_near(used: i64, most: i64) -> bool {
    used.saturating_mul(100) >= most.saturating_mul(WARN_AT)
}

fn reached(kind: QuotaKind, most: i64) -> ToolError {
    let (what, todo) = match kind {
        QuotaKind::CallsPerDay => ("calls on one day", "wait for the next day by UTC"),
        QuotaKind::People => ("people", "remove somebody"),
        QuotaKind::Keys => ("keys", "remove a key that nobody uses"),
        QuotaKind::Tools => ("tools", "remove a tool that nobody uses"),
        QuotaKind::OpenQuestions => ("open questions", "answer some of them"),
        QuotaKind::Media => ("bytes of media", "remove some of them"),
    };
    let message = format!("this tenant may have {most} {what}; {todo}, or ask the operator for more");
    let error = ToolError::new(ErrorCode::QuotaReached, message).with("quota", kind.word()).with("most", most);
    if kind == QuotaKind::CallsPerDay {
        let left = DAY - Timestamp::now().as_second().rem_euclid(DAY);
        return error.to_be_tried_after(Duration::from_secs(left.unsigned_abs()));
    }
    error
}

fn read(written: &str) -> Result<(QuotaKind, Option<i64>), ToolError> {
    let known = || QuotaKind::ALL.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ");
    let (name, most) = written
        .split_once('=')
        .ok_or_else(|| mistake(format!("`{written}` is no quota; write it like keys=20, or keys= to lift it")))?;
    let kind = QuotaKind::parse(name.trim())
        .ok_or_else(|| mistake(format!("there is no quota `{name}`; there are {}", known())))?;
    if most.trim().is_empty() {
        return Ok((kind, None));
    }
    let (digits, unit) =
        most.trim().split_at(most.trim().find(|it: char| !it.is_ascii_digit()).unwrap_or(most.trim().len()));
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(mistake(format!("`{unit}` is no unit; there are kB, MB and GB"))),
    };
    let number: Option<i64> = digits.parse().ok().and_then(|number: i64| number.checked_mul(factor));
    let number = number.filter(|number| *number > 0);
    number.map(|number| (kind, Some(number))).ok_or_else(|| mistake(format!("`{most}` is no number above 0")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn quotas_are_read_as_they_are_written() {
        assert_eq!(read("keys=20").unwrap(), (QuotaKind::Keys, Some(20)));
        assert_eq!(read("media=2GB").unwrap(), (QuotaKind::Media, Some(2_000_000_000)));
        assert_eq!(read("people=").unwrap(), (QuotaKind::People, None));
        for wrong in ["keys", "kyes=1", "keys=0", "keys=-1", "keys=x", "media=9999999999999GB", "media=1PB"] {
            read(wrong).map(|_| ()).expect_err(wrong);
        }
    }

    #[test]
    fn the_last_fifth_of_a_quota_is_near() {
        assert!(is_near(80, 100) && !is_near(79, 100) && is_near(1, 1) && is_near(i64::MAX, i64::MAX));
    }
}

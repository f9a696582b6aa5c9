//! How long what is past is kept, and letting go of the rest. Open questions, calls under way, staged changes and undos
//! that are still promised are never touched.

use std::{collections::HashSet, path::Path, time::Duration};

use anyhow::Result;
use haft_platform::{TENANT_SETTINGS, TenantRetention, tenant_settings};
use haft_runtime::{CallId, HouseWide, Scope};
use haft_sandbox::fence;
use haft_store::{Holding, OldThings, Store};
use haft_tools::{GiveUpResult, KeptChanges};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    house::{self, House},
    settings::Settings,
};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long the step at the end of a command may take, once a day.
const QUIET: Duration = Duration::from_millis(100);
/// Rows that go in one transaction.
const PAGE: u32 = 500;
/// A folder without a row may belong to a call that is being prepared; no preparation takes this much longer than it may.
const GRACE: Duration = Duration::from_secs(3600);

/// How long what is past is kept.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Ended calls.
    pub journal: Duration,
    /// The whole of long results.
    pub outputs: Duration,
    /// What is needed to undo a call, or to commit what it left staged.
    pub changes: Duration,
    /// Bytes of changes and outputs, above which the oldest go earlier.
    pub quota: Option<u64>,
    /// What is needed to undo a commit that nobody was asked about, whatever the quota.
    pub unasked: Duration,
    /// Administrative acts.
    pub audit: Duration,
}

impl Retention {
    /// What holds for one tenant, which may keep things for a shorter time than the operator does.
    fn of(&self, tenant: &TenantRetention) -> Self {
        let shorter = |own: Duration, days: Option<u32>| days.map_or(own, |days| own.min(days * DAY));
        Self {
            journal: shorter(self.journal, tenant.journal_days),
            outputs: shorter(self.outputs, tenant.outputs_days),
            ..self.clone()
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            journal: 90 * DAY,
            outputs: 30 * DAY,
            changes: 30 * DAY,
            quota: Some(2_000_000_000),
            unasked: 7 * DAY,
            audit: 400 * DAY,
        }
    }
}

/// Whether to let go, or only to say what would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Only say it.
    Look,
    /// Let go.
    Remove,
}

/// What went, or would go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Ended calls.
    pub calls: u64,
    /// Whole outputs.
    pub outputs: SpaceUse,
    /// What was uploaded.
    pub media: u64,
    /// Items of inboxes that were read.
    pub inbox: u64,
    /// Sessions without calls.
    pub sessions: u64,
    /// Administrative acts.
    pub acts: u64,
    /// Changes of calls, with what lay in the files before.
    pub changes: SpaceUse,
    /// Changes of calls that the journal does not know: a process was killed while it prepared them.
    pub orphans: SpaceUse,
    /// What commands had for themselves in workspaces that are gone.
    pub private: SpaceUse,
    /// Files of processes that are gone.
    pub owners: u64,
    /// Changes and outputs that stay.
    pub kept: SpaceUse,
}

/// Things of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpaceUse {
    /// How many.
    pub count: u64,
    /// How much space they take.
    pub bytes: u64,
}

impl SpaceUse {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Something that the quota may let go early: when it was last used, what it is, and its size.
type Candidate = (Timestamp, Thing, u64);

#[derive(Clone, Debug)]
enum Thing {
    Changes(CallId),
    Output(CallId),
}

/// What is collected from.
struct SweepTarget<'a> {
    store: &'a Store,
    settings: &'a Settings,
    /// How long what is past is kept here.
    retention: Retention,
    wide: HouseWide,
    /// The tenant whose journal it is.
    scope: Scope,
}

impl<'a> SweepTarget<'a> {
    fn of(house: &'a House) -> Self {
        let wide = house::wide(house.workspace.path());
        let retention = house.settings.retention.clone();
        Self { store: &house.store, settings: &house.settings, retention, wide, scope: house.scope.clone() }
    }
}

/// Lets go of everything that is past its time or above the quota, or says what that would be.
pub async fn sweep(house: &House, mode: Sweep) -> Result<Swept> {
    let mut collector = Collector::new(SweepTarget::of(house), mode, None);
    collector.changes().await?;
    collector.outputs().await?;
    collector.quota().await?;
    collector.calls().await?;
    collector.private()?;
    collector.owners().await?;
    Ok(collector.swept)
}

/// Lets go of what one tenant has of old calls and their outputs, media, inbox items, sessions and administrative acts, as long
/// as the tenant and the operator keep them; or says what that would be.
pub(crate) async fn sweep_journal(
    store: &Store,
    settings: &Settings,
    (scope, own): (&Scope, &TenantRetention),
    mode: Sweep,
) -> Result<Swept> {
    let retention = settings.retention.of(own);
    let target = SweepTarget { store, settings, retention, wide: house::whole(), scope: scope.clone() };
    let mut collector = Collector::new(target, mode, None);
    collector.outputs().await?;
    collector.quota().await?;
    collector.calls().await?;
    collector.things(own).await?;
    collector.audit().await?;
    Ok(collector.swept)
}

/// The same for every tenant of the database, each with what it is called. None where haft serves nobody from here.
pub(crate) async fn sweep_tenants(house: &House, mode: Sweep) -> Result<Vec<(String, Swept)>> {
    let (store, settings) = (&house.store, &house.settings);
    let mut all = Vec::new();
    for tenant in store.tenants(&house::whole()).await? {
        let own = tenant_settings(store.tenant_setting(&tenant.scope, TENANT_SETTINGS).await?.as_deref())?;
        all.push((tenant.slug, sweep_journal(store, settings, (&tenant.scope, &own.retention), mode).await?));
    }
    Ok(all)
}

/// Lets go of what lies in the data folder of this node, whichever tenant's it is: old changes, and what processes and
/// workspaces have left that are gone.
pub(crate) async fn sweep_folder(store: &Store, settings: &Settings, local: &Scope) -> Result<Swept> {
    let retention = settings.retention.clone();
    let target = SweepTarget { store, settings, retention, wide: house::whole(), scope: local.clone() };
    let mut collector = Collector::new(target, Sweep::Remove, None);
    collector.changes().await?;
    collector.quota().await?;
    collector.private()?;
    collector.owners().await?;
    Ok(collector.swept)
}

/// The small step at the end of a command: at most once a day, what is past its time, for a moment. It fails silently,
/// because it is not what the command was about; `haft gc` says why.
pub(crate) async fn quietly(house: &House) {
    if !is_due(&house.settings.data.join("swept")) {
        return;
    }
    let mut collector = Collector::new(SweepTarget::of(house), Sweep::Remove, Some(std::time::Instant::now() + QUIET));
    let _ = collector.changes().await;
    let _ = collector.outputs().await;
    let _ = collector.calls().await;
    let _ = collector.owners().await;
}

/// Whether a day has gone since the last time; if so, from now on it has not.
fn is_due(mark: &Path) -> bool {
    let age = mark.metadata().and_then(|meta| meta.modified()).ok().map(|last| last.elapsed().unwrap_or_default());
    if age.is_some_and(|age| age < DAY) {
        return false;
    }
    std::fs::write(mark, "").is_ok() && age.is_some()
}

struct Collector<'a> {
    of: SweepTarget<'a>,
    kept: KeptChanges,
    mode: Sweep,
    now: Timestamp,
    until: Option<std::time::Instant>,
    candidates: Vec<Candidate>,
    /// Changes that went or would go.
    gone: HashSet<CallId>,
    swept: Swept,
}

impl<'a> Collector<'a> {
    fn new(of: SweepTarget<'a>, mode: Sweep, until: Option<std::time::Instant>) -> Self {
        Self {
            kept: KeptChanges::new(&of.settings.data),
            of,
            mode,
            now: Timestamp::now(),
            until,
            candidates: Vec::new(),
            gone: HashSet::new(),
            swept: Swept::default(),
        }
    }

    fn retention(&self) -> &Retention {
        &self.of.retention
    }

    fn is_out_of_time(&self) -> bool {
        self.until.is_some_and(|until| std::time::Instant::now() >= until)
    }

    fn before(&self, age: Duration) -> Timestamp {
        self.now.checked_sub(age).unwrap_or(Timestamp::MIN)
    }

    async fn changes(&mut self) -> Result<()> {
        if self.mode == Sweep::Remove {
            self.kept.clear_leftovers().await?;
        }
        for call in self.kept.calls() {
            // They come in the order of their age, and the younger ones have their time before them.
            let is_young = made_at(&call) > self.before(self.retention().changes);
            if self.is_out_of_time() || (self.until.is_some() && is_young) {
                break;
            }
            let Some(kept) = self.kept.look(&call).await? else { continue };
            match self.holding(&call).await? {
                None if made_at(&call) < self.before(self.of.settings.longest_work + GRACE) => {
                    if self.give_up(&call).await? {
                        self.swept.orphans.add(kept.bytes);
                    }
                }
                None => self.swept.kept.add(kept.bytes),
                Some(held) if self.is_past(&held) => {
                    if self.give_up(&call).await? {
                        self.swept.changes.add(kept.bytes);
                    }
                }
                Some(held) => {
                    self.swept.kept.add(kept.bytes);
                    if !held.in_use && !kept.has_staged && !self.is_promised(&held) {
                        self.candidates.push((held.last_turn, Thing::Changes(call), kept.bytes));
                    }
                }
            }
        }
        Ok(())
    }

    /// What the journal says of a call: the tenant's own, or that of another one with the same data folder.
    async fn holding(&self, call: &CallId) -> Result<Option<Holding>> {
        let SweepTarget { store, wide, scope, .. } = &self.of;
        if let Some(held) = store.holding(scope, call).await? {
            return Ok(Some(held));
        }
        match store.scope_of_call(wide, call).await? {
            Some(other) => Ok(store.holding(&other, call).await?),
            None => Ok(None),
        }
    }

    /// Whether the changes of a call have had their time.
    fn is_past(&self, held: &Holding) -> bool {
        !held.in_use && held.last_turn < self.before(self.retention().changes) && !self.is_promised(held)
    }

    /// Nobody was asked, so somebody may notice only later what was done: it stays undoable for a stated time.
    fn is_promised(&self, held: &Holding) -> bool {
        !held.asked && held.last_turn >= self.before(self.retention().unasked)
    }

    async fn give_up(&mut self, call: &CallId) -> Result<bool> {
        if self.mode == Sweep::Remove && self.kept.give_up(call).await? == GiveUpResult::InUse {
            return Ok(false);
        }
        self.gone.insert(call.clone());
        Ok(true)
    }

    async fn outputs(&mut self) -> Result<()> {
        let oldest = self.before(self.retention().outputs);
        let mut after: Option<CallId> = None;
        loop {
            let page = self.of.store.kept_outputs(&self.of.scope, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.call.clone());
            let (old, young): (Vec<_>, Vec<_>) = page.into_iter().partition(|output| made_at(&output.call) < oldest);
            old.iter().for_each(|output| self.swept.outputs.add(output.bytes));
            let old: Vec<CallId> = old.into_iter().map(|output| output.call).collect();
            if self.mode == Sweep::Remove && !old.is_empty() {
                self.of.store.forget_outputs(&self.of.scope, &old).await?;
            }
            // They come in the order of their age.
            if self.is_out_of_time() || (self.until.is_some() && !young.is_empty()) {
                return Ok(());
            }
            for output in young {
                self.swept.kept.add(output.bytes);
                self.candidates.push((made_at(&output.call), Thing::Output(output.call), output.bytes));
            }
        }
    }

    /// The oldest go first, until the rest fits.
    async fn quota(&mut self) -> Result<()> {
        let Some(quota) = self.retention().quota else { return Ok(()) };
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_by_key(|(used, _, _)| *used);
        for (_, thing, bytes) in candidates {
            if self.swept.kept.bytes <= quota {
                break;
            }
            match thing {
                Thing::Changes(call) if self.give_up(&call).await? => self.swept.changes.add(bytes),
                Thing::Changes(_) => continue,
                Thing::Output(call) => {
                    if self.mode == Sweep::Remove {
                        self.of.store.forget_outputs(&self.of.scope, &[call]).await?;
                    }
                    self.swept.outputs.add(bytes);
                }
            }
            self.swept.kept.count -= 1;
            self.swept.kept.bytes -= bytes;
        }
        Ok(())
    }

    /// A call whose changes are kept is remembered with them.
    async fn calls(&mut self) -> Result<()> {
        let before = self.before(self.retention().journal);
        let mut after: Option<CallId> = None;
        loop {
            let page = self.of.store.old_calls(&self.of.scope, before, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            let is_needed = |of: &CallId| !self.gone.contains(of) && self.kept.has(of);
            let old = page.into_iter().filter(|call| !call.turn_of.as_ref().is_some_and(is_needed));
            let old: Vec<CallId> = old.map(|call| call.id).collect();
            self.swept.calls += old.len() as u64;
            if self.mode == Sweep::Remove {
                self.of.store.forget_calls(&self.of.scope, &old).await?;
            }
            if self.is_out_of_time() {
                return Ok(());
            }
        }
        if self.mode == Sweep::Remove {
            self.of.store.forget_counters(&self.of.scope, before).await?;
        }
        Ok(())
    }

    /// What a tenant has beside its calls.
    async fn things(&mut self, own: &TenantRetention) -> Result<()> {
        let SweepTarget { store, scope, .. } = &self.of;
        let before = |days: u32| self.before(days * DAY);
        let kinds = [
            (OldThings::Media, own.media_days.map(before)),
            (OldThings::Inbox, own.inbox_days.map(before)),
            // A session without calls is of no use to anybody.
            (OldThings::Sessions, Some(self.before(self.retention().journal))),
        ];
        for (kind, before) in kinds {
            let Some(before) = before else { continue };
            let old = store.count_old(scope, kind, before).await?;
            if self.mode == Sweep::Remove && old > 0 {
                store.forget_old(scope, kind, before).await?;
            }
            match kind {
                OldThings::Media => self.swept.media += old,
                OldThings::Inbox => self.swept.inbox += old,
                OldThings::Sessions => self.swept.sessions += old,
            }
        }
        Ok(())
    }

    /// Administrative acts, which only the operator says how long to keep.
    async fn audit(&mut self) -> Result<()> {
        let SweepTarget { store, scope, wide, .. } = &self.of;
        let before = self.before(self.retention().audit);
        let Some(through) = store.old_audit(wide, scope.tenant().as_str(), before).await? else { return Ok(()) };
        self.swept.acts += store.count_audit(scope, through).await?;
        if self.mode == Sweep::Remove {
            store.forget_audit(scope, through).await?;
        }
        Ok(())
    }

    fn private(&mut self) -> Result<()> {
        for folders in fence::abandoned(&self.of.settings.data)? {
            self.swept.private.add(folders.bytes);
            if self.mode == Sweep::Remove {
                folders.remove()?;
            }
        }
        Ok(())
    }

    async fn owners(&mut self) -> Result<()> {
        let SweepTarget { store, wide, .. } = &self.of;
        self.swept.owners = match self.mode {
            Sweep::Look => store.dead_owners(wide).await?,
            Sweep::Remove => store.forget_dead_owners(wide).await?,
        };
        Ok(())
    }
}

/// Ids begin with their time.
fn made_at(call: &CallId) -> Timestamp {
    let millis = call.as_str().get(3..15).and_then(|digits| i64::from_str_radix(digits, 16).ok());
    millis.and_then(|millis| Timestamp::from_millisecond(millis).ok()).unwrap_or(Timestamp::MAX)
}

//! Many writes in one transaction: the numbers of their events, what each claims, and what follows from it.

use std::collections::{BTreeMap, HashSet};

use crate::{
    AuditEntry, StoreError, audit,
    columns::Columns,
    counters::Counted,
    db::Transaction,
    journal_write::JournalWrite,
    late_results::LateWrite,
    live::Topic,
    sql::{Row, Statement},
};

/// One write, whole in itself.
pub(crate) enum StoreWrite {
    /// An entry of the journal.
    Entry(Box<JournalWrite>),
    /// A result that came after its call had timed out.
    Late(Box<LateWrite>),
    /// Statements about a call, a question or a grant.
    Change(ConditionalWrite),
    /// Nothing. Whoever waits for it waits for everything that came before.
    Mark,
}

/// A statement that decides by touching a row or not, and what is written only if it did.
pub(crate) struct ConditionalWrite {
    /// Whose it is; `None` where it takes no numbers and concerns no tenant alone.
    tenant: Option<String>,
    first: Statement,
    then: Vec<Statement>,
    topics: Vec<Topic>,
    accounting: Accounting,
}

/// Whether a write is an act that the audit log holds.
enum Accounting {
    /// Nobody said. Only tables that nobody administers are written so.
    Unsaid,
    /// It is, and is written there in the same transaction.
    Act(Box<AuditEntry>),
    /// It is no act of anybody, for the reason that stands where it is made.
    NoAct,
}

impl ConditionalWrite {
    /// One statement of a tenant. It must say by `returning` what it touched, if anybody is to know.
    pub(crate) fn new(tenant: &str, first: Statement) -> Self {
        Self { tenant: Some(tenant.to_owned()), ..Self::of_database(first) }
    }

    /// Rows of the database itself, such as a copy of another one's.
    pub(crate) fn of_database(first: Statement) -> Self {
        Self { tenant: None, first, then: Vec::new(), topics: Vec::new(), accounting: Accounting::Unsaid }
    }

    /// The same with one more statement that counts only if the first one does.
    pub(crate) fn and_then(mut self, next: Statement) -> Self {
        self.then.push(next);
        self
    }

    /// The same, written down in the audit log if it touched a row.
    pub(crate) fn audited(self, act: AuditEntry) -> Self {
        Self { accounting: Accounting::Act(Box::new(act)), ..self }
    }

    /// The same, although it is no act of anybody.
    pub(crate) fn unaudited(self, _why: &'static str) -> Self {
        Self { accounting: Accounting::NoAct, ..self }
    }

    /// The administered table that it changes without a word about the audit log, if it does.
    pub(crate) fn unaccounted_table(&self) -> Option<&'static str> {
        match self.accounting {
            Accounting::Unsaid => audit::administered(&self.first.sql),
            Accounting::Act(_) | Accounting::NoAct => None,
        }
    }

    fn act(&self) -> Option<&AuditEntry> {
        match &self.accounting {
            Accounting::Act(act) => Some(act),
            Accounting::Unsaid | Accounting::NoAct => None,
        }
    }

    /// The same, told to those who wait for it.
    pub(crate) fn telling(mut self, topic: Topic) -> Self {
        self.topics.push(topic);
        self
    }
}

impl StoreWrite {
    /// Whose it is; `None` where nothing is written.
    pub(crate) fn tenant(&self) -> Option<&str> {
        match self {
            Self::Entry(entry) => Some(&entry.tenant),
            Self::Late(late) => Some(&late.entry.tenant),
            Self::Change(change) => change.tenant.as_deref(),
            Self::Mark => None,
        }
    }

    /// Whose numbers it takes, or whose audit log it writes to: nobody else writes there until the commit.
    fn held_tenants(&self) -> impl Iterator<Item = &str> {
        let act = match self {
            Self::Change(change) => change.act(),
            Self::Entry(_) | Self::Late(_) | Self::Mark => None,
        };
        self.tenant().into_iter().chain(act.map(AuditEntry::tenant))
    }

    /// Whom it concerns.
    pub(crate) fn topics(&self) -> &[Topic] {
        match self {
            Self::Entry(entry) => &entry.topics,
            Self::Late(late) => &late.entry.topics,
            Self::Change(change) => &change.topics,
            Self::Mark => &[],
        }
    }

    fn event_count(&self) -> i64 {
        match self {
            Self::Entry(entry) => entry.event_count,
            Self::Late(late) => late.entry.event_count,
            Self::Change(_) | Self::Mark => 0,
        }
    }

    /// Of which call it is an entry.
    pub(crate) fn call(&self) -> Option<&str> {
        match self {
            Self::Entry(entry) => Some(&entry.call),
            Self::Late(late) => Some(&late.entry.call),
            Self::Change(_) | Self::Mark => None,
        }
    }
}

/// Takes numbers: the row is locked until the commit, so that nobody sees a higher number before a lower one.
const TAKE_NUMBERS: &str = "insert into heads (tenant, seq, version, forgotten) values ($1, $2, 1, 0) \
                            on conflict (tenant) do update set seq = heads.seq + excluded.seq, \
                            version = heads.version + 1 returning seq";
const ENDED_BY: &str = "select owner from calls where tenant = $1 and id = $2";

/// Writes all of it within a transaction, and says of each whether it touched a row.
pub(crate) async fn apply(tx: &impl Transaction, writes: &[&StoreWrite]) -> Result<Vec<bool>, StoreError> {
    let numbers = take_numbers(tx, writes).await?;
    let mut touched = vec![true; writes.len()];
    let (mut counted, mut acts) = (Counted::default(), Vec::new());
    for round in rounds(writes) {
        let (mut claims, mut claiming) = (Vec::new(), Vec::new());
        for place in &round {
            let claim = claim(writes[*place]);
            claiming.push(claim.is_some());
            claims.extend(claim);
        }
        let mut answers = tx.run(&claims).await?.into_iter();
        let mut following = Following::default();
        for (place, claims) in round.iter().zip(claiming) {
            let found = claims.then(|| answers.next().unwrap_or_default());
            match writes[*place] {
                StoreWrite::Entry(entry) => {
                    if is_late(tx, entry, found.as_deref()).await? {
                        continue;
                    }
                    follow(entry, numbers[*place], found.as_deref(), &mut following, &mut counted)?;
                }
                StoreWrite::Late(late) => {
                    touched[*place] = found.is_some_and(|rows| !rows.is_empty());
                    if touched[*place] {
                        following.entries.extend(late.entry.append(numbers[*place]));
                        following.rest.push(late.inbox());
                    }
                }
                StoreWrite::Change(change) => {
                    touched[*place] = found.is_some_and(|rows| !rows.is_empty());
                    if touched[*place] {
                        following.rest.extend(change.then.iter().cloned());
                        acts.extend(change.act());
                    }
                }
                StoreWrite::Mark => {}
            }
        }
        let Following { mut entries, calls, rest } = following;
        entries.extend(calls.into_iter().chain(rest));
        tx.run(&entries).await?;
    }
    tx.run(&counted.statements()).await?;
    audit::append(tx, &acts).await?;
    Ok(touched)
}

/// The number of the last event of each write. Tenants are gone through in one order, so that two processes never wait
/// for each other.
async fn take_numbers(tx: &impl Transaction, writes: &[&StoreWrite]) -> Result<Vec<i64>, StoreError> {
    let mut wanted: BTreeMap<&str, i64> = BTreeMap::new();
    for write in writes {
        for tenant in write.held_tenants() {
            wanted.entry(tenant).or_default();
        }
        if let Some(tenant) = write.tenant() {
            *wanted.entry(tenant).or_default() += write.event_count();
        }
    }
    let take = |(tenant, count): (&&str, &i64)| Statement::new(TAKE_NUMBERS).bind(*tenant).bind(*count);
    let taken = tx.run(&wanted.iter().map(take).collect::<Vec<_>>()).await?;
    let mut next: BTreeMap<&str, i64> = BTreeMap::new();
    for ((tenant, count), rows) in wanted.iter().zip(&taken) {
        let last = rows.first().map(|row| Columns { of: "heads", row }.number("seq")).transpose()?.unwrap_or_default();
        next.insert(tenant, last - count);
    }
    let number = |write: &&StoreWrite| {
        let Some(last) = write.tenant().and_then(|tenant| next.get_mut(tenant)) else { return 0 };
        *last += write.event_count();
        *last
    };
    Ok(writes.iter().map(number).collect())
}

/// Writes that do not depend on one another can be sent together: no two entries of the same call are in one round.
fn rounds(writes: &[&StoreWrite]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut waiting: Vec<usize> = (0..writes.len()).collect();
    while !waiting.is_empty() {
        let mut calls = HashSet::new();
        let is_first = |place: &usize| writes[*place].call().is_none_or(|call| calls.insert(call));
        let (round, later): (Vec<usize>, Vec<usize>) = waiting.into_iter().partition(is_first);
        rounds.push(round);
        waiting = later;
    }
    rounds
}

fn claim(write: &StoreWrite) -> Option<Statement> {
    match write {
        StoreWrite::Entry(entry) => entry.claim(),
        StoreWrite::Late(late) => Some(late.claim()),
        StoreWrite::Change(change) => Some(change.first.clone()),
        StoreWrite::Mark => None,
    }
}

/// Whether the call has ended already, so that nothing more is written of it. Only whoever ended it may come late; an entry
/// of a call that nobody opened, or that another process carries now, is refused.
async fn is_late(tx: &impl Transaction, entry: &JournalWrite, found: Option<&[Row]>) -> Result<bool, StoreError> {
    if found.is_none_or(|rows| !rows.is_empty()) {
        return Ok(false);
    }
    let (tenant, call) = (entry.tenant.as_str(), entry.call.as_str());
    let ended = tx.run(&[Statement::new(ENDED_BY).bind(tenant).bind(call)]).await?;
    let ended_by = ended.first().and_then(|rows| rows.first());
    let ended_by = ended_by.map(|row| Columns { of: call, row }.text("owner")).transpose()?;
    match ended_by {
        Some(_) if entry.opening.is_some() => Err(StoreError::known_already(call)),
        Some(owner) if owner == entry.owner => Ok(true),
        Some(_) => Err(StoreError::NotOwner(call.to_owned())),
        None if is_open(tx, entry).await? => Err(StoreError::NotOwner(call.to_owned())),
        None => Err(StoreError::UnknownCall(call.to_owned())),
    }
}

async fn is_open(tx: &impl Transaction, entry: &JournalWrite) -> Result<bool, StoreError> {
    const OPEN: &str = "select 1 as open from open_calls where tenant = $1 and id = $2";
    let found = tx.run(&[Statement::new(OPEN).bind(entry.tenant.as_str()).bind(entry.call.as_str())]).await?;
    Ok(found.first().is_some_and(|rows| !rows.is_empty()))
}

/// What is written once the claims of a round are known. Rows of one table are kept together: PostgreSQL takes them as one.
#[derive(Default)]
struct Following {
    entries: Vec<Statement>,
    calls: Vec<Statement>,
    rest: Vec<Statement>,
}

/// What is written once an entry counts.
fn follow(
    entry: &JournalWrite,
    seq: i64,
    found: Option<&[Row]>,
    following: &mut Following,
    counted: &mut Counted,
) -> Result<(), StoreError> {
    following.entries.extend(entry.append(seq));
    if let Some(call) = entry.ended(found.and_then(|rows| rows.first()))? {
        following.calls.push(call.insert(entry, seq));
        following.rest.extend(call.deliver(entry)?);
        if entry.via.trial.is_none() {
            counted.add(&entry.tenant, &call.counted());
        }
    }
    if let Some(body) = &entry.output {
        following.rest.push(crate::outputs::keep(&entry.tenant, &entry.call, body));
    }
    if let Some(question) = &entry.question {
        following.rest.push(question.insert(&entry.tenant));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_a_whole_table() {
        crate::schema::tests::assert_quick(&[super::TAKE_NUMBERS, super::ENDED_BY]);
    }
}

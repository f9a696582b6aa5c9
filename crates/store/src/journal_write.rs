//! One entry of the journal as columns. Everything is text and numbers before it reaches the database.

use std::{borrow::Cow, sync::Arc};

use haft_runtime::{CallEvent, CallState, End, Entry, Opening, Outcome, Question, Scope, Via};
use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    StoreError,
    columns::{Columns, tenant, word, workspace},
    inbox::InboxRow,
    live::Topic,
    questions::QuestionRow,
    sql::{Row, Statement},
};

/// One entry, ready to be written.
pub(crate) struct JournalWrite {
    pub(crate) tenant: String,
    pub(crate) call: String,
    /// What the call is part of.
    pub(crate) via: Arc<Via>,
    /// The store that writes it: only the owner of a call may.
    pub(crate) owner: String,
    /// What a call's first entry brings.
    pub(crate) opening: Option<CallColumns>,
    pub(crate) update: CallUpdate,
    pub(crate) at: i64,
    /// The events as one JSON array of times and events, their kinds, and how many they are.
    pub(crate) events: String,
    pub(crate) kinds: String,
    pub(crate) event_count: i64,
    pub(crate) output: Option<Vec<u8>>,
    pub(crate) question: Option<QuestionRow>,
    /// What its caller hears of it, unless that one waits for the answer to this question.
    inbox: Option<(InboxRow, u32)>,
    /// Whom it concerns.
    pub(crate) topics: Vec<Topic>,
}

/// Who asked for what, as a call's row has it.
#[derive(Clone)]
pub(crate) struct CallColumns {
    workspace: Option<String>,
    tool: String,
    parent: Option<String>,
    caller: String,
    source: String,
    auto_approve: String,
    session: Option<String>,
    started_at: i64,
    input: String,
}

/// A call at its end: as it was opened, or as it was found when it was taken from the open ones.
pub(crate) struct EndedCall<'a> {
    call: Cow<'a, CallColumns>,
    update: Cow<'a, CallUpdate>,
}

/// What an entry says of where its call stands. What it does not say stays as it is.
#[derive(Clone, Default)]
pub(crate) struct CallUpdate {
    state: String,
    pub(crate) ended: bool,
    /// It was handed back to its caller, so that whoever answers may carry it on.
    released: bool,
    asked: bool,
    status: Option<String>,
    code: Option<String>,
    isolation: Option<String>,
    turn_of: Option<String>,
    turn_direction: Option<String>,
    finished_at: Option<i64>,
    duration_ms: Option<i64>,
    cached: bool,
    /// How often it was tried again.
    retries: i64,
    turn: Option<String>,
    outcome: Option<String>,
}

/// The end of one call, for the counters.
pub(crate) struct CallEnd {
    pub(crate) workspace: String,
    pub(crate) tool: String,
    pub(crate) status: Option<String>,
    pub(crate) asked: bool,
    pub(crate) cached: bool,
    pub(crate) retries: i64,
    pub(crate) finished_at: Option<i64>,
    pub(crate) duration_ms: i64,
}

/// A call that is known, open or ended, is not opened again.
const OPEN: &str = "insert into open_calls (tenant, id, workspace, tool, parent, caller, source, auto_approve, session, owner, \
                    state, stop_wanted, answered, asked, status, code, isolation, turn_of, turn_direction, started_at, \
                    finished_at, duration_ms, turn, input, outcome) \
                    select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
                    $21, $22, $23 where not exists (select 1 from calls where tenant = $1 and id = $2) returning 1 as opened";
/// What is handed back may have been answered a moment ago, and is then carried on by somebody else.
const CHANGE: &str = "update open_calls set state = $4, \
                      answered = case when $15 = 1 then answered else 0 end, asked = case when $5 = 1 then 1 else asked end, \
                      code = case when $6 is null then code else $7 end, status = coalesce($6, status), \
                      isolation = coalesce($8, isolation), turn_of = coalesce($9, turn_of), \
                      turn_direction = coalesce($10, turn_direction), finished_at = coalesce($11, finished_at), \
                      duration_ms = coalesce($12, duration_ms), turn = coalesce($13, turn), \
                      outcome = coalesce($14, outcome), owner = case when $15 = 1 then '' else owner end \
                      where tenant = $1 and id = $2 and (owner = $3 or owner = '') returning 1 as changed";
const TAKE_OPEN: &str = "delete from open_calls where tenant = $1 and id = $2 and (owner = $3 or owner = '') \
                         returning workspace, tool, parent, caller, source, auto_approve, session, asked, status, code, \
                         isolation, turn_of, turn_direction, started_at, finished_at, duration_ms, turn, input, outcome";
const END: &str = "insert into calls (tenant, id, workspace, tool, parent, caller, source, auto_approve, session, owner, \
                   ended_seq, asked, status, code, isolation, turn_of, turn_direction, started_at, finished_at, duration_ms, \
                   turn, input, outcome) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
                   $18, $19, $20, $21, $22, $23)";
const APPEND: &str = "insert into entries (tenant, seq, at, call, session, run, agent, space, kinds, events) \
                      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

impl JournalWrite {
    /// The columns of an entry.
    pub(crate) fn new(scope: &Scope, owner: &str, entry: &Entry) -> Result<Self, StoreError> {
        let opening = entry.opening.as_ref().map(|opening| CallColumns::opened(scope, opening)).transpose()?;
        let output = entry.whole_output.as_ref().map(serde_json::to_vec).transpose()?;
        let events = entry.events.iter().map(|(at, event)| Ok((at.as_microsecond(), to_raw_value(event)?)));
        let events: Vec<(i64, Box<RawValue>)> = events.collect::<Result<_, serde_json::Error>>()?;
        let kinds: Vec<&str> = events.iter().map(|(_, event)| kind(event)).collect();
        let ended = entry.state == CallState::Ended;
        let at = events.first().map_or_else(|| Timestamp::now().as_microsecond(), |(at, _)| *at);
        Ok(Self {
            tenant: tenant(scope).to_owned(),
            call: entry.call.to_string(),
            via: Arc::clone(&entry.via),
            owner: owner.to_owned(),
            opening,
            update: CallUpdate::of(entry)?,
            at,
            kinds: kinds.join(" "),
            event_count: i64::try_from(events.len()).unwrap_or(i64::MAX),
            events: serde_json::to_string(&events)?,
            output,
            question: None,
            inbox: InboxRow::of_end(entry, at)?.zip(entry.result_of),
            topics: ended.then(|| Topic::Ended(entry.call.to_string())).into_iter().collect(),
        })
    }

    /// The same entry with a question that is put in the same transaction.
    pub(crate) fn asking(mut self, scope: &Scope, question: &Question) -> Result<Self, StoreError> {
        self.topics.push(Topic::Questions);
        self.question = Some(QuestionRow::new(scope, question)?);
        Ok(self)
    }

    /// What decides whether the entry counts; `None` where it needs nobody's leave.
    pub(crate) fn claim(&self) -> Option<Statement> {
        let key = |sql| Statement::new(sql).bind(self.tenant.as_str()).bind(self.call.as_str());
        match (&self.opening, self.update.ended) {
            (Some(_), true) => None,
            (Some(opening), false) => Some(opening.open(key(OPEN), &self.owner, &self.update)),
            (None, true) => Some(key(TAKE_OPEN).bind(self.owner.as_str())),
            (None, false) => Some(self.update.change(key(CHANGE).bind(self.owner.as_str()))),
        }
    }

    /// The call at its end, if this entry ends it.
    pub(crate) fn ended(&self, found: Option<&Row>) -> Result<Option<EndedCall<'_>>, StoreError> {
        if !self.update.ended {
            return Ok(None);
        }
        if let Some(opening) = &self.opening {
            return Ok(Some(EndedCall { call: Cow::Borrowed(opening), update: Cow::Borrowed(&self.update) }));
        }
        let Some(row) = found else { return Ok(None) };
        let columns = Columns { of: &self.call, row };
        let mut update = CallUpdate::read(&columns)?;
        update.add(&self.update);
        Ok(Some(EndedCall { call: Cow::Owned(CallColumns::read(&columns)?), update: Cow::Owned(update) }))
    }

    /// What writes the events, with the number of the last.
    pub(crate) fn append(&self, seq: i64) -> Option<Statement> {
        if self.event_count == 0 {
            return None;
        }
        let statement = Statement::new(APPEND).bind(self.tenant.as_str()).bind(seq).bind(self.at);
        let Via { session, run, agent, space, on_behalf_of: _, calls: _, trial: _ } = &*self.via;
        let statement = statement.bind(self.call.as_str()).bind(session.as_deref()).bind(run.as_deref());
        let statement = statement.bind(agent.as_deref()).bind(space.as_deref());
        Some(statement.bind(self.kinds.as_str()).bind(self.events.as_str()))
    }
}

impl CallColumns {
    fn opened(scope: &Scope, opening: &Opening) -> Result<Self, StoreError> {
        Ok(Self {
            workspace: workspace(scope).map(str::to_owned),
            tool: opening.tool.clone(),
            parent: opening.parent.as_ref().map(ToString::to_string),
            caller: serde_json::to_string(&opening.caller)?,
            source: word(&opening.caller.source)?,
            auto_approve: word(&opening.auto_approve)?,
            session: opening.caller.via.session.clone(),
            started_at: opening.at.as_microsecond(),
            input: serde_json::to_string(&opening.input)?,
        })
    }

    fn read(columns: &Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            workspace: columns.text_or_none("workspace")?,
            tool: columns.text("tool")?,
            parent: columns.text_or_none("parent")?,
            caller: columns.text("caller")?,
            source: columns.text("source")?,
            auto_approve: columns.text("auto_approve")?,
            session: columns.text_or_none("session")?,
            started_at: columns.number("started_at")?,
            input: columns.text("input")?,
        })
    }

    /// Who asked for what, as both tables have it first.
    fn facts(&self, key: Statement) -> Statement {
        key.bind(self.workspace.as_deref())
            .bind(self.tool.as_str())
            .bind(self.parent.as_deref())
            .bind(self.caller.as_str())
            .bind(self.source.as_str())
            .bind(self.auto_approve.as_str())
            .bind(self.session.as_deref())
    }

    fn open(&self, key: Statement, owner: &str, now: &CallUpdate) -> Statement {
        let owner = if now.released { "" } else { owner };
        let statement = self.facts(key).bind(owner).bind(now.state.as_str()).bind(now.asked);
        now.facts(statement, self.started_at).bind(self.input.as_str()).bind(now.outcome.as_deref())
    }
}

impl EndedCall<'_> {
    /// What writes it, with the number of its last event.
    pub(crate) fn insert(&self, entry: &JournalWrite, seq: i64) -> Statement {
        let Self { call, update } = self;
        let key = Statement::new(END).bind(entry.tenant.as_str()).bind(entry.call.as_str());
        let statement = call.facts(key).bind(entry.owner.as_str()).bind(seq).bind(update.asked);
        let statement = update.facts(statement, call.started_at);
        statement.bind(call.input.as_str()).bind(update.outcome.as_deref())
    }

    /// What tells its caller of a result from outside, unless that one waits for it.
    pub(crate) fn deliver(&self, entry: &JournalWrite) -> Result<Option<Statement>, StoreError> {
        let Some((row, question)) = &entry.inbox else { return Ok(None) };
        Ok(Some(row.unless_waited_for(&entry.tenant, &self.call.caller, *question)?))
    }

    /// What the counters are told.
    pub(crate) fn counted(&self) -> CallEnd {
        let CallUpdate { status, asked, cached, retries, finished_at, duration_ms, .. } = &*self.update;
        CallEnd {
            workspace: self.call.workspace.clone().unwrap_or_default(),
            tool: self.call.tool.clone(),
            status: status.clone(),
            asked: *asked,
            cached: *cached,
            retries: *retries,
            finished_at: *finished_at,
            duration_ms: duration_ms.unwrap_or(0),
        }
    }
}

impl CallUpdate {
    fn of(entry: &Entry) -> Result<Self, StoreError> {
        let mut update = Self {
            state: word(&entry.state)?,
            ended: entry.state == CallState::Ended,
            released: entry.state == CallState::Waiting && entry.outcome.is_some(),
            asked: entry.state == CallState::Waiting
                && !entry.events.iter().any(|(_, event)| waits_for_a_result(event)),
            ..Self::default()
        };
        if let Some(turn) = &entry.turn {
            update.turn_of = Some(turn.of.to_string());
            update.turn_direction = Some(word(&turn.direction)?);
            update.turn = Some(serde_json::to_string(turn)?);
        }
        if let Some(outcome) = &entry.outcome {
            // The outcome that an acting call foresees is kept for recovery; nobody is told of it before it has come true.
            if entry.state != CallState::Executing {
                update.status = Some(outcome.end.status().to_owned());
                update.code = outcome.end.error().map(|error| error.code.to_string());
                update.isolation = Some(word(&outcome.isolation)?);
                update.finished_at = outcome.finished_at.map(Timestamp::as_microsecond);
                update.duration_ms = duration(outcome);
                update.cached = outcome.cached;
                update.retries = outcome.attempts.saturating_sub(1).into();
            }
            update.outcome = Some(serde_json::to_string(&**outcome)?);
        }
        Ok(update)
    }

    fn read(columns: &Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            asked: columns.flag("asked")?,
            status: columns.text_or_none("status")?,
            code: columns.text_or_none("code")?,
            isolation: columns.text_or_none("isolation")?,
            turn_of: columns.text_or_none("turn_of")?,
            turn_direction: columns.text_or_none("turn_direction")?,
            finished_at: columns.number_or_none("finished_at")?,
            duration_ms: columns.number_or_none("duration_ms")?,
            turn: columns.text_or_none("turn")?,
            outcome: columns.text_or_none("outcome")?,
            ..Self::default()
        })
    }

    /// Takes in what a later entry says.
    fn add(&mut self, later: &Self) {
        if later.status.is_some() {
            self.status.clone_from(&later.status);
            self.code.clone_from(&later.code);
        }
        let say = |mine: &mut Option<String>, more: &Option<String>| {
            if more.is_some() {
                mine.clone_from(more);
            }
        };
        say(&mut self.isolation, &later.isolation);
        say(&mut self.turn_of, &later.turn_of);
        say(&mut self.turn_direction, &later.turn_direction);
        say(&mut self.turn, &later.turn);
        say(&mut self.outcome, &later.outcome);
        self.asked |= later.asked;
        self.finished_at = later.finished_at.or(self.finished_at);
        self.duration_ms = later.duration_ms.or(self.duration_ms);
        (self.cached, self.retries) = (later.cached, later.retries);
    }

    /// Where it stands, as both tables have it, from its status to its turn.
    fn facts(&self, statement: Statement, started_at: i64) -> Statement {
        statement
            .bind(self.status.as_deref())
            .bind(self.code.as_deref())
            .bind(self.isolation.as_deref())
            .bind(self.turn_of.as_deref())
            .bind(self.turn_direction.as_deref())
            .bind(started_at)
            .bind(self.finished_at)
            .bind(self.duration_ms)
            .bind(self.turn.as_deref())
    }

    fn change(&self, key: Statement) -> Statement {
        key.bind(self.state.as_str())
            .bind(self.asked)
            .bind(self.status.as_deref())
            .bind(self.code.as_deref())
            .bind(self.isolation.as_deref())
            .bind(self.turn_of.as_deref())
            .bind(self.turn_direction.as_deref())
            .bind(self.finished_at)
            .bind(self.duration_ms)
            .bind(self.turn.as_deref())
            .bind(self.outcome.as_deref())
            .bind(self.released)
    }
}

/// The tag stands first in what serde writes; this spares a second list of all kinds.
fn kind(event: &RawValue) -> &str {
    event.get().strip_prefix(r#"{"event":""#).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// A result from outside is waited for after the yes: nobody is asked whether the call may go on.
fn waits_for_a_result(event: &CallEvent) -> bool {
    matches!(event, CallEvent::Pending { result: Some(_), .. })
}

fn duration(outcome: &Outcome) -> Option<i64> {
    match &outcome.end {
        End::Pending { .. } => None,
        End::Success { .. } | End::Error { .. } | End::Rejected { .. } | End::Cancelled { .. } => {
            Some(i64::try_from(outcome.execution_time_ms).unwrap_or(i64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_calls() {
        crate::schema::tests::assert_quick(&[super::OPEN, super::CHANGE, super::TAKE_OPEN]);
    }
}

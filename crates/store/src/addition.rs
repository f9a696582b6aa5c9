//! One entry of the journal as columns. Everything is text, numbers and bytes before it reaches the writer.

use haft_runtime::{CallEvent, CallState, End, Entry, Opening, Outcome, Question, Scope};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    StoreError,
    columns::word,
    counters, outputs,
    packing::{envelope, packed_beside},
    questions,
    tray::{self, Places},
    watch::News,
};

/// One entry, ready to be written. What a brief one has is also how it lies in the tray.
#[derive(Deserialize, Serialize)]
pub(crate) struct Addition {
    /// Whom it concerns.
    #[serde(skip)]
    pub(crate) news: Vec<News>,
    /// Where it lies in the tray.
    #[serde(skip)]
    pub(crate) laid: Option<u8>,
    tenant: String,
    call: String,
    opening: Option<OpeningColumns>,
    standing: Standing,
    events: Vec<EventColumns>,
    #[serde(skip)]
    output: Option<Vec<u8>>,
    #[serde(skip)]
    question: Option<questions::Asked>,
}

#[derive(Deserialize, Serialize)]
struct OpeningColumns {
    workspace: Option<String>,
    tool: String,
    parent: Option<String>,
    caller: String,
    source: String,
    auto_approve: String,
    owner: String,
    started_at: i64,
    input: Box<RawValue>,
}

#[derive(Default, Deserialize, Serialize)]
struct Standing {
    state: String,
    ended: bool,
    /// It was handed back to its caller, so that whoever answers may carry it on.
    released: bool,
    asked: bool,
    #[serde(skip)]
    status: Option<&'static str>,
    code: Option<String>,
    turn_of: Option<String>,
    turn_direction: Option<String>,
    finished_at: Option<i64>,
    duration_ms: Option<i64>,
    cached: bool,
    retried: bool,
    turn: Option<Box<RawValue>>,
    outcome: Option<Box<RawValue>>,
}

#[derive(Deserialize, Serialize)]
struct EventColumns {
    at: i64,
    kind: String,
    data: Box<RawValue>,
}

const OPEN: &str = "insert into calls (tenant, id, workspace, tool, parent, caller, source, auto_approve, state, \
                    status, code, turn_of, turn_direction, owner, stop_wanted, asked, started_at, finished_at, \
                    duration_ms, turn, input, outcome) \
                    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, false, ?, ?, ?, ?, ?, ?, ?)";

/// What a later entry changes. What it does not say stays, and a call that has ended stays ended.
const CHANGE: &str = "update calls set state = case when state = 'ended' then state else ? end, asked = (asked or ?), \
                      code = case when ? is null then code else ? end, status = coalesce(?, status), \
                      turn_of = coalesce(?, turn_of), turn_direction = coalesce(?, turn_direction), \
                      finished_at = coalesce(?, finished_at), duration_ms = coalesce(?, duration_ms), \
                      turn = coalesce(?, turn), outcome = coalesce(?, outcome), \
                      owner = case when ? then '' else owner end where tenant = ? and id = ?";

const EVENT: &str = "insert into events (tenant, call, at, kind, data) values (?, ?, ?, ?, ?)";

impl Addition {
    /// The columns of an entry; `owner` is written where it opens a call.
    pub(crate) fn new(scope: &Scope, owner: &str, entry: &Entry) -> Result<Self, StoreError> {
        let opening = entry.opening.as_ref().map(|opening| opening_columns(scope, owner, opening)).transpose()?;
        let (output, standing) = match &entry.whole_output {
            Some(whole) => {
                let (output, standing) = packed_beside(whole, || standing(entry));
                (Some(output?), standing?)
            }
            None => (None, standing(entry)?),
        };
        let events = entry.events.iter().map(|(at, event)| event_columns(*at, event)).collect::<Result<_, _>>()?;
        let tenant = scope.tenant().to_string();
        let news = news(entry);
        let call = entry.call.to_string();
        Ok(Self { news, laid: None, tenant, call, opening, standing, events, output, question: None })
    }

    /// The same entry with a question that is put in the same transaction.
    pub(crate) fn asking(mut self, scope: &Scope, question: &Question) -> Result<Self, StoreError> {
        self.news.push(News::Questions);
        self.question = Some(questions::Asked::new(scope, question)?);
        Ok(self)
    }

    /// Whether it brings a row that names its owner.
    pub(crate) fn opens(&self) -> bool {
        self.opening.is_some()
    }

    /// Whether it is one that a call waits for before it acts, with nothing in it that others are told of.
    // Invariant: what the tray does not keep of an entry, a brief one does not have.
    pub(crate) fn is_brief(&self) -> bool {
        let Self { question, output, standing, .. } = self;
        self.opens() && question.is_none() && output.is_none() && !standing.ended && !standing.asked
    }

    /// Lays it into the tray, and says whether it lies there now.
    pub(crate) fn lay(&mut self, conn: &Connection, places: &mut Places) -> Result<bool, StoreError> {
        self.laid = places.lay(conn, (&self.tenant, &self.call), self)?;
        Ok(self.laid.is_some())
    }

    /// Writes everything that the entry says; one that lay in the tray only if nobody else has filed it.
    pub(crate) fn file(&self, conn: &Connection) -> Result<(), StoreError> {
        match self.laid {
            Some(place) if !tray::take(conn, place.into(), (&self.tenant, &self.call))? => Ok(()),
            Some(_) | None => self.write(conn),
        }
    }

    /// Writes everything that the entry says.
    pub(crate) fn write(&self, conn: &Connection) -> Result<(), StoreError> {
        let call = (self.tenant.as_str(), self.call.as_str());
        match (&self.opening, self.standing.ended) {
            (Some(opening), true) => {
                self.open(conn, opening)?;
                self.counted().count_ended(conn, call)?;
            }
            (Some(opening), false) => self.open(conn, opening)?,
            (None, true) => {
                self.counted().count_ending(conn, call)?;
                self.change(conn)?;
            }
            (None, false) => self.change(conn)?,
        }
        if let Some(question) = &self.question {
            question.insert(conn, &self.tenant)?;
        }
        if let Some(body) = &self.output {
            outputs::insert(conn, call, body)?;
        }
        let mut insert = conn.prepare_cached(EVENT)?;
        for EventColumns { at, kind, data } in &self.events {
            insert.execute(params![self.tenant, self.call, at, kind, data.get()])?;
        }
        Ok(())
    }

    fn open(&self, conn: &Connection, opening: &OpeningColumns) -> Result<(), StoreError> {
        let now = &self.standing;
        conn.prepare_cached(OPEN)?.execute(params![
            self.tenant,
            self.call,
            opening.workspace,
            opening.tool,
            opening.parent,
            opening.caller,
            opening.source,
            opening.auto_approve,
            now.state,
            now.status,
            now.code,
            now.turn_of,
            now.turn_direction,
            opening.owner,
            now.asked,
            opening.started_at,
            now.finished_at,
            now.duration_ms,
            now.turn.as_deref().map(RawValue::get),
            opening.input.get(),
            now.outcome.as_deref().map(RawValue::get),
        ])?;
        Ok(())
    }

    fn change(&self, conn: &Connection) -> Result<(), StoreError> {
        let now = &self.standing;
        let touched = conn.prepare_cached(CHANGE)?.execute(params![
            now.state,
            now.asked,
            now.status,
            now.code,
            now.status,
            now.turn_of,
            now.turn_direction,
            now.finished_at,
            now.duration_ms,
            now.turn.as_deref().map(RawValue::get),
            now.outcome.as_deref().map(RawValue::get),
            now.released,
            self.tenant,
            self.call,
        ])?;
        if touched == 0 { Err(StoreError::UnknownCall(self.call.clone())) } else { Ok(()) }
    }

    fn counted(&self) -> counters::End {
        let Standing { status, asked, cached, retried, finished_at, duration_ms, .. } = self.standing;
        counters::End { status, asked, cached, retried, finished_at, duration_ms: duration_ms.unwrap_or(0) }
    }
}

/// An entry as it came, of a store that has its own name in what it opens.
pub(crate) struct Later {
    /// Whom it concerns.
    pub(crate) news: Vec<News>,
    scope: Scope,
    owner: String,
    entry: Entry,
}

impl Later {
    pub(crate) fn new(scope: &Scope, owner: &str, entry: Entry) -> Self {
        Self { news: news(&entry), scope: scope.clone(), owner: owner.to_owned(), entry }
    }

    pub(crate) fn addition(&self) -> Result<Addition, StoreError> {
        Addition::new(&self.scope, &self.owner, &self.entry)
    }
}

/// Whom an entry concerns.
fn news(entry: &Entry) -> Vec<News> {
    let ended = entry.state == CallState::Ended;
    ended.then(|| News::Ended(entry.call.to_string())).into_iter().collect()
}

fn opening_columns(scope: &Scope, owner: &str, opening: &Opening) -> Result<OpeningColumns, StoreError> {
    Ok(OpeningColumns {
        workspace: scope.workspace().map(ToString::to_string),
        tool: opening.tool.clone(),
        parent: opening.parent.as_ref().map(ToString::to_string),
        caller: serde_json::to_string(&opening.caller)?,
        source: word(&opening.caller.source)?,
        auto_approve: word(&opening.auto_approve)?,
        owner: owner.to_owned(),
        started_at: opening.at.as_microsecond(),
        input: to_raw_value(&opening.input)?,
    })
}

fn standing(entry: &Entry) -> Result<Standing, StoreError> {
    let mut standing = Standing {
        state: word(&entry.state)?,
        ended: entry.state == CallState::Ended,
        released: entry.state == CallState::Waiting && entry.outcome.is_some(),
        asked: entry.state == CallState::Waiting && !entry.events.iter().any(|(_, event)| waits_for_a_result(event)),
        ..Standing::default()
    };
    if let Some(turn) = &entry.turn {
        standing.turn_of = Some(turn.of.to_string());
        standing.turn_direction = Some(word(&turn.direction)?);
        standing.turn = Some(to_raw_value(turn)?);
    }
    if let Some(outcome) = &entry.outcome {
        // The outcome that an acting call foresees is kept for recovery; nobody is told of it before it has come true.
        if entry.state != CallState::Executing {
            standing.status = Some(outcome.end.status());
            standing.code = outcome.end.error().map(|error| error.code.to_string());
            standing.finished_at = outcome.finished_at.map(Timestamp::as_microsecond);
            standing.duration_ms = duration(outcome);
            standing.cached = outcome.cached;
            standing.retried = outcome.attempts > 1;
        }
        standing.outcome = Some(envelope(outcome)?);
    }
    Ok(standing)
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

fn event_columns(at: Timestamp, event: &CallEvent) -> Result<EventColumns, StoreError> {
    let data = to_raw_value(event)?;
    // The tag stands first in what serde writes; this spares a second list of all kinds.
    let kind = data.get().strip_prefix(r#"{"event":""#).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    Ok(EventColumns { at: at.as_microsecond(), kind: kind.to_owned(), data })
}

//! One entry of the journal as columns. Everything is text and numbers before it reaches the writer.

use haft_runtime::{CallEvent, CallState, End, Entry, Opening, Outcome, Question, Scope};
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Executor, Row, SqliteConnection};

use crate::{
    StoreError,
    batch::{Bound, Insert, MOST_ROWS},
    columns::word,
    counters::{self, Tally},
    questions,
    watch::News,
};

/// One entry, ready to be written.
pub(crate) struct Addition {
    /// Whom it concerns.
    pub(crate) news: Vec<News>,
    tenant: String,
    call: String,
    opening: Option<OpeningColumns>,
    standing: Standing,
    events: Vec<EventColumns>,
    output: Option<String>,
    question: Option<questions::Asked>,
}

struct OpeningColumns {
    workspace: Option<String>,
    tool: String,
    parent: Option<String>,
    caller: String,
    source: String,
    auto_approve: String,
    owner: String,
    started_at: i64,
    input: String,
}

#[derive(Default)]
struct Standing {
    state: String,
    ended: bool,
    /// It was handed back to its caller, so that whoever answers may carry it on.
    released: bool,
    asked: bool,
    status: Option<&'static str>,
    code: Option<String>,
    turn_of: Option<String>,
    turn_direction: Option<String>,
    finished_at: Option<i64>,
    duration_ms: Option<i64>,
    cached: bool,
    retried: bool,
    turn: Option<String>,
    outcome: Option<String>,
}

struct EventColumns {
    at: i64,
    kind: String,
    data: String,
}

static OPEN: Insert = Insert::new(
    "insert into calls (tenant, id, workspace, tool, parent, caller, source, auto_approve, state, status, code, \
     turn_of, turn_direction, owner, stop_wanted, asked, started_at, finished_at, duration_ms, turn, input, outcome) \
     values",
    22,
    "",
);

static EVENTS: Insert = Insert::new("insert into events (tenant, call, at, kind, data) values", 5, "");

/// What a later entry changes. What it does not say stays, and a call that has ended stays ended.
macro_rules! change {
    ($only:literal) => {
        concat!(
            "update calls set state = case when state = 'ended' then state else ? end, asked = (asked or ?), ",
            "code = case when ? is null then code else ? end, status = coalesce(?, status), ",
            "turn_of = coalesce(?, turn_of), turn_direction = coalesce(?, turn_direction), ",
            "finished_at = coalesce(?, finished_at), duration_ms = coalesce(?, duration_ms), ",
            "turn = coalesce(?, turn), outcome = coalesce(?, outcome), ",
            "owner = case when ? then '' else owner end where tenant = ? and id = ?",
            $only
        )
    };
}
const CHANGE: &str = change!("");
const END: &str = change!(" and state <> 'ended' returning workspace, tool, asked");

impl Addition {
    /// The columns of an entry; `owner` is written where it opens a call.
    pub(crate) fn new(scope: &Scope, owner: &str, entry: &Entry) -> Result<Self, StoreError> {
        let opening = entry.opening.as_ref().map(|opening| opening_columns(scope, owner, opening)).transpose()?;
        let standing = standing(entry)?;
        let output = entry.whole_output.as_ref().map(serde_json::to_string).transpose()?;
        let events = entry.events.iter().map(|(at, event)| event_columns(*at, event)).collect::<Result<_, _>>()?;
        let tenant = scope.tenant.0.clone();
        let news = standing.ended.then(|| News::Ended(entry.call.to_string())).into_iter().collect();
        Ok(Self { news, tenant, call: entry.call.to_string(), opening, standing, events, output, question: None })
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

    /// Whether [`write_in_one_trip`] can write it.
    pub(crate) fn fits_in_one_trip(&self) -> bool {
        // Without an event, nothing would show that the call is unknown.
        let is_noticed = self.opening.is_some() || !self.events.is_empty();
        is_noticed && self.question.is_none() && self.output.is_none()
    }

    /// Invariant: the placeholders are in the order in which [`Self::bind_trip`] binds.
    fn trip_texts(&self) -> Vec<&'static str> {
        let mut texts = match (&self.opening, self.standing.ended) {
            (Some(_), _) => vec![OPEN.text(1)],
            (None, true) => vec![counters::COUNT_END, CHANGE],
            (None, false) => vec![CHANGE],
        };
        texts.extend(self.events.chunks(MOST_ROWS).map(|rows| EVENTS.text(rows.len())));
        if self.opening.is_some() && self.standing.ended {
            texts.push(counters::ADD.text(1));
        }
        texts
    }

    fn bind_trip(&self, mut query: Bound) -> Bound {
        match &self.opening {
            Some(opening) => query = self.bind_opening(query, opening),
            None => {
                if self.standing.ended {
                    query = self.counted(self.standing.asked).as_sums().bind(query);
                    query = query.bind(self.tenant.as_str()).bind(self.call.as_str());
                }
                query = self.bind_change(query);
            }
        }
        for event in &self.events {
            query = self.bind_event(query, event);
        }
        if let (Some(opening), true) = (&self.opening, self.standing.ended) {
            let workspace = opening.workspace.as_deref().unwrap_or_default();
            query = query.bind(self.tenant.as_str()).bind(workspace).bind(opening.tool.as_str()).bind(1_i64);
            query = self.counted(self.standing.asked).as_sums().bind(query);
        }
        query
    }

    async fn change(&self, conn: &mut SqliteConnection, tally: &mut Tally) -> Result<(), StoreError> {
        if self.standing.ended
            && let Some(row) = self.bind_change(sqlx::query(END)).fetch_optional(&mut *conn).await?
        {
            tally.add((&self.tenant, row.try_get(0)?, row.try_get(1)?), &self.counted(row.try_get(2)?));
            return Ok(());
        }
        if self.bind_change(sqlx::query(CHANGE)).execute(conn).await?.rows_affected() == 0 {
            return Err(StoreError::UnknownCall(self.call.clone()));
        }
        Ok(())
    }

    fn counted(&self, asked: bool) -> counters::End {
        let Standing { status, cached, retried, finished_at, duration_ms, .. } = self.standing;
        counters::End { status, asked, cached, retried, finished_at, duration_ms: duration_ms.unwrap_or(0) }
    }

    fn bind_change(&self, query: Bound) -> Bound {
        let now = &self.standing;
        query
            .bind(now.state.as_str())
            .bind(now.asked)
            .bind(now.status)
            .bind(now.code.as_deref())
            .bind(now.status)
            .bind(now.turn_of.as_deref())
            .bind(now.turn_direction.as_deref())
            .bind(now.finished_at)
            .bind(now.duration_ms)
            .bind(now.turn.as_deref())
            .bind(now.outcome.as_deref())
            .bind(now.released)
            .bind(self.tenant.as_str())
            .bind(self.call.as_str())
    }

    fn bind_event(&self, query: Bound, event: &EventColumns) -> Bound {
        let query = query.bind(self.tenant.as_str()).bind(self.call.as_str());
        query.bind(event.at).bind(event.kind.as_str()).bind(event.data.as_str())
    }

    fn bind_opening(&self, query: Bound, opening: &OpeningColumns) -> Bound {
        let now = &self.standing;
        query
            .bind(self.tenant.as_str())
            .bind(self.call.as_str())
            .bind(opening.workspace.as_deref())
            .bind(opening.tool.as_str())
            .bind(opening.parent.as_deref())
            .bind(opening.caller.as_str())
            .bind(opening.source.as_str())
            .bind(opening.auto_approve.as_str())
            .bind(now.state.as_str())
            .bind(now.status)
            .bind(now.code.as_deref())
            .bind(now.turn_of.as_deref())
            .bind(now.turn_direction.as_deref())
            .bind(opening.owner.as_str())
            .bind(false)
            .bind(now.asked)
            .bind(opening.started_at)
            .bind(now.finished_at)
            .bind(now.duration_ms)
            .bind(now.turn.as_deref())
            .bind(opening.input.as_str())
            .bind(now.outcome.as_deref())
    }
}

/// Writes a few entries in one text: the way to SQLite's thread and back costs more than the statements do.
pub(crate) async fn write_in_one_trip(conn: &mut SqliteConnection, additions: &[&Addition]) -> Result<(), StoreError> {
    let mut texts = vec!["begin immediate"];
    texts.extend(additions.iter().flat_map(|one| one.trip_texts()));
    texts.push("commit");
    let mut query = sqlx::query(AssertSqlSafe(texts.join("; ")));
    for one in additions {
        query = one.bind_trip(query);
    }
    let Err(err) = query.execute(&mut *conn).await else { return Ok(()) };
    // There is nothing to roll back when it did not even begin.
    conn.execute("rollback").await.ok();
    let is_unknown = err.as_database_error().is_some_and(|err| err.is_foreign_key_violation());
    let calls = || additions.iter().map(|one| one.call.as_str()).collect::<Vec<_>>().join(" or ");
    Err(if is_unknown { StoreError::UnknownCall(calls()) } else { err.into() })
}

/// Writes many entries with few statements. The order within each call is kept.
pub(crate) async fn write_all(
    conn: &mut SqliteConnection,
    additions: &[&Addition],
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let openings: Vec<_> = additions.iter().filter_map(|one| Some((*one, one.opening.as_ref()?))).collect();
    for rows in openings.chunks(MOST_ROWS) {
        let mut query = sqlx::query(OPEN.text(rows.len()));
        for (one, opening) in rows {
            query = one.bind_opening(query, opening);
        }
        query.execute(&mut *conn).await?;
    }
    for (one, opening) in openings.iter().filter(|(one, _)| one.standing.ended) {
        tally.add((&one.tenant, opening.workspace.clone(), opening.tool.clone()), &one.counted(one.standing.asked));
    }
    for one in additions {
        if one.opening.is_none() {
            one.change(conn, tally).await?;
        }
        if let Some(question) = &one.question {
            question.insert(conn, &one.tenant).await?;
        }
        if let Some(body) = &one.output {
            crate::outputs::insert(conn, (&one.tenant, &one.call), body).await?;
        }
    }
    let events: Vec<_> = additions.iter().flat_map(|one| one.events.iter().map(move |event| (*one, event))).collect();
    for rows in events.chunks(MOST_ROWS) {
        let mut query = sqlx::query(EVENTS.text(rows.len()));
        for (one, event) in rows {
            query = one.bind_event(query, event);
        }
        query.execute(&mut *conn).await?;
    }
    Ok(())
}

fn opening_columns(scope: &Scope, owner: &str, opening: &Opening) -> Result<OpeningColumns, StoreError> {
    Ok(OpeningColumns {
        workspace: scope.workspace.clone(),
        tool: opening.tool.clone(),
        parent: opening.parent.as_ref().map(ToString::to_string),
        caller: opening.caller.clone(),
        source: word(&opening.source)?,
        auto_approve: word(&opening.auto_approve)?,
        owner: owner.to_owned(),
        started_at: opening.at.as_microsecond(),
        input: serde_json::to_string(&opening.input)?,
    })
}

fn standing(entry: &Entry) -> Result<Standing, StoreError> {
    let mut standing = Standing {
        state: word(&entry.state)?,
        ended: entry.state == CallState::Ended,
        released: entry.state == CallState::Waiting && entry.outcome.is_some(),
        asked: entry.state == CallState::Waiting,
        ..Standing::default()
    };
    if let Some(turn) = &entry.turn {
        standing.turn_of = Some(turn.of.to_string());
        standing.turn_direction = Some(word(&turn.direction)?);
        standing.turn = Some(serde_json::to_string(turn)?);
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
        standing.outcome = Some(serde_json::to_string(outcome)?);
    }
    Ok(standing)
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
    let data = serde_json::to_string(event)?;
    // The tag stands first in what serde writes; this spares a second list of all kinds.
    let kind = data.strip_prefix(r#"{"event":""#).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    Ok(EventColumns { at: at.as_microsecond(), kind: kind.to_owned(), data })
}

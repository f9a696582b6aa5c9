//! One entry of the journal as columns. Everything is text and numbers before it reaches the writer.

use std::sync::LazyLock;

use haft_runtime::{CallEvent, CallState, End, Entry, Opening, Outcome, Question, Scope};
use jiff::Timestamp;
use sqlx::{Row, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use crate::{
    StoreError,
    batch::{self, chunks, text_for},
    columns::word,
    counters::{End as Counted, Tally},
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
    asked: bool,
    status: Option<&'static str>,
    code: Option<String>,
    turn_of: Option<String>,
    turn_direction: Option<String>,
    finished_at: Option<i64>,
    duration_ms: Option<i64>,
    turn: Option<String>,
    outcome: Option<String>,
}

struct EventColumns {
    at: i64,
    kind: String,
    data: String,
}

type Bound = Query<'static, Sqlite, SqliteArguments>;

static OPENINGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let head = "insert into calls (tenant, id, workspace, tool, parent, caller, source, auto_approve, state, status, \
                code, turn_of, turn_direction, owner, stop_wanted, asked, started_at, finished_at, duration_ms, turn, \
                input, outcome) values ";
    batch::texts(head, 22, "")
});

static EVENTS: LazyLock<Vec<String>> =
    LazyLock::new(|| batch::texts("insert into events (tenant, call, at, kind, data) values ", 5, ""));

/// What a later entry changes. What it does not say stays, and a call that has ended stays ended.
macro_rules! change {
    ($only:literal) => {
        concat!(
            "update calls set state = case when state = 'ended' then state else $3 end, asked = (asked or $4), ",
            "code = case when $5 is null then code else $6 end, status = coalesce($5, status), ",
            "turn_of = coalesce($7, turn_of), turn_direction = coalesce($8, turn_direction), ",
            "finished_at = coalesce($9, finished_at), duration_ms = coalesce($10, duration_ms), ",
            "turn = coalesce($11, turn), outcome = coalesce($12, outcome) where tenant = $1 and id = $2",
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
        self.standing.asked = true;
        self.news.push(News::Questions);
        self.question = Some(questions::Asked::new(scope, question)?);
        Ok(self)
    }

    /// Whether it brings a row that names its owner.
    pub(crate) fn opens(&self) -> bool {
        self.opening.is_some()
    }

    async fn change(&self, conn: &mut SqliteConnection, tally: &mut Tally) -> Result<(), StoreError> {
        if self.standing.ended
            && let Some(row) = self.bind_change(END).fetch_optional(&mut *conn).await?
        {
            tally.add((&self.tenant, row.try_get(0)?, row.try_get(1)?), &self.counted(row.try_get(2)?));
            return Ok(());
        }
        if self.bind_change(CHANGE).execute(conn).await?.rows_affected() == 0 {
            return Err(StoreError::UnknownCall(self.call.clone()));
        }
        Ok(())
    }

    fn counted(&self, asked: bool) -> Counted {
        Counted { status: self.standing.status, asked, duration_ms: self.standing.duration_ms.unwrap_or(0) }
    }

    fn bind_change(&self, sql: &'static str) -> Bound {
        let now = &self.standing;
        sqlx::query(sql)
            .bind(self.tenant.as_str())
            .bind(self.call.as_str())
            .bind(now.state.as_str())
            .bind(now.asked)
            .bind(now.status)
            .bind(now.code.as_deref())
            .bind(now.turn_of.as_deref())
            .bind(now.turn_direction.as_deref())
            .bind(now.finished_at)
            .bind(now.duration_ms)
            .bind(now.turn.as_deref())
            .bind(now.outcome.as_deref())
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

/// Writes many entries with few statements. The order within each call is kept.
pub(crate) async fn write_all(
    conn: &mut SqliteConnection,
    additions: &[&Addition],
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let openings: Vec<_> = additions.iter().filter_map(|one| Some((*one, one.opening.as_ref()?))).collect();
    for rows in chunks(&openings) {
        let mut query = sqlx::query(text_for(&OPENINGS, rows.len()));
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
    for rows in chunks(&events) {
        let mut query = sqlx::query(text_for(&EVENTS, rows.len()));
        for (one, event) in rows {
            query = query.bind(one.tenant.as_str()).bind(one.call.as_str());
            query = query.bind(event.at).bind(event.kind.as_str()).bind(event.data.as_str());
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
        asked: entry.state == CallState::Waiting,
        ..Standing::default()
    };
    if let Some(turn) = &entry.turn {
        standing.turn_of = Some(turn.of.to_string());
        standing.turn_direction = Some(word(&turn.direction)?);
        standing.turn = Some(serde_json::to_string(turn)?);
    }
    if let Some(outcome) = &entry.outcome {
        standing.status = Some(outcome.end.status());
        standing.code = outcome.end.error().map(|error| error.code.to_string());
        standing.finished_at = outcome.finished_at.map(Timestamp::as_microsecond);
        standing.duration_ms = duration(outcome);
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

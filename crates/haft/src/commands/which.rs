//! Which call is meant: its id, the beginning of its id, or the last one that fits.

use std::path::Path;

use anyhow::{Context, Result};
use haft_runtime::{
    CallId, CallRecord, CallState, ChangeState, Direction, ErrorCode, GrantId, Journal, Question, Scope, ToolError,
    Turn, Within,
};
use haft_store::{CallFilter, Store};

use crate::{
    cli::Everywhere,
    commands::{mistake, open, open_in, read_settings},
    house::{self, House},
    settings::Settings,
    show::{Out, safe::safe, style::DIM, subject::subject, table::cut, table::width, time::ago},
    workspace,
};

/// How far back a call is looked for that was not named.
const LOOK_BACK: u32 = 500;
/// How many calls are named when more than one could be meant.
const NAMED: usize = 5;

/// Which call of this workspace is meant when none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultCall {
    /// The last one.
    Last,
    /// The only one that waits for an answer.
    Waiting,
    /// The last one with changes, whatever became of them.
    WithChanges,
    /// The last one with changes that can still be committed.
    Staged,
    /// The last one whose changes are in the workspace.
    Committed,
    /// The last undo that was not followed by a redo.
    Undone,
}

/// The call that was named, or the one that is meant by leaving it out, which is then told; and its house.
pub(crate) async fn open_call(
    everywhere: &Everywhere,
    out: &Out,
    typed: Option<&str>,
    otherwise: DefaultCall,
) -> Result<(House, CallRecord)> {
    if let Some(typed) = typed {
        return open_named(everywhere, typed).await;
    }
    let house = open(everywhere).await?;
    let record = meant(&house, otherwise).await?;
    if !out.json {
        let line = format!("{}, {}", one_line(&record), ago(record.opening.at));
        anstream::eprintln!("{DIM}{}{DIM:#}", cut(&line, width()));
    }
    Ok((house, record))
}

/// A call that was named, and the house of the workspace it belongs to, wherever the command was typed.
pub(crate) async fn open_named(everywhere: &Everywhere, typed: &str) -> Result<(House, CallRecord)> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = Settings::of_user().and_then(Settings::with_environment);
    let settings = settings.map_err(|err| mistake(format!("{err:#}")))?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let here = house::scope_of(&folder);
    let id = call_id(&store, &here, typed).await?;
    let Some(record) = Journal::find(&store, &here, &id).await? else {
        return Err(mistake(format!("there is no call {id}; `haft log` lists the latest")));
    };
    let home = record.scope.workspace().map_or(folder.as_path(), |workspace| Path::new(workspace.as_str()));
    let house = open_at_home(&settings, store, home).await;
    let house = house.with_context(|| format!("{id} belongs to {}", home.display()))?;
    // Recovery may just have ended it.
    let record = Journal::find(&house.store, &house.scope, &id).await?.unwrap_or(record);
    Ok((house, record))
}

/// The settings of a call's own workspace hold for it; they may want a store that is safer than the user's.
async fn open_at_home(of_user: &Settings, store: Store, home: &Path) -> Result<House> {
    let settings = read_settings(home)?;
    if settings.sync == of_user.sync {
        return house::open(settings, store, home).await;
    }
    store.close().await.map_err(ToolError::from)?;
    open_in(settings, home).await
}

/// Whether a word names a call. Where a path may stand in its place, everything else is one.
pub(crate) fn names_a_call(typed: &str) -> bool {
    typed.starts_with("tc_")
}

/// The id that begins with what was typed.
pub(crate) async fn call_id(store: &Store, scope: &Scope, typed: &str) -> Result<CallId> {
    let typed = typed.to_lowercase();
    if let Some(id) = CallId::parse(&typed) {
        return Ok(id);
    }
    // Ids are listed in their order, so all that begin so stand together, before the last that could.
    let last_possible = typed.strip_prefix("tc_").and_then(|digits| CallId::parse(&format!("tc_{digits:f<32}")));
    let Some(last_possible) = last_possible else {
        return Err(mistake(format!(
            "`{}` is not a call id: `tc_` and up to 32 hex digits; `haft log` lists the latest",
            safe(&typed)
        )));
    };
    let filter = CallFilter { before: Some(last_possible), limit: NAMED as u32 + 1, ..CallFilter::default() };
    let mut found = store.calls(scope, &Within::Everything, &filter).await.map_err(ToolError::from)?;
    found.retain(|call| call.id.as_str().starts_with(&typed));
    match found.as_slice() {
        [] => Err(mistake(format!("no call begins with {typed}; `haft log` lists the latest"))),
        [only] => Ok(only.id.clone()),
        several => {
            let lines = several.iter().take(NAMED).map(|call| format!("\n  {} {}", call.id, safe(&call.tool)));
            Err(mistake(format!("several calls begin with {typed}; type more of one:{}", lines.collect::<String>())))
        }
    }
}

/// The grant whose id begins with what was typed.
pub(crate) async fn grant_id(house: &House, typed: &str) -> Result<GrantId> {
    let typed = typed.to_lowercase();
    if let Some(id) = GrantId::parse(&typed) {
        return Ok(id);
    }
    let is_beginning = typed.strip_prefix("g_").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !is_beginning {
        return Err(mistake(format!(
            "`{}` is not the id of a grant: `g_` and up to 32 hex digits; `haft grants` lists them",
            safe(&typed)
        )));
    }
    let mut found = house.store.all_grants(&house.scope, &house.here).await?;
    found.retain(|grant| grant.id.as_str().starts_with(&typed));
    match found.as_slice() {
        [] => Err(mistake(format!("no grant begins with {typed}; `haft grants --all` lists them"))),
        [only] => Ok(only.id.clone()),
        several => {
            let lines = several.iter().take(NAMED).map(|grant| format!("\n  {} {}", grant.id, safe(&grant.tool)));
            Err(mistake(format!("several grants begin with {typed}; type more of one:{}", lines.collect::<String>())))
        }
    }
}

async fn meant(house: &House, otherwise: DefaultCall) -> Result<CallRecord> {
    let open = house.open_questions(&house.here).await?;
    if otherwise == DefaultCall::Waiting {
        return match open.as_slice() {
            [] => Err(mistake("nothing waits for an answer here")),
            [only] => find(house, &only.call).await,
            several => Err(several_wait(several)),
        };
    }
    let filter = CallFilter { limit: LOOK_BACK, ..CallFilter::default() };
    for row in house.store.calls(&house.scope, &house.here, &filter).await? {
        let record = find(house, &row.id).await?;
        if !fits(house, &record, otherwise).await? {
            continue;
        }
        // To commit what is asked about is to answer it, and to answer one of several it must be named.
        if otherwise == DefaultCall::Staged && record.state == CallState::Waiting && open.len() > 1 {
            return Err(several_wait(&open));
        }
        return Ok(record);
    }
    Err(mistake(match otherwise {
        DefaultCall::Last | DefaultCall::Waiting => "no calls yet in this workspace",
        DefaultCall::WithChanges => "no call in this workspace has changed anything",
        DefaultCall::Staged => "no call in this workspace has changes left to commit",
        DefaultCall::Committed => "no call in this workspace has changes that can be undone",
        DefaultCall::Undone => "nothing in this workspace was undone",
    }))
}

async fn find(house: &House, call: &CallId) -> Result<CallRecord> {
    let record = Journal::find(&house.store, &house.scope, call).await?;
    record.with_context(|| format!("{call} is not in the journal any more"))
}

async fn fits(house: &House, record: &CallRecord, otherwise: DefaultCall) -> Result<bool> {
    let (turn, wanted) = match otherwise {
        DefaultCall::Last | DefaultCall::Waiting => return Ok(true),
        DefaultCall::WithChanges => return Ok(record.turn.is_some()),
        DefaultCall::Staged => (record.turn.clone().filter(|turn| turn.of == record.call), ChangeState::Staged),
        DefaultCall::Committed => (reversal(record, Direction::Undo), ChangeState::Committed),
        DefaultCall::Undone => (reversal(record, Direction::Commit), ChangeState::Undone),
    };
    let Some(turn) = turn else { return Ok(false) };
    let changes = match house.workbench.show(&house.scope, &turn.of).await {
        Ok(changes) => changes,
        Err(error) if error.code == ErrorCode::Unavailable => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let is_part = |path: &String| turn.paths.as_ref().is_none_or(|paths| paths.contains(path));
    Ok(changes.0.iter().any(|change| change.state == wanted && is_part(&change.path)))
}

/// How to take back what a call did, when that goes this way.
fn reversal(record: &CallRecord, direction: Direction) -> Option<Turn> {
    record.reversal().filter(|turn| turn.direction == direction)
}

fn several_wait(open: &[Question]) -> anyhow::Error {
    let line = |question: &Question| {
        let what = subject(&question.input).unwrap_or_default();
        cut(&format!("  {} {} {}", question.call, question.tool, safe(&what)), width())
    };
    let lines: Vec<String> = open.iter().map(line).collect();
    mistake(format!("{} calls wait for an answer; name one:\n{}", open.len(), lines.join("\n")))
}

/// A call, its tool and what it is about.
fn one_line(record: &CallRecord) -> String {
    let what = subject(&record.opening.input).map_or_else(String::new, |what| format!(" {}", safe(&what)));
    format!("{}  {}{what}", record.call, safe(&record.opening.tool))
}

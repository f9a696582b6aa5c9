//! Which call is meant: its id, the beginning of its id, or the last one that fits.

use std::path::Path;

use anyhow::{Context, Result};
use haft_runtime::{
    CallId, CallRecord, CallState, Change, ChangeState, Direction, GrantId, Journal, Question, Scope, ToolError, Turn,
    Within,
};
use haft_store::{CallFilter, Store};

use crate::{
    backend::Backend,
    cli::Everywhere,
    commands::{mistake, open_backend, open_in, open_remote, read_settings},
    house::{self, House},
    remote::Remote,
    settings::Settings,
    show::{Out, safe::safe, style::DIM, subject::subject, table::cut, table::width, time::ago},
    workspace,
};

/// How far back a call is looked for that was not named: so many calls at a time, so often.
const ONE_LOOK: u32 = 20;
const LOOKS: u32 = 25;
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
) -> Result<(Backend, CallRecord)> {
    if let Some(typed) = typed {
        return open_named(everywhere, typed).await;
    }
    let backend = open_backend(everywhere).await?;
    let record = meant(&backend, otherwise).await?;
    if !out.json {
        let line = format!("{}, {}", one_line(&record), ago(record.opening.at));
        anstream::eprintln!("{DIM}{}{DIM:#}", cut(&line, width()));
    }
    Ok((backend, record))
}

/// A call that was named, and where it belongs, wherever the command was typed.
pub(crate) async fn open_named(everywhere: &Everywhere, typed: &str) -> Result<(Backend, CallRecord)> {
    if let Some(remote) = open_remote(everywhere).await? {
        let id = remote_id(&remote, typed).await?;
        let Some(record) = remote.record(&id).await? else {
            return Err(mistake(format!("there is no call {id} at {}; `haft log` lists the latest", remote.url())));
        };
        return Ok((Backend::There(Box::new(remote)), record));
    }
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
    Ok((Backend::here(house), record))
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
async fn call_id(store: &Store, scope: &Scope, typed: &str) -> Result<CallId> {
    let beginning = match named(typed)? {
        NamedCall::Whole(id) => return Ok(id),
        NamedCall::Beginning(beginning) => beginning,
    };
    let before = Some(beginning.last_possible.clone());
    let filter = CallFilter { before, limit: NAMED as u32 + 1, ..CallFilter::default() };
    let found = store.calls(scope, &Within::Everything, &filter).await.map_err(ToolError::from)?;
    let last = Journal::find(store, scope, &beginning.last_possible).await?;
    beginning.only_one_of(last, found.into_iter().map(|call| (call.id, call.tool)))
}

/// The same at a gateway, too.
pub(crate) async fn call_id_at(backend: &Backend, typed: &str) -> Result<CallId> {
    match backend {
        Backend::Here(house) => call_id(&house.store, &house.scope, typed).await,
        Backend::There(remote) => remote_id(remote, typed).await,
    }
}

async fn remote_id(remote: &Remote, typed: &str) -> Result<CallId> {
    match named(typed)? {
        NamedCall::Whole(id) => Ok(id),
        NamedCall::Beginning(beginning) => {
            let found = remote.ids_before(&beginning.last_possible, NAMED as u32 + 1).await?;
            beginning.only_one_of(remote.record(&beginning.last_possible).await?, found)
        }
    }
}

/// What was typed for a call.
enum NamedCall {
    Whole(CallId),
    Beginning(IdBeginning),
}

/// The beginning of an id. Ids are listed in their order, so all that begin so stand together, before the last that could.
struct IdBeginning {
    typed: String,
    last_possible: CallId,
}

fn named(typed: &str) -> Result<NamedCall> {
    let typed = typed.to_lowercase();
    if let Some(id) = CallId::parse(&typed) {
        return Ok(NamedCall::Whole(id));
    }
    let last_possible = typed.strip_prefix("tc_").and_then(|digits| CallId::parse(&format!("tc_{digits:f<32}")));
    let Some(last_possible) = last_possible else {
        return Err(mistake(format!(
            "`{}` is not a call id: `tc_` and up to 32 hex digits; `haft log` lists the latest",
            safe(&typed)
        )));
    };
    Ok(NamedCall::Beginning(IdBeginning { typed, last_possible }))
}

impl IdBeginning {
    /// The one call that begins so: the last one that could, or one of those before it, each with its tool.
    fn only_one_of(
        &self,
        last: Option<CallRecord>,
        before: impl IntoIterator<Item = (CallId, String)>,
    ) -> Result<CallId> {
        let typed = &self.typed;
        let last = last.map(|record| (record.call, record.opening.tool));
        let mut found: Vec<(CallId, String)> = last.into_iter().chain(before).collect();
        found.retain(|(id, _)| id.as_str().starts_with(typed));
        match found.as_slice() {
            [] => Err(mistake(format!("no call begins with {typed}; `haft log` lists the latest"))),
            [(only, _)] => Ok(only.clone()),
            several => {
                let lines = several.iter().take(NAMED).map(|(id, tool)| format!("\n  {id} {}", safe(tool)));
                let lines: String = lines.collect();
                Err(mistake(format!("several calls begin with {typed}; type more of one:{lines}")))
            }
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

async fn meant(backend: &Backend, otherwise: DefaultCall) -> Result<CallRecord> {
    // Only whoever may decide sees what is open at a gateway; the others need not know it to look at a call.
    let open = match otherwise {
        DefaultCall::Waiting | DefaultCall::Staged => backend.open_questions(backend.within()).await?,
        DefaultCall::Last | DefaultCall::WithChanges | DefaultCall::Committed | DefaultCall::Undone => Vec::new(),
    };
    if otherwise == DefaultCall::Waiting {
        return match open.as_slice() {
            [] => Err(mistake("nothing waits for an answer here")),
            [only] => find(backend, &only.call).await,
            several => Err(several_wait(several)),
        };
    }
    let mut filter = CallFilter { limit: ONE_LOOK, ..CallFilter::default() };
    for _ in 0..LOOKS {
        let calls = backend.calls(&filter).await?;
        let Some(last) = calls.last() else { break };
        filter.before = Some(last.row.id.clone());
        for record in calls.into_iter().filter_map(|call| call.record) {
            if !fits(backend, &record, otherwise).await? {
                continue;
            }
            // To commit what is asked about is to answer it, and to answer one of several it must be named.
            if otherwise == DefaultCall::Staged && record.state == CallState::Waiting && open.len() > 1 {
                return Err(several_wait(&open));
            }
            return Ok(record);
        }
    }
    Err(mistake(match otherwise {
        DefaultCall::Last | DefaultCall::Waiting => "no calls yet in this workspace",
        DefaultCall::WithChanges => "no call in this workspace has changed anything",
        DefaultCall::Staged => "no call in this workspace has changes left to commit",
        DefaultCall::Committed => "no call in this workspace has changes that can be undone",
        DefaultCall::Undone => "nothing in this workspace was undone",
    }))
}

async fn find(backend: &Backend, call: &CallId) -> Result<CallRecord> {
    let record = backend.record(call).await?;
    record.with_context(|| format!("{call} is not in the journal any more"))
}

async fn fits(backend: &Backend, record: &CallRecord, otherwise: DefaultCall) -> Result<bool> {
    let (turn, wanted) = match otherwise {
        DefaultCall::Last | DefaultCall::Waiting => return Ok(true),
        DefaultCall::WithChanges => return Ok(!record.changed_nothing()),
        DefaultCall::Staged => {
            let own = record.turn.clone().filter(|turn| turn.of == record.call);
            // A yes to some of the paths leaves the others, which its turn does not name.
            (own.map(|turn| Turn { paths: None, ..turn }), ChangeState::Staged)
        }
        DefaultCall::Committed => (reversal(record, Direction::Undo), ChangeState::Committed),
        DefaultCall::Undone => (reversal(record, Direction::Commit), ChangeState::Undone),
    };
    let Some(turn) = turn else { return Ok(false) };
    let changes = backend.staged_by(&turn.of).await?;
    let is_part = |path: &String| turn.paths.as_ref().is_none_or(|paths| paths.contains(path));
    // Nobody means a look at the status that refreshed git's index, or a build.
    let counts = |change: &Change| match otherwise {
        DefaultCall::Committed | DefaultCall::Undone => !change.derived || !change.flags.is_empty(),
        DefaultCall::Last | DefaultCall::Waiting | DefaultCall::WithChanges | DefaultCall::Staged => true,
    };
    Ok(changes.0.iter().any(|change| change.state == wanted && is_part(&change.path) && counts(change)))
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

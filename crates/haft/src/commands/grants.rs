//! `haft grants`

use std::time::Duration;

use anyhow::Result;
use haft_runtime::{
    Asks, Bounds, CallerId, ChangeKind, ErrorCode, Grant, GrantStatus, Questions, ToolError, WrittenBounds, nearest,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::{
        always::{GrantLimits, LAST, coverage, parse_lasting},
        mistake, open,
        which::grant_id,
    },
    exit::CliExit,
    house::House,
    show::{Out, grant::grant_text, time::count},
};

/// What a grant is, for whoever asks for help.
const HELP: &str = "\
A grant lets a tool work within its bounds without asking, until it expires, is
used up or is revoked. It covers calls of this workspace only. A path that
steers other programs or usually holds secrets is covered only if the grant
names it. Calls that leave the sandbox, or that a rule asks about, still ask;
`haft policy explain CALL` says why a call asked.";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<GrantsCommand>,
    /// Include grants that are revoked, expired or used up
    #[arg(long)]
    all: bool,
}

#[derive(clap::Subcommand)]
enum GrantsCommand {
    /// Say yes in advance
    Add(AddArgs),
    /// Show one grant, and how many of the last calls it covers
    Show {
        /// The grant, or the beginning of its id
        grant: String,
    },
    /// Revoke a grant
    Revoke {
        /// The grant, or the beginning of its id
        grant: String,
    },
}

#[derive(clap::Args)]
struct AddArgs {
    /// The tool that may go on without asking
    #[arg(long, value_name = "TOOL")]
    tool: String,
    /// Only these paths, relative to the workspace: `*` stays within a folder, `**` does not; may be given again
    #[arg(long, value_name = "GLOB", alias = "path")]
    paths: Vec<String>,
    /// Only these kinds of change: created, changed, deleted, mode, link, renamed
    #[arg(long, value_name = "KINDS", alias = "kind", value_delimiter = ',', value_parser = parse_kind)]
    kinds: Vec<ChangeKind>,
    /// At most this many paths in one call
    #[arg(long, value_name = "N")]
    max_files: Option<usize>,
    /// At most this many bytes written in one call
    #[arg(long, value_name = "N")]
    max_bytes: Option<u64>,
    /// Allow executable files
    #[arg(long)]
    executables: bool,
    /// Only for this caller: `owner:local`, or your own name
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// How long it lasts: 30m, 8h, 7d [default: until it is revoked]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_lasting)]
    lasting: Option<Duration>,
    /// How often it can be used [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
}

fn parse_kind(text: &str) -> Result<ChangeKind, String> {
    serde_json::from_value(Value::from(text)).map_err(|err| err.to_string())
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: Args) -> Result<CliExit> {
    let house = open(everywhere).await?;
    match args.what {
        None => list(&house, out, args.all).await?,
        Some(GrantsCommand::Add(add)) => remember(&house, out, add).await?,
        Some(GrantsCommand::Show { grant }) => show(&house, out, &grant).await?,
        Some(GrantsCommand::Revoke { grant }) => revoke(&house, out, &grant).await?,
    }
    house.leave().await?;
    Ok(CliExit::Success)
}

/// A grant with what people ask of it, for programs.
fn document(grant: &Grant) -> Result<Value> {
    let mut value = serde_json::to_value(grant)?;
    value["standing"] = json!(grant.standing(Timestamp::now()));
    Ok(value)
}

async fn list(house: &House, out: &Out, all: bool) -> Result<()> {
    let mut grants = house.store.all_grants(&house.scope, &house.here).await?;
    let now = Timestamp::now();
    let before = grants.len();
    grants.retain(|grant| all || grant.standing(now) == GrantStatus::Usable);
    if out.json {
        out.document(&grants.iter().map(document).collect::<Result<Vec<_>>>()?);
        return Ok(());
    }
    for grant in &grants {
        out.line(&grant_text(grant));
    }
    let over = before - grants.len();
    if grants.is_empty() {
        out.line("no grants here: every change asks");
        out.line("  haft approve CALL --always folder    say yes to a call and remember it");
        out.line("  haft grants add --help               say yes in advance");
    }
    if over > 0 {
        let are = if over == 1 { "is" } else { "are" };
        let more = count(over, "grant");
        out.line(&format!("{more} {are} revoked, expired or used up; `haft grants --all` lists them"));
    }
    Ok(())
}

async fn remember(house: &House, out: &Out, add: AddArgs) -> Result<()> {
    let tool = tool(house, &add.tool)?;
    let written = WrittenBounds {
        paths: Some(add.paths).filter(|paths| !paths.is_empty()),
        kinds: Some(add.kinds).filter(|kinds| !kinds.is_empty()),
        max_files: add.max_files,
        max_bytes: add.max_bytes,
        executables: add.executables,
        ..WrittenBounds::default()
    };
    let caller = add.caller.map(|typed| caller(house, &typed)).transpose()?;
    let lease = GrantLimits { lasting: add.lasting, uses: add.uses };
    let given_by = Some(house.caller.id.clone());
    let grant = lease.of(Grant { caller, given_by, ..Grant::new(tool, Bounds::try_from(written)?) });
    house.store.remember(&house.scope, &grant).await?;
    print(house, out, &grant).await
}

/// Whom a text means: an id such as `owner:local`, or the owner's own name. What a client calls itself says nothing.
fn caller(house: &House, typed: &str) -> Result<CallerId> {
    if typed == house.caller.name {
        return Ok(house.caller.id.clone());
    }
    typed.parse().map_err(anyhow::Error::msg)
}

/// The tool's own name. A tool that is asked for each time cannot be granted.
fn tool(house: &House, name: &str) -> Result<String> {
    let Some(tool) = house.tools().get(name) else {
        let specs = house.tools().specs();
        let near = nearest(name, specs.iter().map(|spec| spec.name.as_str()));
        let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`{hint}")).into());
    };
    if tool.spec().asks == Asks::Always {
        return Err(mistake(format!("`{name}` asks every time, so a grant for it would change nothing")));
    }
    Ok(tool.spec().name.clone())
}

async fn show(house: &House, out: &Out, typed: &str) -> Result<()> {
    print(house, out, &find(house, typed).await?).await
}

async fn revoke(house: &House, out: &Out, typed: &str) -> Result<()> {
    let grant = find(house, typed).await?;
    if !house.store.revoke(&house.scope, &grant.id).await? {
        return Err(mistake(format!("{} is revoked already", grant.id)));
    }
    print(house, out, &Grant { revoked: true, ..grant }).await
}

async fn print(house: &House, out: &Out, grant: &Grant) -> Result<()> {
    let past = house.store.last_calls(&house.scope, &house.here, LAST).await?;
    let coverage = coverage(house, grant, &past);
    if out.json {
        let mut value = document(grant)?;
        value["coverage"] = json!(coverage);
        out.document(&value);
        return Ok(());
    }
    out.line(&grant_text(grant));
    out.line(&format!("    {coverage}"));
    if grant.standing(Timestamp::now()) == GrantStatus::Usable {
        out.hint(&format!("to revoke it: haft grants revoke {}", grant.id));
    }
    Ok(())
}

async fn find(house: &House, typed: &str) -> Result<Grant> {
    let id = grant_id(house, typed).await?;
    match house.store.grant(&house.scope, &id).await? {
        Some(grant) => Ok(grant),
        None => Err(mistake(format!("there is no grant {id}; `haft grants --all` lists them"))),
    }
}

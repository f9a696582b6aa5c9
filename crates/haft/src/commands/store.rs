//! `haft store`

use std::cell::Cell;

use anyhow::{Context, Result, bail};
use haft_runtime::ToolError;
use haft_store::{CopiedTable, Options, Store};
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::{mistake, read_settings},
    exit::CliExit,
    house,
    show::Out,
    workspace,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: StoreCommand,
}

#[derive(clap::Subcommand)]
enum StoreCommand {
    /// Copy everything into another database, and count it on both sides
    ///
    /// Copies the journal, the questions, the grants and everything else from the database in use to another one, for
    /// example from the file in the data folder to a PostgreSQL server. End every haft first. Afterwards set `store.url`
    /// (or HAFT_STORE_URL) to the new address.
    Copy(CopyArgs),
}

#[derive(clap::Args)]
struct CopyArgs {
    /// Where to: postgres://user:password@host:5432/name
    #[arg(long, value_name = "URL")]
    to: String,
    /// Remove what the other database holds first
    #[arg(long)]
    replace: bool,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match &args.what {
        StoreCommand::Copy(args) => copy(everywhere, out, args).await,
    }
}

async fn copy(everywhere: &Everywhere, out: &Out, args: &CopyArgs) -> Result<CliExit> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = read_settings(&folder)?;
    let house = house::wide(&folder);
    if settings.store_url.as_ref() == Some(&args.to) {
        return Err(mistake("that is the database in use; name another one"));
    }
    let from = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let options = Options { url: Some(args.to.clone()), ..settings.store() };
    let to = Store::open(&settings.data, options).await.context("cannot use the database to copy to")?;
    if args.replace {
        to.clear(&house).await?;
    }
    let named = Cell::new("");
    let progress = |table: &'static str, rows: i64| {
        // A table is named when it begins; a long one says how far it is.
        if !out.json && (named.replace(table) != table || rows % 10_000 == 0) {
            out.hint(&format!("copying {table}: {rows}"));
        }
    };
    let copied = from.copy_to(&house, &to, progress).await?;
    let place = to.health().await?.place;
    to.close().await?;
    from.close().await?;
    tell(out, &copied, &place);
    if copied.iter().any(|table| table.from != table.to) {
        bail!("the copy is not complete: end every haft and copy again with --replace");
    }
    Ok(CliExit::Success)
}

fn tell(out: &Out, copied: &[CopiedTable], place: &str) {
    if out.json {
        let rows = copied.iter().map(|table| json!({"table": table.table, "from": table.from, "to": table.to}));
        out.document(&json!({"to": place, "tables": rows.collect::<Vec<_>>()}));
        return;
    }
    for CopiedTable { table, from, to } in copied {
        out.line(&format!("{table:<11} {from:>9} rows here, {to:>9} there"));
    }
    out.hint(&format!("set `store.url` or HAFT_STORE_URL to use {place}"));
}

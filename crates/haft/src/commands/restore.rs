//! `haft restore`

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::{
    backup::{RestoreWish, RestoredBackup, restore},
    commands::{backup::files, serve::of_user},
    exit::CliExit,
    show::Out,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The backup
    file: PathBuf,
    /// Put it in the place of the data that is there
    #[arg(long)]
    replace: bool,
    /// Only check the backup: its checksums, its counts and its version
    #[arg(long, conflicts_with = "replace")]
    check: bool,
    /// The PostgreSQL database to restore to instead of the file in the data folder
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

pub(crate) async fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let settings = of_user(args.database.as_deref())?;
    let wish = RestoreWish { file: args.file.clone(), replace: args.replace, check: args.check };
    let restored = restore(&settings, &wish, *out).await?;
    let RestoredBackup { manifest, taken_at, haft, tables } = &restored;
    if out.json {
        let tables = tables.iter().map(|(table, from, to)| json!({"table": table, "from": from, "to": to}));
        let key = if args.check { "checked" } else { "restored" };
        out.document(&json!({
            key: args.file, "takenAt": taken_at, "haft": haft, "tables": tables.collect::<Vec<_>>(),
            "changes": manifest.changes, "entries": manifest.entries, "bytes": manifest.bytes,
        }));
        return Ok(CliExit::Success);
    }
    for (table, from, to) in tables.iter().filter(|(_, from, to)| from + to > 0) {
        out.line(&format!("{table:<20} {from:>9} rows in the backup, {to:>9} here"));
    }
    out.line(&format!("{}, taken {taken_at}", files(manifest)));
    match args.check {
        true => out.line("the backup is whole; nothing was restored"),
        false => out.hint("`haft serve` goes on from there; what was under way then is interrupted"),
    }
    Ok(CliExit::Success)
}

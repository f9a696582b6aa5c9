//! `haft backup`

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::{
    backup::{BackupManifest, BackupTarget, BackupWish, take},
    commands::serve::of_user,
    exit::CliExit,
    show::{
        Out,
        time::{bytes, count},
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to write; - writes to standard output
    file: PathBuf,
    /// Put the master key into the backup, too
    #[arg(long)]
    with_key: bool,
    /// Write over the file if it is there
    #[arg(long)]
    replace: bool,
    /// The PostgreSQL database to use instead of the file in the data folder
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

pub(crate) async fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let settings = of_user(args.database.as_deref())?;
    let to = match args.file.as_os_str() == "-" {
        true => BackupTarget::Output,
        false => BackupTarget::File { path: args.file.clone(), replace: args.replace },
    };
    let to_output = matches!(to, BackupTarget::Output);
    let manifest = take(&settings, &BackupWish { to, with_key: args.with_key }, *out).await?;
    if args.with_key {
        Out::warning("the backup holds the master key: whoever has the file can read every secret in it");
    }
    match (to_output, out.json) {
        // The backup itself is what stands there.
        (true, _) => Out::note(&counted(&manifest)),
        (false, true) => out.document(&json!({
            "file": args.file, "tables": manifest.tables, "rows": manifest.rows(), "changes": manifest.changes,
            "entries": manifest.entries, "bytes": manifest.bytes, "leftOut": manifest.left_out, "sha256": manifest.sha256,
            "withKey": args.with_key,
        })),
        (false, false) => {
            out.line(&format!("{}: {}", args.file.display(), counted(&manifest)));
            out.hint(&format!("check it with `haft restore --check {}`", args.file.display()));
        }
    }
    Ok(CliExit::Success)
}

/// What a backup holds, in words.
fn counted(manifest: &BackupManifest) -> String {
    let (rows, tables) = (manifest.rows(), manifest.tables.len());
    format!("{rows} rows of {tables} tables, {}", files(manifest))
}

/// What a backup holds beside its rows.
pub(crate) fn files(manifest: &BackupManifest) -> String {
    let (calls, entries) = (count(manifest.changes, "call"), manifest.entries);
    format!("changes of {calls}, files and folders: {entries}, {}", bytes(manifest.bytes))
}

//! `haft gc`

use anyhow::Result;
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    retention::{SpaceUse, Sweep, Swept, sweep},
    show::{Out, time::bytes},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let mode = if args.dry_run { Sweep::Look } else { Sweep::Remove };
    let swept = sweep(&house, mode).await?;
    // The last one to close also gives the space of the write-ahead log back.
    house.close().await?;
    if out.json {
        out.document(&json!({"dryRun": args.dry_run, "removed": swept}));
        return Ok(CliExit::Success);
    }
    people(out, &swept, mode);
    Ok(CliExit::Success)
}

fn people(out: &Out, swept: &Swept, mode: Sweep) {
    let word = match mode {
        Sweep::Look => "would delete",
        Sweep::Remove => "deleted",
    };
    let sized = |part: &SpaceUse| format!("{} ({})", part.count, bytes(part.bytes));
    out.line(&format!("{word}: calls                    {}", swept.calls));
    out.line(&format!("{word}: outputs                  {}", sized(&swept.outputs)));
    out.line(&format!("{word}: changes, with their undo {}", sized(&swept.changes)));
    out.line(&format!("{word}: left by crashes          {}", sized(&swept.orphans)));
    out.line(&format!("{word}: of deleted workspaces    {}", sized(&swept.private)));
    out.line(&format!("{word}: records of ended haft    {}", swept.owners));
    out.line(&format!("kept: changes and outputs {}", sized(&swept.kept)));
    let freed = swept.outputs.bytes + swept.changes.bytes + swept.orphans.bytes + swept.private.bytes;
    match mode {
        Sweep::Look => out.hint(&format!("haft gc frees {}; `retention` in the settings decides", bytes(freed))),
        Sweep::Remove => out.hint(&format!("freed {}; the database uses its part again by itself", bytes(freed))),
    }
}

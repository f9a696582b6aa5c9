//! `haft gc`

use anyhow::Result;
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    retention::{SpaceUse, Sweep, Swept, sweep, sweep_tenants},
    show::{Out, table::table, time::bytes},
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
    let tenants = sweep_tenants(&house, mode).await?;
    // The last one to close also gives the space of the write-ahead log back.
    house.close().await?;
    if out.json {
        out.document(&json!({"dryRun": args.dry_run, "removed": swept, "tenants": tenants}));
        return Ok(CliExit::Success);
    }
    people(out, &swept, mode);
    if !tenants.is_empty() {
        out.line(if mode == Sweep::Look { "would delete of tenants" } else { "deleted of tenants" });
        let row = |(slug, swept): &(String, Swept)| {
            let counts = [swept.calls, swept.outputs.count, swept.media, swept.inbox, swept.sessions, swept.acts];
            [slug.clone()].into_iter().chain(counts.map(|count| count.to_string())).collect()
        };
        let columns = ["tenant", "calls", "outputs", "media", "inbox", "sessions", "acts"];
        out.text(&table(&columns, &tenants.iter().map(row).collect::<Vec<Vec<String>>>()));
    }
    Ok(CliExit::Success)
}

fn people(out: &Out, swept: &Swept, mode: Sweep) {
    out.line(match mode {
        Sweep::Look => "would delete",
        Sweep::Remove => "deleted",
    });
    let sized = |part: &SpaceUse| format!("{} ({})", part.count, bytes(part.bytes));
    for (what, how_much) in [
        ("calls", swept.calls.to_string()),
        ("outputs", sized(&swept.outputs)),
        ("changes and their undo", sized(&swept.changes)),
        ("left by crashes", sized(&swept.orphans)),
        ("of deleted workspaces", sized(&swept.private)),
        ("locks of ended processes", swept.owners.to_string()),
    ] {
        out.line(&format!("  {what:<26} {how_much}"));
    }
    out.line(&format!("kept\n  {:<26} {}", "changes and outputs", sized(&swept.kept)));
    let freed = swept.outputs.bytes + swept.changes.bytes + swept.orphans.bytes + swept.private.bytes;
    match mode {
        Sweep::Look => out.hint(&format!(
            "`haft gc` would free {}; the settings `retention.*` say how long data is kept",
            bytes(freed)
        )),
        Sweep::Remove => out.hint(&format!("freed {}; the database reuses its own space", bytes(freed))),
    }
}

//! `haft admin audit`: who did what, as it is kept, and whether it is whole.

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use haft_platform::{AuditAction, AuditFilter, AuditView, Platform, length_of_time};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    commands::mistake,
    exit::CliExit,
    show::{Out, table::table},
};

/// How often new acts are looked for.
const NEXT_LOOK: Duration = Duration::from_millis(500);
/// How many are read at once where all are wanted.
const PAGE: u32 = 500;

#[derive(clap::Args)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Only of this tenant, by slug; or by id, where it was removed
    #[arg(long, global = true)]
    tenant: Option<String>,
    /// Not before this time, or not longer ago than this, such as 7d
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only acts of this kind, such as key.added
    #[arg(long)]
    action: Option<String>,
    /// Only acts of this caller, such as person:ID
    #[arg(long, value_name = "KIND:ID")]
    by: Option<String>,
    /// Only acts on this, such as key:ID
    #[arg(long, value_name = "KIND:ID")]
    on: Option<String>,
    /// At most so many, the newest of them [default: 50, with --json all]
    #[arg(long)]
    limit: Option<u32>,
    /// Go on with every act that comes
    #[arg(long)]
    follow: bool,
}

#[derive(clap::Subcommand)]
enum AuditCommand {
    /// Check that no row was changed, taken out or put in
    Verify,
}

impl AuditArgs {
    pub(super) async fn run(&self, out: &Out, platform: &Platform) -> Result<CliExit> {
        let of = self.tenant.as_deref();
        if platform.audit_logs(of).await?.is_empty()
            && let Some(of) = of
        {
            return Err(mistake(format!("there is no audit log of `{of}`")));
        }
        if let Some(AuditCommand::Verify) = self.command {
            return verify(out, platform, of).await;
        }
        let filter = self.filter(out)?;
        match out.json && self.limit.is_none() && !self.follow {
            true => export(out, platform, of, &filter).await?,
            false => self.list(out, platform, &filter).await?,
        }
        Ok(CliExit::Success)
    }

    fn filter(&self, out: &Out) -> Result<AuditFilter> {
        let unknown = |word: &str| {
            let all: Vec<&str> = AuditAction::ALL.iter().map(|action| action.word()).collect();
            mistake(format!("there is no act `{word}`; there are {}", all.join(", ")))
        };
        let action = self.action.as_deref().map(|word| AuditAction::parse(word).ok_or_else(|| unknown(word)));
        Ok(AuditFilter {
            action: action.transpose()?,
            by: self.by.clone(),
            on: self.on.clone(),
            since: self.since.as_deref().map(since).transpose()?,
            before: None,
            limit: self.limit.unwrap_or(if out.json { PAGE } else { 50 }),
        })
    }

    async fn list(&self, out: &Out, platform: &Platform, filter: &AuditFilter) -> Result<()> {
        // Noted first: what comes meanwhile is told once, below.
        let mut last = HashMap::new();
        if self.follow {
            for (tenant, _) in platform.audit_logs(self.tenant.as_deref()).await? {
                let newest =
                    platform.audit_of(Some(&tenant), &AuditFilter { limit: 1, ..AuditFilter::default() }).await?;
                last.insert(tenant, newest.first().map_or(0, |view| view.seq));
            }
        }
        print(out, &platform.audit_of(self.tenant.as_deref(), filter).await?);
        while self.follow {
            for (tenant, name) in platform.audit_logs(self.tenant.as_deref()).await? {
                let seen = last.entry(tenant.clone()).or_insert(0);
                let news = platform.audit_after((&tenant, &name), *seen).await?;
                *seen = news.last().map_or(*seen, |view| view.seq);
                let wanted = |view: &AuditView| {
                    filter.action.is_none_or(|action| action.word() == view.action)
                        && self.by.as_ref().is_none_or(|by| view.by.id.as_ref() == Some(by))
                        && self.on.as_ref().is_none_or(|on| view.on == *on)
                };
                print(out, &news.into_iter().filter(wanted).collect::<Vec<_>>());
            }
            tokio::time::sleep(NEXT_LOOK).await;
        }
        Ok(())
    }
}

/// A time, or how long ago one is.
fn since(text: &str) -> Result<Timestamp> {
    if let Some(length) = length_of_time(text) {
        return Ok(Timestamp::now().checked_sub(length)?);
    }
    text.parse().map_err(|_| mistake(format!("`{text}` is no time; write it like 7d or 2026-11-18T08:00:00Z")))
}

/// Every row of each log, one JSON object a line, oldest first.
async fn export(out: &Out, platform: &Platform, of: Option<&str>, filter: &AuditFilter) -> Result<()> {
    for (tenant, _) in platform.audit_logs(of).await? {
        let mut pages = Vec::new();
        let mut filter = filter.clone();
        loop {
            let page = platform.audit_of(Some(&tenant), &filter).await?;
            let Some(first) = page.first() else { break };
            filter.before = Some(first.seq);
            pages.push(page);
        }
        pages.iter().rev().for_each(|page| print(out, page));
    }
    Ok(())
}

fn print(out: &Out, views: &[AuditView]) {
    if out.json {
        views.iter().for_each(|view| out.line(&json!(view).to_string()));
        return;
    }
    if views.is_empty() {
        return;
    }
    let row = |view: &AuditView| {
        let by = view.by.name.clone().or_else(|| view.by.id.clone()).unwrap_or_else(|| "nobody known".to_owned());
        let from = view.by.address.clone().unwrap_or_else(|| view.by.source.clone());
        let at = view.at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        vec![at, view.tenant.clone().unwrap_or_default(), view.action.clone(), view.on.clone(), by, from]
    };
    out.text(&table(&["at", "tenant", "action", "on", "by", "from"], &views.iter().map(row).collect::<Vec<_>>()));
}

async fn verify(out: &Out, platform: &Platform, of: Option<&str>) -> Result<CliExit> {
    let checks = platform.check_audit(of).await?;
    let whole = checks.iter().all(|check| check.whole);
    if out.json {
        out.document(&json!({"whole": whole, "items": checks}));
    } else {
        for check in &checks {
            out.line(&match (check.broken, check.why) {
                (Some(row), Some(why)) => format!("{}: row {row} does not fit: {why}", check.tenant),
                (_, _) => format!(
                    "{}: rows {} to {} are whole; the last hash is {}",
                    check.tenant, check.first, check.last, check.hash
                ),
            });
        }
    }
    Ok(if whole { CliExit::Success } else { CliExit::Failure })
}

//! `haft doctor`: what works here, what does not, and what to do about it.

use haft_mcp::UpstreamServer;
use haft_platform::MailTls;
use std::{os::unix::fs::MetadataExt, path::Path};

use anyhow::Result;
use haft_runtime::Isolation;
use haft_sandbox::fence::{Missing, Probe, Rung};
use haft_store::Durability;
use serde::Serialize;

use crate::{
    cli::Everywhere,
    commands::open_in,
    exit::CliExit,
    house, open_files,
    project::Fault,
    settings::{KEYS, Settings},
    show::{
        Out,
        safe::safe,
        style::{ADDED, DIM, WRONG},
        table::{width, wrapped},
        time::bytes,
        trust::{SHORT, diff},
    },
    trust::{self, TrustStatus},
    workspace,
};

/// One thing that was looked at.
#[derive(Serialize)]
struct DoctorCheck {
    what: &'static str,
    good: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    #[serde(skip)]
    diff: Option<String>,
}

impl DoctorCheck {
    fn good(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, good: true, found: found.into(), fix: None, diff: None }
    }

    fn bad(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what, good: false, found: found.into(), fix: Some(fix.into()), diff: None }
    }
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out) -> Result<CliExit> {
    let findings = look(everywhere).await;
    let good = findings.iter().all(|finding| finding.good);
    if out.json {
        out.document(&findings);
    } else {
        for finding in &findings {
            let (mark, style) = if finding.good { ("ok", ADDED) } else { ("!!", WRONG) };
            let found = wrapped(&finding.found, width() - 15).replace('\n', &format!("\n{:15}", ""));
            out.line(&format!("{style}{mark}{style:#}  {:<10} {found}", finding.what));
            if let Some(fix) = &finding.fix {
                let fix = wrapped(fix, width() - 6).replace('\n', "\n      ");
                out.line(&format!("    {DIM}→{DIM:#} {fix}"));
            }
            out.text(finding.diff.as_deref().unwrap_or_default());
        }
    }
    Ok(if good { CliExit::Success } else { CliExit::Failure })
}

async fn look(everywhere: &Everywhere) -> Vec<DoctorCheck> {
    let folder = workspace::find(everywhere.workspace.as_deref());
    let settings = match &folder {
        Ok(folder) => Settings::read(folder),
        Err(_) => Settings::of_user().and_then(Settings::with_environment),
    };
    let settings = match settings {
        Ok(settings) => settings,
        Err(err) => {
            return vec![DoctorCheck::bad(
                "settings",
                format!("{err:#}"),
                "correct that line; `haft help settings` lists them all",
            )];
        }
    };
    let mut findings = vec![
        DoctorCheck::good("program", format!("haft {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)),
        kernel(),
    ];
    findings.extend(settings_found(&settings));
    findings.push(store(&settings).await);
    findings.push(open_files_found(&settings));
    findings.extend(mail_found(&settings));
    match folder {
        Ok(folder) => {
            findings.extend(commands_found(&settings, &folder));
            findings.extend(folder_found(&folder, &settings.data));
            findings.push(trust_found(&folder, &settings.data));
            findings.extend(tools_found(settings, &folder).await);
        }
        Err(err) => findings.push(DoctorCheck::bad("workspace", format!("{err:#}"), "name a folder with --workspace")),
    }
    findings
}

/// The mail server, where one is set. Nothing is sent.
fn mail_found(settings: &Settings) -> Option<DoctorCheck> {
    let mail = &settings.mail;
    match settings.mailer() {
        Ok(None) => None,
        Ok(Some(_)) => {
            let tls = match mail.tls {
                MailTls::Starttls => "STARTTLS",
                MailTls::Tls => "TLS",
                MailTls::None => "no TLS",
            };
            let found = format!("{}:{} with {tls}, from {}", safe(&mail.host), mail.port(), safe(&mail.from));
            Some(DoctorCheck::good("mail", format!("{found}; `POST /api/notices/test` sends one to yourself")))
        }
        Err(err) => Some(DoctorCheck::bad("mail", format!("{err:#}"), "correct that; `haft serve` does not start so")),
    }
}

/// A connection is an open file. It matters only to those who serve others.
fn open_files_found(settings: &Settings) -> DoctorCheck {
    let room = open_files::room();
    match open_files::too_few(settings, room) {
        Some((found, fix)) if settings.origins.iter().any(|(key, _)| key.starts_with("serve.")) => {
            DoctorCheck::bad("files", found, fix)
        }
        Some((found, _)) => DoctorCheck::good("files", found),
        None => DoctorCheck::good(
            "files",
            format!("room for the {} connections of `haft serve`", settings.serve.limits.connections),
        ),
    }
}

/// Paths are opened beneath a handle, which needs `openat2` (Linux 5.6).
fn kernel() -> DoctorCheck {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    match rustix::fs::openat2(
        rustix::fs::CWD,
        ".",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH,
    ) {
        Ok(_) => DoctorCheck::good("kernel", format!("Linux {release}, openat2 works")),
        Err(err) => DoctorCheck::bad(
            "kernel",
            format!("Linux {release}: openat2 fails ({err})"),
            "use Linux 5.6 or later; a container's seccomp profile may have to allow openat2",
        ),
    }
}

fn settings_found(settings: &Settings) -> Vec<DoctorCheck> {
    let mut findings = vec![DoctorCheck::good("data", settings.data.display().to_string())];
    if settings.origins.is_empty() {
        findings.push(DoctorCheck::good("settings", format!("all {} at their defaults", KEYS.len())));
    }
    for (key, origin) in &settings.origins {
        findings.push(DoctorCheck::good("settings", format!("{key} from {origin}")));
    }
    if !settings.web.allow.is_empty() {
        let hosts: Vec<String> = settings.web.allow.iter().map(ToString::to_string).collect();
        let found = format!("web.allow lets every tenant of haft serve reach {}", hosts.join(", "));
        findings.push(DoctorCheck::good("settings", found));
    }
    for sentence in &settings.not_obeyed {
        findings.push(DoctorCheck::good("settings", safe(sentence)));
    }
    findings
}

fn trust_found(folder: &Path, data: &Path) -> DoctorCheck {
    match trust::look(data, folder) {
        Err(err) => DoctorCheck::bad("trust", format!("{err:#}"), "make the workspace readable"),
        Ok(looked) => match looked.standing {
            TrustStatus::BringsNothing | TrustStatus::Trusted(_) => DoctorCheck::good("trust", looked.words()),
            TrustStatus::NotTrusted => DoctorCheck {
                fix: Some("`haft trust` shows it".to_owned()),
                ..DoctorCheck::good("trust", looked.words())
            },
            TrustStatus::Held(_) => {
                let fix = Some("`haft trust` shows this and asks".to_owned());
                let diff = Some(diff(&looked, SHORT));
                DoctorCheck { fix, diff, ..DoctorCheck::good("trust", looked.words()) }
            }
            TrustStatus::Doubtful(_) => DoctorCheck::bad(
                "trust",
                looked.words(),
                "`haft trust --forget` removes it; then `haft trust` looks again",
            ),
        },
    }
}

/// What is wrong with the tools that the workspace brings and somebody has trusted.
async fn tools_found(settings: Settings, folder: &Path) -> Vec<DoctorCheck> {
    // What keeps a house from opening has been found before.
    let Ok(house) = open_in(settings, folder).await else { return Vec::new() };
    let faults = house.project.faults();
    let bad = |fault: &Fault| DoctorCheck::bad("tools", safe(&fault.to_string()), "correct it, then `haft trust`");
    let mut findings: Vec<DoctorCheck> = faults.iter().map(bad).collect();
    findings.extend(house.upstreams.servers().map(server_found));
    let _ = house.close().await;
    findings
}

/// What is known of an upstream server; it is not started for that.
fn server_found(server: &UpstreamServer) -> DoctorCheck {
    let (name, pins) = (server.name(), server.pins.read());
    if let Some(why) = &pins.last_error {
        return DoctorCheck::bad("server", safe(why), format!("correct it, then `haft mcp-servers restart {name}`"));
    }
    let held = pins.differences().len();
    let found = format!("{name}: {} tools, {held} held", pins.tools().count());
    let fix = (held > 0).then(|| format!("`haft mcp-servers diff {name}` shows what has changed"));
    DoctorCheck { fix, ..DoctorCheck::good("server", found) }
}

async fn store(settings: &Settings) -> DoctorCheck {
    let fix = if settings.store_url.is_some() {
        "start the database, or correct `store.url` (HAFT_STORE_URL)"
    } else {
        "set HAFT_DATA_DIR to a folder you may write to, or move that file away: it is never overwritten"
    };
    match haft_store::Store::open(&settings.data, settings.store()).await {
        Err(err) => DoctorCheck::bad("store", err.to_string(), fix),
        Ok(store) => {
            let found = match store.health().await {
                Err(err) => DoctorCheck::bad("store", err.to_string(), fix),
                Ok(health) => DoctorCheck::good(
                    "store",
                    format!(
                        "{} at {}, {}, version {}, {} calls{}",
                        health.database,
                        safe(&health.place),
                        bytes(health.bytes),
                        health.schema_version,
                        health.calls,
                        durability(settings)
                    ),
                ),
            };
            let _ = store.close().await;
            found
        }
    }
}

/// What an acknowledged call survives, where haft decides that.
fn durability(settings: &Settings) -> String {
    match (&settings.store_url, settings.sync) {
        (Some(_), _) => String::new(),
        (None, Durability::Normal) => ", sync normal".to_owned(),
        (None, Durability::Full) => ", sync full".to_owned(),
    }
}

/// The fence around commands, and what they see of the user's own tools.
fn commands_found(settings: &Settings, folder: &Path) -> Vec<DoctorCheck> {
    let workspace = house::workspace(settings, folder);
    let found = workspace.as_ref().ok().and_then(|workspace| workspace.fences().ok().zip(workspace.toolchains().ok()));
    // Why a folder cannot be worked in is said elsewhere.
    let Some((probe, toolchains)) = found else { return Vec::new() };
    let mut findings = vec![fence(probe, settings.sandbox.minimum_asked)];
    let at = |name: &str, place: &Path| format!("{name} at {}", safe(&place.display().to_string()));
    findings.extend(toolchains.found.iter().map(|found| DoctorCheck::good("toolchain", at(&found.name, &found.at))));
    findings.extend(toolchains.caches.iter().map(|cache| DoctorCheck::good("cache", at(cache.name, &cache.at))));
    findings.extend(toolchains.left_out.iter().map(|left| {
        let place = safe(&left.at.display().to_string());
        DoctorCheck::good("not seen", format!("{place}, because {}", left.why))
    }));
    findings.extend(settings.lsp.found(toolchains).into_iter().map(|(language, program)| {
        let language = safe(&language);
        let found = match program {
            Some(program) => format!("{language}, by the server {}", safe(&program)),
            None => format!("{language}: no language server on your PATH"),
        };
        DoctorCheck::good("language", found)
    }));
    findings
}

/// The rung in force; where it is not the highest, which step failed and what helps.
fn fence(probe: &Probe, minimum: Isolation) -> DoctorCheck {
    let told = |tried: &Result<(), Missing>| match tried {
        Ok(()) => String::new(),
        Err(Missing { step, why, .. }) => format!("; {step} failed: {why}"),
    };
    let fix =
        |tried: &Result<(), Missing>| tried.as_ref().err().map_or_else(String::new, |missing| missing.fix.clone());
    let (namespaces, landlock) = (&probe.namespaces, &probe.landlock);
    match probe.rung {
        Some(Rung::Namespaces) => DoctorCheck::good(
            "sandbox",
            "isolation namespaces: commands run in a sandbox on a copy of the workspace, without the network, and can be undone",
        ),
        Some(Rung::Landlock) => {
            let so = if minimum > Isolation::Landlock {
                "no command runs, as `sandbox.minimum.asked` demands namespaces"
            } else {
                "commands cannot be previewed or undone, can change permissions and times of your files elsewhere, and \
                 always ask first"
            };
            DoctorCheck::bad("sandbox", format!("isolation landlock: {so}{}", told(namespaces)), fix(namespaces))
        }
        None => DoctorCheck::bad(
            "sandbox",
            format!("no command can be run{}{}", told(namespaces), told(landlock)),
            format!("{}; or at least {}", fix(namespaces), fix(landlock)),
        ),
    }
}

fn folder_found(folder: &Path, data: &Path) -> Vec<DoctorCheck> {
    let mut findings = Vec::new();
    let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    let shown = folder.display().to_string();
    findings.push(if writable {
        DoctorCheck::good("workspace", shown)
    } else {
        DoctorCheck::bad(
            "workspace",
            format!("{shown} cannot be written to"),
            "tools can read here; to change files, own the folder or remount it",
        )
    });
    let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    let same = device(folder) == device(data);
    findings.push(DoctorCheck::good(
        "commits",
        if same {
            "quick: workspace and haft's data share a file system"
        } else {
            "slower: workspace and haft's data are on different file systems"
        },
    ));
    findings
}

#[cfg(test)]
mod tests {
    use haft_runtime::Isolation;
    use haft_sandbox::fence::{Missing, Probe, Rung};

    use super::fence;

    #[test]
    fn a_lower_rung_names_the_step_that_failed_and_the_fix() {
        let missing = |step: &str, fix: &str| {
            Err(Missing { step: step.to_owned(), why: "Operation not permitted".to_owned(), fix: fix.to_owned() })
        };
        let namespaces = missing("make namespaces", "run `sudo sysctl x=0`");
        let lower = Probe { rung: Some(Rung::Landlock), namespaces: namespaces.clone(), landlock: Ok(()) };
        let told = fence(&lower, Isolation::Landlock);
        assert!(
            !told.good && told.found.contains("isolation landlock: commands cannot be previewed"),
            "{}",
            told.found
        );
        assert!(told.found.ends_with("; make namespaces failed: Operation not permitted"), "{}", told.found);
        assert_eq!(told.fix.as_deref(), Some("run `sudo sysctl x=0`"));
        let demanded = fence(&lower, Isolation::Namespaces);
        assert!(demanded.found.contains("no command runs, as `sandbox.minimum.asked`"), "{}", demanded.found);
        let none = Probe { rung: None, namespaces, landlock: missing("restrict itself", "run Linux 5.13 or later") };
        let told = fence(&none, Isolation::Landlock);
        assert!(told.found.contains("no command can be run") && told.found.contains("restrict itself failed"));
        assert_eq!(told.fix.as_deref(), Some("run `sudo sysctl x=0`; or at least run Linux 5.13 or later"));
    }
}

//! `haft trust`

use std::path::Path;

use anyhow::{Result, bail};
use haft_tools::Manifest;
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::{
        open_in,
        prompt::{Person, TerminalLines},
        user_settings,
    },
    exit::CliExit,
    project::Fault,
    settings::{Settings, WorkspaceSetting},
    show::{
        Out,
        safe::safe,
        style::{DIM, STRONG, WARN},
        table::{width, wrapped},
        trust::{contents, diff, files, settings, tools},
    },
    trust::{self, Brought, SETTINGS, TrustStatus, WorkspaceTrust},
    workspace,
};

/// How many lines of each file are shown before somebody asks for all.
const LINES: usize = 20;

const HELP: &str = "  y  yes: use exactly these files from now on, even if they change later
  n  no: change nothing
  d  details: show every file whole
  ?  this help
Type a letter and press Enter.";

const TRUSTED: &str = "trusted: exactly these files are used from now on, even if they change later";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only show what it brings and how each setting would be used
    #[arg(long)]
    show: bool,
    /// Trust it without asking
    #[arg(long, conflicts_with = "show")]
    yes: bool,
    /// Only if the files still have this hash, as `haft trust --show` prints it
    #[arg(long, value_name = "HASH", requires = "yes")]
    hash: Option<String>,
    /// Trust this workspace no longer
    #[arg(long, conflicts_with_all = ["show", "yes"])]
    forget: bool,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: Args) -> Result<CliExit> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    // What the workspace itself says has no part in whether it is trusted.
    let of_user = user_settings()?;
    if args.forget {
        return forget(out, &of_user, &folder);
    }
    // From here on these bytes are what is shown, hashed, asked about and recorded.
    let looked = trust::look(&of_user.data, &folder)?;
    let house = open_in(of_user.clone(), &folder).await?;
    house.leave().await?;
    let (tools, faults) = house.project.sort(&looked.brought);
    let tools = tools.into_values().collect();
    let report = TrustReport { lines: lines(&of_user, &looked.brought), looked, tools, faults };
    let asked = if args.show { TrustDecision::Nothing } else { report.ask(out, &args).await? };
    match asked {
        TrustDecision::Nothing => {}
        TrustDecision::No => {
            out.line("Not trusted; nothing changed.");
            return Ok(CliExit::Rejected);
        }
        TrustDecision::Yes => {
            trust::write(&of_user.data, &folder, report.looked.brought.clone())?;
        }
    }
    report.end(out, &args, &folder, asked)
}

/// What a person made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrustDecision {
    /// There was nothing to ask.
    Nothing,
    Yes,
    No,
}

/// What the settings that it brings come to; a mistake in them is an error.
fn lines(of_user: &Settings, brought: &Brought) -> Result<Vec<WorkspaceSetting>> {
    let bytes = brought.0.get(SETTINGS).and_then(|content| content.bytes());
    bytes.map_or_else(|| Ok(Vec::new()), |bytes| of_user.clone().take_workspace(bytes))
}

fn forget(out: &Out, of_user: &Settings, folder: &Path) -> Result<CliExit> {
    let was_trusted = trust::forget(&of_user.data, folder)?;
    if out.json {
        out.document(&json!({"workspace": folder, "forgotten": was_trusted}));
    } else if was_trusted {
        out.line("forgotten: what this workspace brings is no longer used");
    } else {
        out.line("there was nothing to forget: this workspace was not trusted");
    }
    Ok(CliExit::Success)
}

struct TrustReport {
    looked: WorkspaceTrust,
    lines: Result<Vec<WorkspaceSetting>>,
    /// The tools that it brings.
    tools: Vec<Manifest>,
    /// What is wrong with the rest of them.
    faults: Vec<Fault>,
}

impl TrustReport {
    /// Whether it is trusted from now on. What is trusted already, or cannot be, is not asked about.
    async fn ask(&self, out: &Out, args: &Args) -> Result<TrustDecision> {
        if let TrustStatus::Doubtful(why) = &self.looked.standing {
            bail!(
                "the trust record cannot be relied on, because {why}; `haft trust --forget` removes it, then look again"
            );
        }
        let hash = self.looked.brought.hash()?;
        if let Some(wanted) = args.hash.as_ref().filter(|wanted| wanted.len() < 8 || !hash.starts_with(*wanted)) {
            bail!("these are not the files of hash `{wanted}`, so nothing was trusted; look with `haft trust --show`");
        }
        if matches!(self.looked.standing, TrustStatus::BringsNothing | TrustStatus::Trusted(_)) {
            return Ok(TrustDecision::Nothing);
        }
        if let Err(err) = &self.lines {
            bail!("haft.toml has a mistake, so nothing was trusted: {}; correct it and try again", told(err));
        }
        if args.yes {
            self.print(out, args)?;
            return Ok(TrustDecision::Yes);
        }
        if Person::at_the_terminal() == Person::Absent {
            self.print(out, args)?;
            bail!("there is no terminal to ask at; `haft trust --yes --hash {}` trusts exactly this", &hash[..16]);
        }
        anstream::eprint!("{}", self.text(LINES)?);
        Ok(self.prompt(&mut TerminalLines::new()).await)
    }

    async fn prompt(&self, lines: &mut TerminalLines) -> TrustDecision {
        loop {
            let prompt = format!("{STRONG}Trust exactly this?{STRONG:#} [y]es [n]o [d]etails [?] ");
            let Some(line) = lines.next(&prompt).await else { return TrustDecision::No };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return TrustDecision::Yes,
                "n" | "no" => return TrustDecision::No,
                "d" | "details" => anstream::eprint!("{}", contents(&self.looked, usize::MAX)),
                "?" | "h" | "help" => anstream::eprintln!("{HELP}"),
                _ => anstream::eprintln!("Type one of y, n, d or ?."),
            }
        }
    }

    /// All that it brings; of each file so many lines.
    fn text(&self, most: usize) -> Result<String> {
        let mut text = format!("{STRONG}This workspace brings{STRONG:#}\n");
        text.push_str(&files(&self.looked, |path| self.faults.iter().any(|fault| fault.path == path)));
        for fault in &self.faults {
            let sentence = wrapped(&safe(&fault.to_string()), width() - 2).replace('\n', "\n  ");
            text.push_str(&format!("  {WARN}{sentence}{WARN:#}\n"));
        }
        text.push_str(&tools(&self.tools));
        if matches!(self.looked.standing, TrustStatus::NotTrusted) || most == usize::MAX {
            text.push_str(&contents(&self.looked, most));
        }
        match &self.lines {
            Ok(lines) if lines.is_empty() => {}
            Ok(lines) => text.push_str(&format!("{STRONG}Its settings{STRONG:#}\n{}", settings(lines))),
            Err(err) => text.push_str(&format!("{WARN}haft.toml has a mistake: {}{WARN:#}\n", safe(&told(err)))),
        }
        if let TrustStatus::Held(_) = self.looked.standing {
            text.push_str(&format!("{STRONG}Changed since you trusted it{STRONG:#}\n"));
            text.push_str(&diff(&self.looked, usize::MAX));
        }
        text.push_str(&format!("{DIM}hash {}{DIM:#}\n", &self.looked.brought.hash()?[..16]));
        Ok(text)
    }

    fn print(&self, out: &Out, args: &Args) -> Result<()> {
        if !out.json && !matches!(self.looked.standing, TrustStatus::BringsNothing) {
            out.text(&self.text(if args.show { usize::MAX } else { LINES })?);
        }
        Ok(())
    }

    fn end(&self, out: &Out, args: &Args, folder: &Path, asked: TrustDecision) -> Result<CliExit> {
        if out.json {
            out.document(&self.document(folder, asked)?);
            return Ok(CliExit::Success);
        }
        match asked {
            TrustDecision::Nothing | TrustDecision::No => {
                self.print(out, args)?;
                out.line(&safe(&self.looked.words()));
            }
            TrustDecision::Yes => out.line(TRUSTED),
        }
        Ok(CliExit::Success)
    }

    fn document(&self, folder: &Path, asked: TrustDecision) -> Result<Value> {
        let standing = if asked == TrustDecision::Yes { "trusted" } else { self.looked.standing.word() };
        let settings: Vec<Value> = self.lines.iter().flatten().map(setting).collect();
        let files: Vec<Value> = self.looked.brought.0.iter().map(|(path, content)| file(path, content)).collect();
        let mut document = json!({"workspace": folder, "trust": standing, "hash": self.looked.brought.hash()?,
            "files": files, "settings": settings});
        if !self.tools.is_empty() {
            document["tools"] = self.tools.iter().map(tool).collect();
        }
        if !self.faults.is_empty() {
            let faults = self.faults.iter().map(|fault| json!({"path": fault.path, "why": fault.why}));
            document["faults"] = faults.collect();
        }
        if let Err(err) = &self.lines {
            document["mistake"] = json!(told(err));
        }
        if let TrustStatus::Held(_) = self.looked.standing {
            let changed: Vec<&str> = self.looked.differences().iter().map(|difference| difference.path).collect();
            document["changed"] = json!(changed);
        }
        if let TrustStatus::Doubtful(why) = &self.looked.standing {
            document["why"] = json!(why);
        }
        Ok(document)
    }
}

fn tool(manifest: &Manifest) -> Value {
    json!({"name": manifest.name(), "command": manifest.command(), "wants": manifest.wants()})
}

fn setting(line: &WorkspaceSetting) -> Value {
    json!({"key": line.key, "value": line.value, "obeyed": line.obeyed.is_yes(), "because": line.obeyed.words()})
}

fn file(path: &str, content: &trust::BroughtContent) -> Value {
    match content {
        trust::BroughtContent::LeftOut(why) => json!({"path": path, "leftOut": why}),
        trust::BroughtContent::Link(to) => json!({"path": path, "link": to}),
        trust::BroughtContent::Hash(hash) => json!({"path": path, "sha256": hash}),
        trust::BroughtContent::Text(_) | trust::BroughtContent::Bytes(_) => {
            let bytes = content.bytes().unwrap_or_default();
            json!({"path": path, "size": bytes.len(), "sha256": trust::hex(bytes)})
        }
    }
}

fn told(err: &anyhow::Error) -> String {
    format!("{err:#}").replace('\n', " ")
}

//! `haft mcp install`

mod client;
mod program;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use haft_mcp::MayApprove;
use serde_json::{Value, json};

use crate::{
    backend::Backend,
    cli::Everywhere,
    commands::{
        init,
        mcp::install::{
            client::{For, LaunchCommand, McpClient, SettingsLocation, UserFolders, written},
            program::installed_program,
        },
        open_in,
        prompt::{Person, TerminalLines},
        read_settings, user_settings,
    },
    edits,
    exit::CliExit,
    settings::Settings,
    show::{
        Out,
        style::{ADDED, DIM, STRONG, WARN},
    },
    trust::hex,
    workspace,
};

/// The setting that says whether a yes in a client counts.
const MAY_APPROVE: [&str; 2] = ["mcp", "client_may_approve"];

/// Only haft's own entry is written; comments and everything else in the file stay as they are, and so does what you
/// have put into the entry. With `--print` nothing is written. Run it again after haft has moved.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The client
    client: McpClient,
    /// Print the lines, and write nothing
    #[arg(long)]
    print: bool,
    /// Write into your own settings, for every workspace, instead of this workspace's
    #[arg(long)]
    user: bool,
    /// Whether a question that you accept in the client counts as your yes; asked for at a terminal
    #[arg(long, value_name = "yes|no", hide_possible_values = true)]
    client_may_approve: Option<YesNo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallResult {
    Added,
    Changed,
    Same,
}

impl InstallResult {
    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Same => "unchanged",
        }
    }
}

/// One file, as it is and as it should be.
struct SettingsEdit {
    place: SettingsLocation,
    path: PathBuf,
    before: Option<String>,
    after: String,
    became: InstallResult,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = user_settings()?;
    let user = UserFolders::of(&settings)?;
    let whom = if args.user { For::User } else { For::Workspace };
    let place = args.client.place(whom, &folder, &user);
    let named = match (&place, &everywhere.workspace) {
        (SettingsLocation::User(_), Some(_)) => Some(written(&folder)?),
        (SettingsLocation::User(_) | SettingsLocation::Workspace(_), _) => args.client.names(&place, &folder)?,
    };
    let command = LaunchCommand::new(&installed_program(&settings)?, named)?;
    let lines = args.client.put("", &command)?;
    let path = match &place {
        SettingsLocation::Workspace(path) => folder.join(path),
        SettingsLocation::User(path) => path.clone(),
    };
    if args.print {
        print(out, args.client, &path, &lines);
        return Ok(CliExit::Success);
    }
    let edit = plan(args.client, place, path.clone(), &command)
        .map_err(|err| left(&path, &err, &format!("put these lines into it yourself:\n{lines}")))?;
    let may_approve = may_approve(args, &settings).await;
    let call = write(&edit, &folder).await?;
    let recorded = user.haft();
    record(may_approve, &recorded)?;
    show(out, args.client, &InstallReport { edit, call, may_approve, recorded });
    Ok(CliExit::Success)
}

fn plan(client: McpClient, place: SettingsLocation, path: PathBuf, command: &LaunchCommand) -> Result<SettingsEdit> {
    let before = edits::read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    let after = client.put(text, command)?;
    let became = match before.as_deref() {
        Some(before) if before == after => InstallResult::Same,
        Some(before) if client.is_in(before) => InstallResult::Changed,
        Some(_) | None => InstallResult::Added,
    };
    Ok(SettingsEdit { place, path, before, after, became })
}

/// A file of the workspace is written by a call like any other, which can be undone; its id is given.
async fn write(edit: &SettingsEdit, folder: &Path) -> Result<Option<String>> {
    let path = match &edit.place {
        _ if edit.became == InstallResult::Same => return Ok(None),
        SettingsLocation::User(path) => return edits::replace(path, &edit.after).map(|()| None),
        SettingsLocation::Workspace(path) => *path,
    };
    let mut input = json!({"path": path, "content": edit.after, "createDirs": true});
    match &edit.before {
        Some(before) => input["expectedHash"] = Value::from(hex(before.as_bytes())),
        None => input["ifExists"] = Value::from("fail"),
    }
    let backend = Backend::here(open_in(read_settings(folder)?, folder).await?);
    let call = init::write(&backend, path, input).await;
    backend.leave().await?;
    call?.map(Some).with_context(|| format!("{path} was made by somebody else just now; run this again"))
}

/// What was said, is asked for now, or holds already; a yes where nobody is there to say anything.
async fn may_approve(args: &Args, settings: &Settings) -> MayApprove {
    let as_it_is = settings.client.may_approve;
    let said = match args.client_may_approve {
        Some(said) => Some(said),
        None if Person::at_the_terminal() == Person::Terminal => ask(args.client).await,
        None => None,
    };
    match said {
        Some(YesNo::No) => MayApprove::Nothing,
        Some(YesNo::Yes) => as_it_is.max(MayApprove::Harmless),
        None => as_it_is,
    }
}

async fn ask(client: McpClient) -> Option<YesNo> {
    let mut lines = TerminalLines::new();
    let title = client.title();
    loop {
        let prompt = format!(
            "{STRONG}May you approve calls in {title}?{STRONG:#} All but what destroys and what is flagged. [Y]es [n]o "
        );
        match lines.next(&prompt).await?.trim().to_lowercase().as_str() {
            "" | "y" | "yes" => return Some(YesNo::Yes),
            "n" | "no" => return Some(YesNo::No),
            other => anstream::eprintln!("`{other}` is neither y nor n"),
        }
    }
}

/// Writes the setting into the user's own file.
fn record(may_approve: MayApprove, path: &Path) -> Result<()> {
    let line = format!("{} = \"{}\"", MAY_APPROVE.join("."), may_approve.word());
    let put = || {
        let before = edits::read(path)?.unwrap_or_default();
        let after = edits::toml::put_key(&before, MAY_APPROVE, &toml::Value::from(may_approve.word()))?;
        if after == before { Ok(()) } else { edits::replace(path, &after) }
    };
    put().map_err(|err| left(path, &err, &format!("put this into it yourself: {line}")))
}

/// Why a file was not changed, then what to do instead.
fn left(path: &Path, why: &anyhow::Error, instead: &str) -> anyhow::Error {
    anyhow!("cannot change {}: {why:#}; it is left as it is, so {instead}", path.display())
}

fn print(out: &Out, client: McpClient, path: &Path, lines: &str) {
    if out.json {
        return out.document(&json!({"client": client.title(), "file": path, "lines": lines}));
    }
    anstream::eprintln!("{DIM}for {}:{DIM:#}", path.display());
    out.piece(lines);
}

struct InstallReport {
    edit: SettingsEdit,
    call: Option<String>,
    may_approve: MayApprove,
    recorded: PathBuf,
}

fn show(out: &Out, client: McpClient, report: &InstallReport) {
    let InstallReport { edit, call, may_approve, recorded } = report;
    let word = may_approve.word();
    if out.json {
        return out.document(&json!({
            "client": client.title(), "file": edit.path, "became": edit.became.word(), "callId": call,
            "clientMayApprove": word, "settings": recorded,
        }));
    }
    let path = edit.path.display();
    match edit.became {
        InstallResult::Added => out.line(&format!("{ADDED}added{ADDED:#}     haft to {path}")),
        InstallResult::Changed => out.line(&format!("{WARN}changed{WARN:#}   the entry of haft in {path}")),
        InstallResult::Same => out.line(&format!("unchanged {path}  {DIM}haft is in it already{DIM:#}")),
    }
    if let Some(call) = call {
        out.line(&format!("          {DIM}haft undo {call}{DIM:#}"));
    }
    out.line(&format!("{} = \"{word}\"  {DIM}in {}{DIM:#}", MAY_APPROVE.join("."), recorded.display()));
    out.hint(&format!("restart {} to have it read; docs/clients.md says what to know", client.title()));
}

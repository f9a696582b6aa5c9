//! `haft init`

use std::path::Path;

use anyhow::{Context, Result, bail};
use haft_runtime::{CallRequest, End, ErrorCode};
use haft_tools::Manifest;
use serde_json::{Value, json};

use crate::{
    backend::Backend,
    cli::Everywhere,
    commands::{
        mistake, open_in,
        prompt::{Person, see_through},
        read_settings,
    },
    exit::CliExit,
    house::House,
    settings,
    show::{
        Out,
        style::{ADDED, DIM},
    },
    trust::hex,
    workspace,
};

/// A tool to start from; `@NAME@` stands for what it is called.
const MANIFEST: &str = include_str!("init/tool.toml");
/// What the workspace's own tool is called when none is named.
const EXAMPLE: &str = "example";
/// Copies that lie beside a file for a moment when data and workspace are on different file systems.
const IGNORED: &str = ".haft-*";
const GITIGNORE: &str = ".gitignore";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Start a tool of this name instead
    tool: Option<String>,
}

/// One file and what became of it.
struct InitFile {
    path: String,
    /// The call that wrote it; `None` when something is there already.
    call: Option<String>,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let house = open_in(read_settings(&folder)?, &folder).await?;
    let files = match &args.tool {
        Some(name) => {
            check_name(&house, name)?;
            vec![manifest(name)]
        }
        None => vec![("haft.toml".to_owned(), settings::commented()), manifest(EXAMPLE)],
    };
    let backend = Backend::here(house);
    let mut written = Vec::new();
    for (path, content) in files {
        let call = new_file(&backend, &folder, &path, content).await?;
        written.push(InitFile { path, call });
    }
    if args.tool.is_none() {
        written.push(InitFile { path: GITIGNORE.to_owned(), call: ignore_line(&backend, &folder).await? });
    }
    backend.leave().await?;
    show(out, &written);
    Ok(CliExit::Success)
}

fn manifest(name: &str) -> (String, String) {
    (format!(".haft/tools/{name}.toml"), MANIFEST.replace("@NAME@", name))
}

fn check_name(house: &House, name: &str) -> Result<()> {
    Manifest::checked_name(name).map_err(mistake)?;
    if house.project.is_built_in(name) {
        return Err(mistake(format!("`{name}` is one of haft's own tools; choose another name")));
    }
    Ok(())
}

/// Writes a file where nothing is yet.
async fn new_file(backend: &Backend, folder: &Path, path: &str, content: String) -> Result<Option<String>> {
    if folder.join(path).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let input = json!({"path": path, "content": content, "createDirs": true, "ifExists": "fail"});
    write(backend, path, input).await
}

/// Adds the line to `.gitignore` unless it is there. A `.gitignore` that is no plain text file is left alone.
async fn ignore_line(backend: &Backend, folder: &Path) -> Result<Option<String>> {
    let path = folder.join(GITIGNORE);
    if path.symlink_metadata().is_err() {
        return new_file(backend, folder, GITIGNORE, format!("{IGNORED}\n")).await;
    }
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() < 1 << 20);
    let Some(before) = is_file.then(|| std::fs::read_to_string(&path).ok()).flatten() else { return Ok(None) };
    if before.lines().any(|line| line.trim() == IGNORED) {
        return Ok(None);
    }
    let line_end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let content = format!("{before}{line_end}{IGNORED}\n");
    // Whoever changes the file meanwhile loses nothing.
    let input = json!({"path": GITIGNORE, "content": content, "expectedHash": hex(before.as_bytes())});
    write(backend, GITIGNORE, input).await
}

/// Writes by a call like any other, which is recorded and can be undone. The typed command is its yes.
pub(super) async fn write(backend: &Backend, path: &str, input: Value) -> Result<Option<String>> {
    let mut request = CallRequest::new(backend.caller().clone(), "write_file", input);
    request.wait = backend.settings().expire;
    let outcome = see_through(backend, request, &Person::SaysYes).await?;
    match outcome.end {
        End::Success { .. } => Ok(Some(outcome.tool_call_id.to_string())),
        End::Error { error } if error.code == ErrorCode::AlreadyExists => Ok(None),
        End::Error { error } | End::Rejected { error, .. } | End::Cancelled { error } => {
            Err(error).with_context(|| format!("cannot write {path}"))
        }
        End::Pending { .. } => bail!("{path} waits for an answer: `haft approve {}`", outcome.tool_call_id),
    }
}

fn show(out: &Out, written: &[InitFile]) {
    if out.json {
        let (new, left): (Vec<_>, Vec<_>) = written.iter().partition(|file| file.call.is_some());
        let new: Vec<Value> = new.iter().map(|file| json!({"path": file.path, "callId": file.call})).collect();
        let left: Vec<&str> = left.iter().map(|file| file.path.as_str()).collect();
        return out.document(&json!({"written": new, "leftAlone": left}));
    }
    for file in written {
        match &file.call {
            Some(call) => {
                out.line(&format!("{ADDED}wrote{ADDED:#}  {}", file.path));
                out.line(&format!("       {DIM}haft undo {call}{DIM:#}"));
            }
            None => out.line(&format!("left   {}  {DIM}is there already{DIM:#}", file.path)),
        }
    }
    out.line("");
    out.line("None of it is used until you have looked at it: haft trust");
}

//! What a workspace brings, as a person sees it before trusting it.

use haft_sandbox::changes;
use haft_tools::Manifest;

use crate::{
    settings::{Obeyed, WorkspaceSetting},
    show::{
        diff::coloured,
        plain::folded,
        safe::safe,
        style::{ADDED, DIM, PLACE, STRONG, WARN},
        table::{cut, width, wrapped},
        time::{bytes, count},
    },
    trust::{BroughtContent, TOOLS, TrustDifference, WorkspaceTrust},
};

/// How many lines of a diff are enough beside other things.
pub(crate) const SHORT: usize = 12;
/// What stands before each line of a file.
const BAR: &str = "  │ ";

/// One line for each file.
pub(crate) fn files(looked: &WorkspaceTrust, has_a_fault: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let widest = looked.brought.0.keys().map(|path| path.chars().count()).max().unwrap_or(0).min(40);
    for (path, content) in &looked.brought.0 {
        let shown = format!("{:<widest$}", safe(path).replace('\n', " "));
        let about = match content {
            BroughtContent::Text(_) | BroughtContent::Bytes(_) => {
                let size = bytes(content.bytes().unwrap_or_default().len() as u64);
                format!("{size:>8}  {}", meaning(path, has_a_fault(path)))
            }
            BroughtContent::Link(to) => format!("    link  to {}, which a server runs or reads", one_line(to)),
            BroughtContent::Hash(_) => "   large  a program that a server runs".to_owned(),
            BroughtContent::LeftOut(_) => format!("{WARN}left out: {}{WARN:#}", why(content)),
        };
        text.push_str(&format!("  {PLACE}{shown}{PLACE:#}  {about}\n"));
    }
    text
}

/// What each tool runs, and what it wants beyond the workspace.
pub(crate) fn tools(manifests: &[Manifest]) -> String {
    let mut text = String::new();
    let line = |words: &str| wrapped(&one_line(words), width() - 4).replace('\n', "\n    ");
    for manifest in manifests {
        let runs = line(&format!("{} runs {}", manifest.name(), manifest.command()));
        text.push_str(&format!("  {runs}\n"));
        for wish in manifest.wants() {
            text.push_str(&format!("    {WARN}wants {}{WARN:#}\n", line(&wish)));
        }
    }
    text
}

/// What stands in each file, at most so many lines of each.
pub(crate) fn contents(looked: &WorkspaceTrust, most: usize) -> String {
    let mut text = String::new();
    for (path, content) in &looked.brought.0 {
        let Some(bytes) = content.bytes() else { continue };
        text.push_str(&format!("{STRONG}{}{STRONG:#}\n", safe(path).replace('\n', " ")));
        match std::str::from_utf8(bytes) {
            Ok(written) => text.push_str(&lines(written, most)),
            Err(_) => text.push_str(&format!("{BAR}{DIM}{}, not text{DIM:#}\n", size(bytes))),
        }
    }
    text
}

fn one_line(text: &str) -> String {
    safe(text).replace('\n', " ")
}

fn size(content: &[u8]) -> String {
    bytes(content.len() as u64)
}

/// Lines of a file, each behind a bar, so that none can be taken for haft's own words.
fn lines(written: &str, most: usize) -> String {
    let room = width().saturating_sub(BAR.chars().count());
    let mut text = String::new();
    for line in written.lines().take(most) {
        for part in folded(&safe(line), room) {
            text.push_str(&format!("{DIM}{BAR}{DIM:#}{part}\n"));
        }
    }
    let more = written.lines().count().saturating_sub(most);
    if more > 0 {
        text.push_str(&format!("{DIM}{BAR}… {}{DIM:#}\n", count(more, "more line")));
    }
    text
}

/// What a file is for.
fn meaning(path: &str, has_a_fault: bool) -> String {
    let is_tool = path.starts_with(TOOLS) && (path.ends_with(".toml") || path.ends_with(".json"));
    match path {
        "haft.toml" => "settings".to_owned(),
        ".mcp.json" => "MCP servers".to_owned(),
        _ if has_a_fault => format!("{WARN}a tool, never used{WARN:#}"),
        _ if is_tool => "a tool".to_owned(),
        path if path.starts_with(".haft/") => "a file beside them".to_owned(),
        _ => "a file that is run or read".to_owned(),
    }
}

fn why(content: &BroughtContent) -> String {
    match content {
        BroughtContent::LeftOut(why) => safe(why),
        BroughtContent::Text(_) | BroughtContent::Bytes(_) | BroughtContent::Link(_) | BroughtContent::Hash(_) => {
            String::new()
        }
    }
}

/// One line for each setting, with what becomes of it.
pub(crate) fn settings(lines: &[WorkspaceSetting]) -> String {
    let mut text = String::new();
    for line in lines {
        let style = match line.obeyed {
            Obeyed::Tightens => ADDED,
            Obeyed::ChangesNothing => DIM,
            Obeyed::WouldWiden | Obeyed::OnlyTheUser => WARN,
        };
        let setting = cut(&safe(&format!("{} = {}", line.key, line.value)), width() - 2);
        // A long value has a line of its own.
        let gap = if setting.chars().count() > 32 { format!("\n{:35}", "") } else { " ".to_owned() };
        text.push_str(&format!("  {setting:<32}{gap}{style}{}{style:#}\n", line.obeyed.words()));
    }
    text
}

/// What has changed since it was trusted, each file at most so many lines long.
pub(crate) fn diff(looked: &WorkspaceTrust, most: usize) -> String {
    looked.differences().iter().map(|difference| one(difference, most)).collect()
}

fn one(difference: &TrustDifference<'_>, most: usize) -> String {
    let path = safe(difference.path).replace('\n', " ");
    if let Some(content @ BroughtContent::LeftOut(_)) = difference.found {
        return format!("  {WARN}{path}: left out now, because {}{WARN:#}\n", why(content));
    }
    if let Some(BroughtContent::Link(to)) = difference.found {
        let before = match difference.trusted {
            Some(BroughtContent::Link(from)) => format!("before to {}", one_line(from)),
            Some(_) => "before no link".to_owned(),
            None => "new".to_owned(),
        };
        return format!("  {WARN}{path}: a link to {} ({before}){WARN:#}\n", one_line(to));
    }
    let bytes = |content: Option<&'_ BroughtContent>| content.and_then(BroughtContent::bytes).map(<[u8]>::to_vec);
    match changes::diff(&path, bytes(difference.trusted).as_deref(), bytes(difference.found).as_deref()) {
        Some(diff) => coloured(&diff, most).lines().map(|line| format!("  {line}\n")).collect(),
        None => format!("  {path}: changed, and not text\n"),
    }
}

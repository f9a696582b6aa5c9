//! `haft help`

use anyhow::Result;
use haft_runtime::nearest;

use crate::{
    cli::program,
    commands::mistake,
    exit::CliExit,
    settings::listed,
    show::{Out, pager::page, style::STRONG, table::width},
};

/// What can be read about, beside the commands.
pub(crate) const TOPICS: &[(&str, &str)] = &[
    ("calls", include_str!("../help/calls.md")),
    ("approvals", include_str!("../help/approvals.md")),
    ("changes", include_str!("../help/changes.md")),
    ("commands", include_str!("../help/commands.md")),
    ("mcp", include_str!("../help/mcp.md")),
    ("policy", include_str!("../help/policy.md")),
    ("remote", include_str!("../help/remote.md")),
    ("servers", include_str!("../help/servers.md")),
    ("trust", include_str!("../help/trust.md")),
    ("settings", include_str!("../help/settings.md")),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A topic (calls, approvals, changes, commands, mcp, policy, remote, servers, trust, settings) or a command
    #[arg(value_name = "TOPIC | COMMAND")]
    about: Vec<String>,
}

pub(crate) fn run(out: &Out, args: &Args) -> Result<CliExit> {
    let about: Vec<String> = args.about.iter().map(|word| word.to_lowercase()).collect();
    let command = command_help(&about);
    let topic = about.first().filter(|_| about.len() == 1).and_then(|word| topic(word));
    let text = match (topic, command) {
        (None, None) => {
            out.failed(&mistake(unknown(&about.join(" "))));
            return Ok(CliExit::Usage);
        }
        (Some(topic), Some(command)) => format!("{topic}\n{STRONG}The command{STRONG:#}\n\n{command}\n"),
        (Some(text), None) | (None, Some(text)) => format!("{text}\n"),
    };
    page(*out, &text);
    Ok(CliExit::Success)
}

/// A topic as it is read in a terminal.
fn topic(name: &str) -> Option<String> {
    let (_, markdown) = TOPICS.iter().find(|(known, _)| *known == name)?;
    let text = plain(markdown);
    Some(if name == "settings" { format!("{text}\n{}", listed()) } else { text })
}

/// Markdown for a terminal: headings stand out, examples are indented.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut in_example = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if in_example {
            text.push_str(&format!("    {line}\n"));
        } else if let Some(heading) = line.strip_prefix("# ").or_else(|| line.strip_prefix("## ")) {
            text.push_str(&format!("{STRONG}{heading}{STRONG:#}\n"));
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

/// What clap knows of a command, or of the program when none is named.
fn command_help(about: &[String]) -> Option<String> {
    let mut program = program();
    program.build();
    let mut command = &mut program;
    for word in about {
        command = command.find_subcommand_mut(word)?;
    }
    let mut command = std::mem::take(command).term_width(width().min(80));
    Some(command.render_long_help().ansi().to_string())
}

fn unknown(about: &str) -> String {
    let program = program();
    let commands = program.get_subcommands().map(clap::Command::get_name);
    let near = nearest(about, TOPICS.iter().map(|(name, _)| *name).chain(commands));
    let hint =
        near.first().map_or_else(|| "`haft help` lists them.".to_owned(), |near| format!("Did you mean `{near}`?"));
    format!("No topic or command is called `{about}`. {hint}")
}

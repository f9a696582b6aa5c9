//! A command on the card: what runs, how it ended and what it said.

use std::time::Duration;

use haft_runtime::{Redactor, ToolError, ToolOutput};
use serde_json::Value;

use crate::show::{
    changes::DetailLevel,
    plain::{Plain, folded, plain, plain_command},
    safe::safe,
    style::{DIM, STRONG, WARN},
    table::width,
    time::{count, took},
};

/// Lines of an output that are shown of its beginning and of its end, before somebody asks for the whole.
const HEAD: usize = 4;
const TAIL: usize = 12;
/// Lines of what explains a command, and of each field beside it, before that.
const EXPLAINED: usize = 8;
const FIELD: usize = 6;

/// What a process is started from.
pub(crate) struct Run<'a> {
    /// The command or the program itself, which is always shown whole.
    text: &'a str,
    /// What the agent says that it is for.
    description: Option<&'a str>,
    /// Everything else that it is given.
    beside: Vec<(&'a String, &'a Value)>,
}

impl<'a> Run<'a> {
    /// The command in an input; `None` when it has none.
    pub(crate) fn of(input: &'a Value) -> Option<Self> {
        let fields = input.as_object()?;
        let (own, text) = ["command", "code"].iter().find_map(|own| Some((*own, fields.get(*own)?.as_str()?)))?;
        let description = fields.get("description").and_then(Value::as_str);
        let beside = fields.iter().filter(|(name, _)| *name != own && *name != "description").collect();
        Some(Self { text, description, beside })
    }

    /// The command that a tool made from its input; `None` when it says of none.
    pub(crate) fn made_from(input: &'a Value, output: &'a ToolOutput) -> Option<Self> {
        let text = output.metadata.get("command")?.as_str()?;
        let variables = output.metadata.get_key_value("variables");
        let beside = input.as_object().into_iter().flatten().chain(variables).collect();
        Some(Self { text, description: None, beside })
    }

    /// What of it to look at twice, where that can be read.
    pub(crate) fn worries(&self) -> Vec<String> {
        let language = self.beside.iter().find(|(name, _)| *name == "language");
        let is_shell = language.is_none_or(|(_, language)| *language == "bash");
        if is_shell { haft_tools::worries(self.text) } else { Vec::new() }
    }

    /// What runs, then what the agent says of it, then what it is given, then what the words of it mean.
    pub(crate) fn shown(&self, explained: &[String], depth: DetailLevel) -> String {
        let Plain { text, marked } = plain_command(self.text);
        let mut shown = STRONG.render().to_string() + &lines("$ ", &text) + &STRONG.render_reset().to_string();
        if marked > 0 {
            let (characters, are) = (count(marked, "character"), if marked == 1 { "is" } else { "are" });
            let words = "written out: invisible, or not what it looks like";
            shown.push_str(&format!("{WARN}{characters} {are} {words}{WARN:#}\n"));
        }
        if let Some(description) = self.description {
            let words = lines("", &safe(description).replace('\n', " "));
            shown.push_str(&format!("{DIM}the agent says:{DIM:#}\n{words}"));
        }
        for (name, value) in &self.beside {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let value = lines("  ", &plain_command(&value).text);
            let name = safe(name);
            match value.lines().count() {
                0 | 1 => shown.push_str(&format!("{DIM}{name}:{DIM:#} {}\n", value.trim())),
                _ => shown.push_str(&format!("{DIM}{name}:{DIM:#}\n{}", within(&value, FIELD, depth))),
            }
        }
        let more: Vec<String> = explained.iter().filter(|line| self.is_news(line)).map(|line| safe(line)).collect();
        if !more.is_empty() {
            shown.push_str(&within(&lines("· ", &more.join("\n")), EXPLAINED, depth));
        }
        shown
    }

    /// Whether a line says more than the command does.
    fn is_news(&self, line: &str) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        !line.trim().is_empty() && !words(self.text).contains(&words(line))
    }
}

/// How a command ended and what it said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CommandSummary {
    /// Absent when it was stopped.
    pub(crate) exit_code: Option<i64>,
    pub(crate) output: String,
    took: Option<Duration>,
    signal: Option<i64>,
    /// What it made and nobody can commit, and what it could not change.
    left_out: Vec<String>,
    /// What may help where it failed.
    hint: Option<String>,
}

impl CommandSummary {
    /// What a tool says of the process that it ran; `None` when it ran none.
    pub(crate) fn of(output: &ToolOutput) -> Option<Self> {
        let (exit_code, said) = output.process()?;
        let told = &output.structured;
        let left_out = told["leftOut"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            exit_code: Some(exit_code),
            output: said.to_owned(),
            took: told["durationMs"].as_u64().or(told["duration"].as_u64()).map(Duration::from_millis),
            signal: told["signal"].as_i64(),
            left_out: left_out.map(str::to_owned).collect(),
            hint: told["hint"].as_str().map(str::to_owned),
        })
    }

    /// What is left of one that was stopped; `None` when nothing had been started.
    pub(crate) fn stopped(error: &ToolError) -> Option<Self> {
        let said = |stream: &str| error.details.get(stream).and_then(Value::as_str);
        let output = [said("stdout")?, said("stderr")?].concat();
        Some(Self { output, ..Self::default() })
    }

    /// `exit 3 after 2.1s`.
    pub(crate) fn words(&self) -> String {
        let how = match (self.exit_code, self.signal) {
            (_, Some(signal)) => format!("{WARN}ended by signal {signal}{WARN:#}"),
            (Some(0), None) => "exit 0".to_owned(),
            (Some(code), None) => format!("{WARN}exit {code}{WARN:#}"),
            (None, None) => format!("{WARN}stopped{WARN:#}"),
        };
        self.took.map_or_else(|| how.clone(), |lasted| format!("{how} after {}", took(lasted)))
    }

    /// How it ended, and the beginning and the end of what it said. `all` says how to see the rest.
    pub(crate) fn shown(&self, rung: Option<&str>, view: &ViewOptions<'_>) -> String {
        let rung = rung.map_or_else(String::new, |rung| format!(", isolation {rung}"));
        let silent = if self.output.trim().is_empty() { ", no output" } else { "" };
        let mut shown = format!("{}{rung}{silent}\n", self.words());
        if silent.is_empty() {
            shown.push_str(&self.said(view));
        }
        shown + &self.beside_it()
    }

    /// What nobody can commit, what it could not change, and what may help.
    pub(crate) fn beside_it(&self) -> String {
        let told = |what: &String| match what.contains("` exists, but ") {
            true => lines("", &safe(what)),
            false => format!("{WARN}left out:{WARN:#} {}", lines("", &safe(what)).trim_start()),
        };
        let hint = self.hint.as_ref().map(|hint| lines("", &safe(hint)));
        self.left_out.iter().map(told).chain(hint).collect()
    }

    fn said(&self, view: &ViewOptions<'_>) -> String {
        let output = self.output.strip_suffix('\n').unwrap_or(&self.output);
        if view.depth == DetailLevel::Whole {
            return barred(&plain(output).text);
        }
        let all: Vec<&str> = output.lines().collect();
        let out = all.len().saturating_sub(HEAD + TAIL);
        // One line that is left out takes no less room than the words that say so.
        if out <= 1 {
            return brief(&all, view.redactor);
        }
        let (head, rest) = all.split_at(HEAD);
        let (head, tail) = (brief(head, view.redactor), brief(&rest[out..], view.redactor));
        format!("{head}{DIM}{BAR}… {}: {}{DIM:#}\n{tail}", count(out, "more line"), view.all)
    }
}

/// Lines that a command has said, each cut to one of the terminal, without secrets.
fn brief(said: &[&str], redactor: &Redactor) -> String {
    let room = width().saturating_sub(BAR.chars().count() + 1);
    let cut = |line: &str| {
        let parts = folded(&safe(line), room);
        let more = if parts.len() > 1 { "…" } else { "" };
        barred(&format!("{}{more}", parts[0].trim_end()))
    };
    redactor.text(&said.join("\n")).lines().map(cut).collect()
}

/// How something is looked at.
pub(crate) struct ViewOptions<'a> {
    pub(crate) depth: DetailLevel,
    pub(crate) redactor: &'a Redactor,
    /// What shows all of it.
    pub(crate) all: String,
}

/// What stands before every line that a command has said, so that none can be taken for haft's own.
const BAR: &str = "  │ ";

fn barred(text: &str) -> String {
    let room = width().saturating_sub(BAR.chars().count());
    folded(text, room).iter().map(|line| format!("{DIM}{BAR}{DIM:#}{line}\n")).collect()
}

/// The text in lines that fit, indented beneath their sign.
fn lines(sign: &str, text: &str) -> String {
    let indent = sign.chars().count() + 2;
    let mut shown = String::new();
    for (at, line) in folded(text, width().saturating_sub(indent)).iter().enumerate() {
        let sign = if at == 0 { format!("  {sign}") } else { " ".repeat(indent) };
        shown.push_str(&format!("{sign}{line}\n"));
    }
    shown
}

/// The first lines of a text, unless the whole is wanted.
fn within(text: &str, most: usize, depth: DetailLevel) -> String {
    let all: Vec<&str> = text.lines().collect();
    if depth == DetailLevel::Whole || all.len() <= most + 1 {
        return text.to_owned();
    }
    let kept: String = all.iter().take(most).map(|line| format!("{line}\n")).collect();
    format!("{kept}{DIM}    … {}{DIM:#}\n", count(all.len() - most, "more line"))
}

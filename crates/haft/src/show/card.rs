//! The approval card: what a yes covers, computed by haft, nothing hidden.

use haft_runtime::{
    About, ChangeList, Choice, Described, Evidence, Field, FieldKind, Form, Isolation, Question, Redactor, ToolOutput,
};

use crate::show::{
    changes::{DetailLevel, changes_text},
    ran::{CommandSummary, Run, ViewOptions},
    safe::safe,
    style::{DIM, STRONG, WARN},
    table::{width, wrapped},
    time::ago,
};

/// What stands before the line that says what a command may reach, where a tool tells so.
const REACHES: &str = "reaches ";

/// The card of one question. What a yes commits or runs is shown as it is; secrets in what can only be described are
/// marked, and the whole card shows them too: nothing that is approved is out of sight.
pub(crate) fn card(question: &Question, depth: DetailLevel, redactor: &Redactor) -> String {
    let (tool, call, by) = (&question.tool, &question.call, safe(&question.asked_by.name));
    let mut text = format!("{STRONG}{tool}{STRONG:#} {DIM}{call}{DIM:#}  asked {} by {by}\n", ago(question.asked_at));
    let view = ViewOptions { depth, redactor, all: format!("haft changes {call} --all") };
    text.push_str(&match &question.about {
        About::Approval(Evidence::Staged { output, changes, isolation, .. }) => {
            staged(question, (output, changes, *isolation), &view)
        }
        About::Approval(Evidence::Plain(described)) => plain(question, described, &view),
        About::Form(form) => fields(form),
        About::Result(awaited) => {
            let message = wrapped(&safe(&awaited.message), width());
            format!("waits for a result: {message}\n{DIM}it must fit: {}{DIM:#}\n", safe(&awaited.schema.to_string()))
        }
    });
    text.push_str(&format!("{DIM}{}{DIM:#}\n", sentence(&format!("why asked: {}", question.reason))));
    if let Some(nearly) = &question.nearly {
        text.push_str(&format!("{DIM}{}{DIM:#}\n", sentence(nearly)));
    }
    text
}

/// A call that is done but for the commit.
fn staged(
    question: &Question,
    (output, changes, isolation): (&ToolOutput, &ChangeList, Option<Isolation>),
    view: &ViewOptions<'_>,
) -> String {
    let ended = CommandSummary::of(output);
    let mut text = String::new();
    let run = Run::made_from(&question.input, output).or_else(|| Run::of(&question.input));
    if let Some(run) = run.filter(|_| ended.is_some()) {
        text.push_str(&run.shown(&run.worries(), view.depth));
    }
    if let Some(ended) = &ended {
        text.push_str(&ended.shown(isolation.map(Isolation::word), view));
    }
    text.push_str(&changes_text(changes, view.depth));
    let covered = match (changes.0.len(), &ended) {
        (0, _) => "a yes hands out what it said; it has changed nothing".to_owned(),
        (_, None) => "a yes commits exactly this; it can be undone later".to_owned(),
        (1, Some(_)) => "a yes commits this path; the command does not run again; it can be undone later".to_owned(),
        (paths, Some(_)) => {
            format!("a yes commits these {paths} paths; the command does not run again; it can be undone later")
        }
    };
    text + &format!("{}\n", wrapped(&covered, width()))
}

/// A call that can only be described.
fn plain(question: &Question, described: &Described, view: &ViewOptions<'_>) -> String {
    let preview = described.preview.as_deref();
    let Some((run, rung)) = Run::of(&question.input).zip(described.isolation) else {
        let undo = if described.runs_aside { "only files can be brought back" } else { "cannot be undone" };
        let text = as_it_came(question, preview, view);
        return text + &format!("{WARN}it cannot be previewed further, and {undo}{WARN:#}\n");
    };
    let lines = || preview.unwrap_or_default().lines();
    let explained: Vec<String> = lines().filter(|line| !line.starts_with(REACHES)).map(str::to_owned).collect();
    let reaches = lines().find_map(|line| line.strip_prefix(REACHES));
    let mut text = run.shown(&explained, view.depth);
    let network = reaches.map_or_else(String::new, |reaches| format!(" with the network on: {}", safe(reaches)));
    let (before, yes) = if described.runs_aside {
        (
            "it has not run yet, and cannot be previewed; only the files that it changes can be brought back",
            format!("a yes runs it{network}; it commits what that changes, but flagged paths stay staged"),
        )
    } else {
        (
            "it has not run yet: it cannot be previewed, and what it does cannot be undone",
            format!("a yes runs it{network}, in the workspace itself; what would steer haft or git stays staged"),
        )
    };
    let rung = format!("it would run on the rung {}", rung.word());
    for (style, line) in [(DIM, rung.as_str()), (WARN, before), (WARN, yes.as_str())] {
        text.push_str(&format!("{style}{}{style:#}\n", wrapped(line, width())));
    }
    text
}

/// What a tool wants to know in the middle of its work.
fn fields(form: &Form) -> String {
    let mut text = format!("{}\n", wrapped(&safe(&form.message), width()));
    for Field { name, title, description, default, required, kind } in form.fields() {
        let what = match kind {
            FieldKind::Text => "text".to_owned(),
            FieldKind::Number => "number".to_owned(),
            FieldKind::Integer => "whole number".to_owned(),
            FieldKind::YesOrNo => "yes or no".to_owned(),
            FieldKind::One(choices) => format!("one of {}", listed(&choices)),
            FieldKind::Any(choices) => format!("any of {}", listed(&choices)),
        };
        let about = [title, description].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let must = if required { "" } else { ", may be left out" };
        let default = default.map_or_else(String::new, |value| format!(", {value} if left out"));
        let line = format!("{name} ({what}{}) {about}", if default.is_empty() { must } else { &default });
        text.push_str(&format!("  {}\n", wrapped(&safe(line.trim_end()), width().saturating_sub(2))));
    }
    text
}

fn listed(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// A choice with the name that people read.
pub(crate) fn choice_words(choice: &Choice) -> String {
    match &choice.title {
        Some(title) => format!("{} ({})", safe(title), safe(&choice.value)),
        None => safe(&choice.value),
    }
}

/// The input, and what the tool itself says of it.
fn as_it_came(question: &Question, preview: Option<&str>, view: &ViewOptions<'_>) -> String {
    let exact = (question.input.clone(), preview.map(str::to_owned));
    let shown = match view.depth {
        DetailLevel::Names | DetailLevel::Short => {
            (view.redactor.value(&exact.0), preview.map(|text| view.redactor.text(text).into_owned()))
        }
        DetailLevel::Whole => exact.clone(),
    };
    let pretty = serde_json::to_string_pretty(&shown.0).unwrap_or_default();
    let mut text = format!("{}\n", safe(&pretty));
    if let Some(preview) = &shown.1 {
        text.push_str(&format!("{}\n", safe(preview)));
    }
    if shown != exact {
        text.push_str(&format!(
            "{WARN}[redacted] stands for what looks like a secret; d at the prompt shows it{WARN:#}\n"
        ));
    }
    text
}

fn sentence(text: &str) -> String {
    wrapped(&safe(text).replace('\n', " "), width())
}

#[cfg(test)]
mod tests {
    use haft_runtime::{
        About, CallId, CallerId, CallerRef, Described, Effect, Evidence, Isolation, Question, Redactor,
    };
    use jiff::Timestamp;
    use serde_json::json;

    use super::card;
    use crate::show::changes::DetailLevel;

    fn question(input: serde_json::Value, described: Described) -> Question {
        Question {
            called_as: None,
            call: CallId::new(),
            number: 1,
            tool: "push".into(),
            input,
            effect: Effect::Write,
            reason: "it acts outside".into(),
            nearly: None,
            about: About::Approval(Evidence::Plain(described)),
            asked_by: CallerRef { id: CallerId::owner(), name: "anna".into() },
            workspace: None,
            asked_at: Timestamp::now(),
            expires_at: Timestamp::now(),
        }
    }

    #[test]
    fn a_secret_that_can_only_be_described_is_marked_and_can_be_seen() {
        let input = json!({"to": "main", "apiKey": "abc"});
        let question = question(input, Described::showing("push --token abc123def"));
        let short = card(&question, DetailLevel::Short, &Redactor::default());
        assert!(short.contains("\"to\": \"main\"") && short.contains("\"apiKey\": \"[redacted]\""), "{short}");
        assert!(!short.contains("abc123def") && short.contains("d at the prompt shows it"), "{short}");
        let whole = card(&question, DetailLevel::Whole, &Redactor::default());
        assert!(whole.contains("\"abc\"") && whole.contains("abc123def") && !whole.contains("redacted"), "{whole}");
    }
    #[test]
    fn a_command_that_cannot_run_aside_says_so_before_the_yes() {
        let described =
            Described { isolation: Some(Isolation::Landlock), ..Described::showing("make all\nrm deletes x") };
        let input = json!({"command": "make all; rm x --token=abc123def", "cwd": "sub"});
        let shown = card(&question(input, described), DetailLevel::Short, &Redactor::default());
        let shown = anstream::adapter::strip_str(&shown).to_string();
        let (_, rest) = shown.split_once('\n').unwrap();
        assert_eq!(
            rest,
            "  $ make all; rm x --token=abc123def\ncwd: sub\n  · rm deletes x\n\
             it would run on the rung landlock\n\
             it has not run yet: it cannot be previewed, and what it does cannot be undone\n\
             a yes runs it, in the workspace itself; what would steer haft or git stays\n\
             staged\nwhy asked: it acts outside\n"
        );
    }
}

//! The approval card: what a yes covers, computed by haft, nothing hidden.

use haft_runtime::{
    About, ChangeList, ChangeState, Choice, Described, Direction, Evidence, Field, FieldKind, Form, Isolation,
    Question, Redactor, Structured, ToolOutput,
};

use crate::show::{
    changes::{DetailLevel, asked_changes_text, counted, paths},
    plain::plain_command,
    ran::{CommandSummary, Run, ViewOptions},
    safe::safe,
    style::{DIM, STRONG, WARN},
    subject::subject,
    table::{cut, width, wrapped},
    time::ago,
};

/// A card of more lines than this repeats above the question what it is about.
const LONG: usize = 16;
/// How many bytes of an input are shown at first.
const LONG_INPUT: usize = 8 << 10;
/// How many flagged paths are named there.
const NAMED: usize = 3;

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
            staged((question, Purpose::of(question)), (output, changes, *isolation), &view)
        }
        About::Approval(Evidence::Plain(described)) => plain(question, described, &view),
        About::Form(form) => fields(form),
        About::Result(awaited) => {
            let message = wrapped(&safe(&awaited.message), width());
            format!("Waits for a result: {message}\n{DIM}Its schema: {}{DIM:#}\n", safe(&awaited.schema.to_string()))
        }
    });
    text.push_str(&format!("{DIM}{}{DIM:#}\n", sentence(&format!("Why asked: {}", question.reason))));
    if let Some(nearly) = &question.nearly {
        text.push_str(&format!("{DIM}{}{DIM:#}\n", sentence(nearly)));
    }
    text
}

/// What a yes does with what a card shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Commits what a call has staged.
    Commit,
    /// Takes back what a call had committed.
    Undo,
    /// Brings back what an undo took back.
    Redo,
    /// Does what could only be described.
    Act,
}

impl Purpose {
    /// What a question is for.
    pub(crate) fn of(question: &Question) -> Self {
        let Some(Evidence::Staged { turn, changes, .. }) = question.evidence() else { return Self::Act };
        let was_undone = changes.0.iter().any(|change| change.state == ChangeState::Undone);
        match turn.direction {
            Direction::Undo => Self::Undo,
            Direction::Commit if was_undone => Self::Redo,
            Direction::Commit => Self::Commit,
        }
    }

    /// The words at the prompt.
    pub(crate) fn asks(self) -> &'static str {
        match self {
            Self::Commit => "Commit this?",
            Self::Undo => "Undo this?",
            Self::Redo => "Redo this?",
            Self::Act => "Do this?",
        }
    }
}

/// A call that is done but for the commit.
fn staged(
    (question, purpose): (&Question, Purpose),
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
    text.push_str(&asked_changes_text(changes, view.depth));
    if text.lines().count() > LONG {
        text.push_str(&in_short(question, changes, ended.as_ref()));
    }
    let covered = match (purpose, changes.0.len()) {
        (Purpose::Undo, _) => "A yes undoes exactly this. `haft redo` brings it back.".to_owned(),
        (Purpose::Redo, _) => "A yes brings exactly this back. It can be undone again.".to_owned(),
        (Purpose::Commit | Purpose::Act, 0) => "It changed no files. A yes gives its output to the caller.".to_owned(),
        (Purpose::Commit | Purpose::Act, _) => {
            format!("A yes {}. It can be undone later.", done(changes, ended.is_some()))
        }
    };
    text + &format!("{}\n", wrapped(&covered, width()))
}

/// What a yes does, after "A yes".
fn done(changes: &ChangeList, ran: bool) -> String {
    let told = changes.told();
    let acts = told.iter().filter_map(|change| change.summary.as_deref()).map(|summary| match summary {
        switch if switch.starts_with("switch ") => switch.replacen("switch", "switches", 1),
        made => format!("makes {made}"),
    });
    let acts: Vec<String> = acts.map(|act| safe(&act)).collect();
    let rest = match (paths(changes).len(), ran) {
        (0, _) => None,
        (_, false) => Some("commits exactly this".to_owned()),
        (1, true) if acts.is_empty() => Some("commits this path. The command does not run again".to_owned()),
        (1, true) => Some("changes one more path. The command does not run again".to_owned()),
        (many, true) if !acts.is_empty() => Some(format!("changes {many} more paths. The command does not run again")),
        (many, true) => Some(format!("commits these {many} paths. The command does not run again")),
    };
    acts.into_iter().chain(rest).collect::<Vec<_>>().join(" and ")
}

/// What a long card is about, for whoever sees only its end.
fn in_short(question: &Question, changes: &ChangeList, ended: Option<&CommandSummary>) -> String {
    let what = subject(&question.input).map_or_else(String::new, |what| format!(" {}", safe(&what)));
    let exit = ended.map_or_else(String::new, |ended| format!("{}; ", ended.words()));
    let head = cut(&format!("In short: {}{what}", question.tool), width());
    let mut text = format!("{STRONG}{head}{STRONG:#}\n{exit}{}\n", wrapped(&safe(&counted(changes)), width()));
    let flagged: Vec<&str> =
        changes.0.iter().filter(|change| !change.flags.is_empty()).map(|change| change.path.as_str()).collect();
    if !flagged.is_empty() {
        let named = flagged.iter().take(NAMED).map(|path| plain_command(path).text).collect::<Vec<_>>().join(", ");
        let more = flagged.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let look = wrapped(&format!("look twice at {named}{more}").replace('\n', "⟨newline⟩"), width());
        text.push_str(&format!("{WARN}{look}{WARN:#}\n"));
    }
    text
}

/// A call that can only be described.
fn plain(question: &Question, described: &Described, view: &ViewOptions<'_>) -> String {
    let preview = described.preview.as_deref();
    let Some((run, rung)) = Run::of(&question.input).zip(described.isolation) else {
        let undo = if described.runs_aside { "Only files can be undone." } else { "It cannot be undone." };
        let text = as_it_came(question, preview, view);
        return text + &format!("{WARN}This is all that can be shown before. {undo}{WARN:#}\n");
    };
    let lines = || preview.unwrap_or_default().lines();
    let explained: Vec<String> = lines().filter(|line| !line.starts_with(REACHES)).map(str::to_owned).collect();
    let reaches = lines().find_map(|line| line.strip_prefix(REACHES));
    let mut text = run.shown(&explained, view.depth);
    let network = reaches.map_or_else(String::new, |reaches| format!(" with the network on: {}", safe(reaches)));
    let (before, yes) = if described.runs_aside {
        (
            "It has not run yet, so its changes cannot be shown. Only changes of files can be undone.",
            format!("A yes runs it{network}, and commits what it changes. Flagged paths stay staged."),
        )
    } else {
        (
            "It has not run yet, so its changes cannot be shown. What it does cannot be undone.",
            format!("A yes runs it{network}, in the workspace itself. What steers haft or git stays staged."),
        )
    };
    let rung = format!("It would run in a sandbox (isolation: {}).", rung.word());
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
        let must = if required { "" } else { ", optional" };
        let default = default.map_or_else(String::new, |value| format!(", default {value}"));
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
    let (shown, brief) = match view.depth {
        DetailLevel::Names | DetailLevel::Short => {
            let shown = (view.redactor.value(&exact.0), preview.map(|text| view.redactor.text(text).into_owned()));
            let brief = Structured::from(shown.0.clone()).brief(LONG_INPUT);
            (shown, brief.map(|(brief, _)| brief.into_value()))
        }
        DetailLevel::Whole => (exact.clone(), None),
    };
    let pretty = serde_json::to_string_pretty(brief.as_ref().unwrap_or(&shown.0)).unwrap_or_default();
    let mut text = format!("{}\n", safe(&pretty));
    if let Some(preview) = &shown.1 {
        text.push_str(&format!("{}\n", safe(preview)));
    }
    if brief.is_some() {
        text.push_str(&format!(
            "{WARN}The input is long and shortened here; d at the prompt shows all of it{WARN:#}\n"
        ));
    }
    if shown != exact {
        text.push_str(&format!("{WARN}[redacted] hides what looks like a secret; d at the prompt shows it{WARN:#}\n"));
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
    fn a_long_input_is_shortened_until_all_of_it_is_wanted() {
        let input = json!({"to": "main", "text": "0123456789".repeat(10_000)});
        let question = question(input, Described::default());
        let short = card(&question, DetailLevel::Short, &Redactor::default());
        assert!(short.len() < 10_000 && short.contains("omitted") && short.contains("\"to\": \"main\""), "{short}");
        assert!(short.contains("d at the prompt shows all of it"), "{short}");
        assert!(card(&question, DetailLevel::Whole, &Redactor::default()).len() > 100_000);
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
             It would run in a sandbox (isolation: landlock).\n\
             It has not run yet, so its changes cannot be shown. What it does cannot be\nundone.\n\
             A yes runs it, in the workspace itself. What steers haft or git stays staged.\n\
             Why asked: it acts outside\n"
        );
    }
}

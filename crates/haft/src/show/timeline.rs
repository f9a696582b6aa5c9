//! One call's whole story: who asked for what, what was asked and answered, what it did, and when.

use haft_runtime::{
    About, Answer, Answered, CallEvent, CallId, CallRecord, ChangeList, End, Outcome, Question, Redactor, Source,
    ToolOutput,
};
use haft_store::CallRow;
use jiff::Timestamp;

use crate::{
    commands::{answer::told, changes::status},
    show::{
        changes::change_line,
        safe::safe,
        style::{DIM, PLACE, STRONG, WRONG},
        table::{cut, width, wrapped},
        time::{ago, count},
    },
};

/// Where the text of a row begins.
const INDENT: usize = 10;
/// How many changes are listed.
const CHANGES: usize = 40;
/// Lines of an input, and of the beginning and the end of an output.
const INPUT: usize = 24;
const HEAD: usize = 24;
const TAIL: usize = 12;

/// Everything that is known of one call.
pub(crate) struct Story {
    pub(crate) record: CallRecord,
    pub(crate) events: Vec<(i64, Timestamp, CallEvent)>,
    pub(crate) question: Option<Question>,
    pub(crate) answer: Option<Answered>,
    pub(crate) relatives: Vec<CallRow>,
}

/// The story in rows, as wide as the terminal, without secrets.
pub(crate) fn timeline(story: &Story, redactor: &Redactor) -> String {
    let mut page = Page { text: String::new(), redactor };
    page.head(&story.record);
    page.question(story);
    page.events(story);
    if let Some(outcome) = &story.record.outcome {
        page.ending(outcome);
    }
    for child in &story.relatives {
        let status = child.status.as_deref().unwrap_or("running");
        page.row("child", &format!("{} {} {status}, {}", child.id, relation(child), ago(child.started_at)));
    }
    page.text
}

/// How the reason begins with which a question is closed that nobody answered in time.
const EXPIRED: &str = "Approval expired";

/// Whether something was left out.
#[derive(PartialEq, Eq)]
enum Completeness {
    Whole,
    InPart,
}

/// Rows that were written so far.
struct Page<'a> {
    text: String,
    redactor: &'a Redactor,
}

impl Page<'_> {
    fn head(&mut self, record: &CallRecord) {
        let opening = &record.opening;
        let (tool, call) = (safe(&opening.tool), &record.call);
        let exit = record.outcome.as_ref().and_then(Outcome::exit_code).filter(|code| *code != 0);
        let exit = exit.map_or_else(String::new, |code| format!(", exit {code}"));
        self.text.push_str(&format!("{STRONG}{tool}{STRONG:#}  {PLACE}{call}{PLACE:#}  {}{exit}\n", status(record)));
        let by = format!("by {} ({})", opening.caller.who, door(opening.caller.source));
        self.row("asked", &format!("{} ({}) {by}", moment(opening.at), ago(opening.at)));
        if let Some(workspace) = record.scope.workspace() {
            self.row("in", workspace.as_str());
        }
        if let Some(parent) = &opening.parent {
            self.row("parent", parent.as_str());
        }
        if let Some(turn) = record.turn.as_ref().filter(|turn| turn.of != record.call) {
            self.row("about", &format!("the changes of {}", turn.of));
        }
        let input = serde_json::to_string_pretty(&self.redactor.value(&opening.input)).unwrap_or_default();
        self.block("input", &input, (INPUT, 0));
    }

    fn question(&mut self, story: &Story) {
        let Some(question) = &story.question else { return };
        match &question.about {
            About::Form(form) => self.row("question", &form.message),
            About::Result(awaited) => self.row("waits for", &awaited.message),
            About::Approval(_) => {
                let effect = serde_json::to_value(question.effect).unwrap_or_default();
                let effect = effect.as_str().unwrap_or_default().to_owned();
                self.row("question", &format!("{} (effect {effect})", question.reason));
            }
        }
        if let Some(nearly) = &question.nearly {
            self.row("", nearly);
        }
        match &story.answer {
            Some(answer) => self.row("answer", &told(answer)),
            None => self.row("answer", &format!("none yet; open until {}", moment(question.expires_at))),
        }
    }

    /// What happened, each with the time since the call came in.
    fn events(&mut self, story: &Story) {
        let begin = story.record.opening.at;
        for (_, at, event) in &story.events {
            if matches!(event, CallEvent::Staged { changes, .. } if changes.0.is_empty()) {
                continue;
            }
            let after = at.duration_since(begin).as_secs_f64().max(0.0);
            let words = happened(event, &story.record.call, self.redactor);
            let happened = cut(&self.redactor.text(&words), width().saturating_sub(INDENT));
            let after = format!("+{after:.3}s");
            self.text.push_str(&format!("{DIM}{after:<INDENT$}{DIM:#}{}\n", safe(&happened)));
        }
    }

    fn ending(&mut self, outcome: &Outcome) {
        if let Some(finished) = outcome.finished_at {
            let took = outcome.execution_time_ms;
            self.row("ended", &format!("{} ({}), {took} ms of work", moment(finished), ago(finished)));
        }
        if let Some(error) = outcome.end.error() {
            let message = self.redactor.text(&error.message).into_owned();
            let text = wrapped(&safe(&format!("{} {message}", error.code)), self.room());
            self.text.push_str(&format!("{WRONG}{:<INDENT$}{WRONG:#}{}\n", "error", indented(&text)));
        }
        for change in outcome.changes.iter().flat_map(|changes| &changes.0).take(CHANGES) {
            self.text.push_str(&format!("{:INDENT$}{}", "", change_line(change)));
        }
        let more = outcome.changes.as_ref().map_or(0, |changes| changes.0.len()).saturating_sub(CHANGES);
        if more > 0 {
            self.row("", &format!("… {more} more; haft changes {}", outcome.tool_call_id));
        }
        if let End::Success { result } = &outcome.end {
            self.output(result, outcome);
        }
    }

    fn output(&mut self, result: &ToolOutput, outcome: &Outcome) {
        if result.content.is_empty() {
            return;
        }
        // What changed, and how to undo it, stands around it as people read it.
        let text = result.content.strip_suffix(&outcome.change_note()).unwrap_or(&result.content);
        let text = self.redactor.text(text).into_owned();
        let shown = self.block("output", &text, (HEAD, TAIL));
        if shown == Completeness::InPart || result.metadata.contains_key("total_chars") {
            self.row("all of it", &format!("haft call result_query --call-id {}", outcome.tool_call_id));
        }
    }

    /// One row; what is too long goes on beneath.
    fn row(&mut self, name: &str, text: &str) {
        let text = wrapped(&safe(&self.redactor.text(text)), self.room());
        self.text.push_str(&format!("{STRONG}{name:<INDENT$}{STRONG:#}{}\n", indented(&text)));
    }

    /// Many lines: so many from the beginning and from the end.
    fn block(&mut self, name: &str, text: &str, (head, tail): (usize, usize)) -> Completeness {
        let lines: Vec<&str> = text.lines().collect();
        let fits = lines.len() <= head + tail + 1;
        let shown = |line: &&str| safe(&cut(line, self.room()));
        let mut kept: Vec<String> = lines.iter().take(if fits { lines.len() } else { head }).map(shown).collect();
        if !fits {
            kept.push(format!("{DIM}… {} left out{DIM:#}", count(lines.len() - head - tail, "line")));
            kept.extend(lines.iter().skip(lines.len() - tail).map(shown));
        }
        self.text.push_str(&format!("{STRONG}{name:<INDENT$}{STRONG:#}{}\n", indented(&kept.join("\n"))));
        if fits { Completeness::Whole } else { Completeness::InPart }
    }

    fn room(&self) -> usize {
        width().saturating_sub(INDENT)
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', &format!("\n{:INDENT$}", ""))
}

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn door(source: Source) -> &'static str {
    match source {
        Source::Cli => "command line",
        Source::Web => "web page",
        Source::Api => "HTTP",
        Source::Link => "a link",
        Source::Mcp => "an MCP client",
        Source::Edit => "an edited input",
        Source::House => "haft itself",
    }
}

/// How another call comes from this one.
fn relation(call: &CallRow) -> String {
    match call.source {
        Source::Edit => "the edited input:".to_owned(),
        Source::Cli | Source::Mcp | Source::Web | Source::Api | Source::Link | Source::House => {
            format!("{}:", safe(&call.tool))
        }
    }
}

/// One event of a call in one line.
fn happened(event: &CallEvent, call: &CallId, redactor: &Redactor) -> String {
    let paths = |changes: &ChangeList| changes.paths().join(", ");
    match event {
        CallEvent::Called { tool, called_as: Some(alias), remove_by: Some(until), .. } => {
            format!("called as {alias}, an old name of {tool} that is understood until {until}")
        }
        CallEvent::Called { tool, called_as: Some(alias), remove_by: None, .. } => {
            format!("called as {alias} ({tool})")
        }
        CallEvent::Called { tool, called_as: None, .. } => format!("called {tool}"),
        CallEvent::Staged { changes, .. } => format!("staged {}", paths(changes)),
        CallEvent::NeedsApproval { reason, .. } => format!("asked: {reason}"),
        CallEvent::Approved { continued_as: Some(child), .. } => format!("input edited, carried on as {child}"),
        CallEvent::Approved { by: Some(by), .. } => format!("approved by {by}"),
        CallEvent::Approved { by: None, .. } => "allowed: it only reads".to_owned(),
        CallEvent::Rejected { reason, .. } if reason.starts_with(EXPIRED) => {
            "expired: nobody answered in time".to_owned()
        }
        CallEvent::Rejected { user_message: Some(words), .. } => format!("rejected: a person said no: “{words}”"),
        CallEvent::Rejected { user_message: None, .. } => "rejected: a person said no".to_owned(),
        CallEvent::Started { attempt } => format!("started, attempt {attempt}"),
        CallEvent::OutputAppended { chunk, .. } => format!("output: {chunk}"),
        CallEvent::Progress { message, .. } => format!("progress: {message}"),
        CallEvent::Asks { form, .. } => format!("asks: {}", form.message),
        CallEvent::Answered { answer: Answer::Fill { values }, by, .. } => {
            format!("answered by {by}: {}", redactor.value(&values.values().clone().into()))
        }
        CallEvent::Answered { answer: Answer::Reject { .. }, by, .. } => format!("declined by {by}"),
        CallEvent::Answered { answer: Answer::Expire, .. } => "nobody answered in time".to_owned(),
        CallEvent::Answered { by, .. } => format!("closed by {by} without an answer"),
        CallEvent::Pending { result: Some(wanted), .. } => {
            format!("waits for a result from outside until {}", moment(wanted.expires_at))
        }
        CallEvent::Pending { pending_tool_call_id: own, result: None } if own == call => {
            "handed back as pending".to_owned()
        }
        CallEvent::Pending { pending_tool_call_id: other, result: None } => {
            format!("handed back, {other} goes on in its place")
        }
        CallEvent::Committed { changes, .. } => format!("committed {}", paths(changes)),
        CallEvent::Undone { changes, .. } => format!("undid {}", paths(changes)),
        CallEvent::Completed { late: true, .. } => "the result came too late, and is kept beside the call".to_owned(),
        CallEvent::Completed { execution_time_ms, late: false } => {
            format!("completed after {execution_time_ms} ms of work")
        }
        CallEvent::Failed { error, late: true } => format!("came too late: {error}"),
        CallEvent::Failed { error, late: false } => format!("failed: {error}"),
        CallEvent::Cancelled { reason } => format!("cancelled: {reason}"),
        CallEvent::Interrupted { recovered } => format!("interrupted: {recovered}"),
    }
}

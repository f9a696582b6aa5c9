//! `diagnostics`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    asking::{AnswerTime, LanguageOutput, LanguageTool},
    error::LanguageServerError,
    server_diagnostic::{ServerDiagnostic, Severity},
    server_state::Needs,
    session::LanguageSession,
    text::Range,
};

/// What helps when nothing could be checked.
const HINT: &str = "(language servers only read the workspace; `shell_exec` can build the project, which shows what is wrong \
                    and writes what is missing, such as `Cargo.lock`)";

pub(crate) struct Diagnostics;

/// Show errors and warnings in a file, as its language server and compiler find them. Use it after an edit. To build or
/// test the project use `shell_exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "path": "src/main.rs" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// In the order in which they stand.
    diagnostics: Vec<Diagnostic>,
    counts: SeverityCounts,
    /// Why the compiler has not checked the file, so that errors may be missing; absent when it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchecked: Option<String>,
    /// What the server complains about as a whole, so that it may have found less than there is.
    #[serde(skip)]
    complaint: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Diagnostic {
    severity: Severity,
    message: String,
    range: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Who found it, such as `rustc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// How many there are of each severity.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct SeverityCounts {
    error: usize,
    warning: usize,
    information: usize,
    hint: usize,
}

impl LanguageTool for Diagnostics {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "diagnostics";
    const NEEDS: Needs = Needs::Checks;

    fn path(input: &Input) -> &str {
        &input.path
    }

    async fn ask(talk: &mut LanguageSession<'_>, _input: &Input) -> Result<Output, LanguageServerError> {
        let pulled = match talk.offered.pull {
            Some(_) => ServerDiagnostic::all(&talk.pull().await?["items"]),
            None => {
                talk.ready &= talk.is_published().await?;
                Vec::new()
            }
        };
        // A server may find some of it by itself, and be told the rest by a compiler that it has started.
        let published = talk.client.heard.borrow().published(&talk.document.address);
        let mut all: Vec<Diagnostic> = Vec::new();
        for found in pulled.into_iter().chain(published) {
            let found = Diagnostic::of(found, talk);
            if !all.contains(&found) {
                all.push(found);
            }
        }
        all.sort_by(|one, other| one.range.cmp(&other.range).then(one.severity.cmp(&other.severity)));
        let (complaint, unchecked) = {
            let heard = talk.client.heard.borrow();
            (heard.complaint(), heard.unchecked())
        };
        let complaint = complaint.map(|said| format!("({} says: {})", talk.offered.name, said.replace('\n', " ")));
        let (path, counts) = (talk.document.place.to_string(), SeverityCounts::of(&all));
        Ok(Output { path, diagnostics: all, counts, unchecked, complaint })
    }
}

impl LanguageOutput for Output {
    fn text(&self, at: AnswerTime) -> String {
        let words = match (self.diagnostics.is_empty(), &self.unchecked, at) {
            (true, None, AnswerTime::Ready) => "nothing is wrong".to_owned(),
            (true, None, AnswerTime::Early) => "not checked yet".to_owned(),
            (true, Some(_), _) => "not checked, so errors may be missing".to_owned(),
            (false, None, AnswerTime::Ready) => self.counts.words(),
            (false, None, AnswerTime::Early) => format!("{} so far", self.counts.words()),
            (false, Some(_), _) => {
                format!("{}; not checked by the compiler, so more may be missing", self.counts.words())
            }
        };
        let mut lines = vec![format!("{}: {words}", self.path)];
        lines.extend(self.diagnostics.iter().map(Diagnostic::text));
        lines.extend(self.complaint.clone());
        lines.extend(self.unchecked.as_ref().map(|_| HINT.to_owned()));
        lines.join("\n")
    }

    fn lacks(&self) -> bool {
        self.unchecked.is_some()
    }
}

impl Diagnostic {
    fn of(found: ServerDiagnostic, talk: &LanguageSession<'_>) -> Self {
        let ServerDiagnostic { span, severity, message, code, source } = found;
        Self { severity, message, range: talk.document.text.range(span, talk.offered.units), code, source }
    }

    fn text(&self) -> String {
        let at = format!("{}:{}", self.range.start.line, self.range.start.col);
        let code = self.code.as_ref().map_or_else(String::new, |code| format!("[{code}]"));
        let source = self.source.as_ref().map_or_else(String::new, |source| format!(" ({source})"));
        let message = self.message.trim_end().replace('\n', "\n           ");
        format!("{at:>9}  {}{code}: {message}{source}", self.severity.word())
    }
}

impl SeverityCounts {
    fn of(all: &[Diagnostic]) -> Self {
        let mut counts = Self::default();
        for found in all {
            match found.severity {
                Severity::Error => counts.error += 1,
                Severity::Warning => counts.warning += 1,
                Severity::Information => counts.information += 1,
                Severity::Hint => counts.hint += 1,
            }
        }
        counts
    }

    fn words(&self) -> String {
        let some = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let all = [
            some(self.error, "error", "errors"),
            some(self.warning, "warning", "warnings"),
            some(self.information, "remark", "remarks"),
            some(self.hint, "hint", "hints"),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

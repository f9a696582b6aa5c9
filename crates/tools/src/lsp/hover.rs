//! `hover`

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    asking::{AnswerTime, LanguageOutput, LanguageTool},
    error::LanguageServerError,
    server_state::{Needs, cut},
    session::LanguageSession,
    text::{Range, Span, TextPosition},
};

/// How many letters are given.
const LONGEST: usize = 100_000;

pub(crate) struct Hover;

/// Show type, signature and documentation of the symbol at `path`, `line`, `col` (from 1), using the language server.
/// To read its code use `definition` and `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "path": "src/main.rs", "line": 12, "col": 9 }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// Line, from 1.
    line: NonZeroU32,
    /// Column, from 1.
    col: NonZeroU32,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// What is known, in Markdown; null when nothing is.
    contents: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
}

impl LanguageTool for Hover {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "hover";
    const NEEDS: Needs = Needs::Project;

    fn path(input: &Input) -> &str {
        &input.path
    }

    fn position(input: &Input) -> Option<TextPosition> {
        Some(TextPosition { line: input.line.get(), col: input.col.get() })
    }

    async fn ask(talk: &mut LanguageSession<'_>, input: &Input) -> Result<Output, LanguageServerError> {
        talk.need("hoverProvider", "what things are")?;
        let position = talk.position(TextPosition { line: input.line.get(), col: input.col.get() })?;
        let answer = talk.ask("textDocument/hover", json!({ "position": position })).await?;
        if answer.is_null() {
            return Ok(Output { contents: None, range: None });
        }
        let contents = answer.get("contents").and_then(markdown);
        let contents = contents.ok_or_else(|| talk.not_understood("text about it"))?;
        let range = Span::deserialize(&answer["range"]).ok();
        let range = range.map(|span| talk.document.text.range(span, talk.offered.units));
        let contents = Some(cut(contents.trim(), LONGEST)).filter(|contents| !contents.is_empty());
        Ok(Output { range: range.filter(|_| contents.is_some()), contents })
    }
}

impl LanguageOutput for Output {
    fn found_nothing(&self) -> bool {
        self.contents.is_none()
    }

    fn text(&self, _at: AnswerTime) -> String {
        self.contents.clone().unwrap_or_else(|| "The language server knows nothing about this position.".to_owned())
    }
}

/// The text, in whichever of its forms it comes.
fn markdown(said: &Value) -> Option<String> {
    match said {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let parts: Option<Vec<String>> = parts.iter().map(markdown).collect();
            parts.map(|parts| parts.join("\n\n"))
        }
        Value::Object(fields) => {
            let text = fields.get("value")?.as_str()?;
            match fields.get("language").and_then(Value::as_str) {
                Some(language) => Some(format!("```{language}\n{text}\n```")),
                None => Some(text.to_owned()),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

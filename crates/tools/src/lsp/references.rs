//! `references`

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    asking::{AnswerTime, LanguageOutput, LanguageTool},
    error::LanguageServerError,
    file_location::{FileLocation, located, named},
    server_state::Needs,
    session::LanguageSession,
    text::TextPosition,
};

/// How many come when the caller says nothing.
const FEW: NonZeroUsize = NonZeroUsize::new(200).unwrap();

pub(crate) struct References;

/// Find all uses of the symbol at `path`, `line`, `col` (from 1) in the project; unlike `grep` it tells equal names
/// apart.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "path": "src/main.rs", "line": 12, "col": 9 }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
    /// Line, from 1.
    line: NonZeroU32,
    /// Column, from 1.
    col: NonZeroU32,
    /// Also list the definition.
    #[serde(default = "yes")]
    include_declaration: bool,
    /// How many at most.
    #[serde(default = "few")]
    limit: NonZeroUsize,
}

fn yes() -> bool {
    true
}

fn few() -> NonZeroUsize {
    FEW
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// By path and line.
    references: Vec<FileLocation>,
    /// How many there are.
    total: usize,
    /// Whether there are more than are listed.
    truncated: bool,
}

impl LanguageTool for References {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "references";
    const NEEDS: Needs = Needs::Project;

    fn path(input: &Input) -> &str {
        &input.path
    }

    fn position(input: &Input) -> Option<TextPosition> {
        Some(TextPosition { line: input.line.get(), col: input.col.get() })
    }

    async fn ask(talk: &mut LanguageSession<'_>, input: &Input) -> Result<Output, LanguageServerError> {
        talk.need("referencesProvider", "where things are used")?;
        let position = talk.position(TextPosition { line: input.line.get(), col: input.col.get() })?;
        let context = json!({ "includeDeclaration": input.include_declaration });
        let params = json!({ "position": position, "context": context });
        let answer = talk.ask("textDocument/references", params).await?;
        let mut named = named(&answer).ok_or_else(|| talk.not_understood("a list of places"))?;
        named.sort();
        named.dedup();
        let total = named.len();
        named.truncate(input.limit.get());
        let references = located(talk, named).await?;
        Ok(Output { truncated: total > references.len(), references, total })
    }
}

impl LanguageOutput for Output {
    fn found_nothing(&self) -> bool {
        self.references.is_empty()
    }

    fn text(&self, _at: AnswerTime) -> String {
        if self.references.is_empty() {
            return "no reference was found".to_owned();
        }
        let mut lines: Vec<String> = self.references.iter().map(FileLocation::text).collect();
        if self.truncated {
            lines.push(format!("({} of {} references; raise `limit`)", lines.len(), self.total));
        }
        lines.join("\n")
    }
}

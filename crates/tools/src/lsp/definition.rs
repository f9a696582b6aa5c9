//! `definition`

use std::num::NonZeroU32;

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

pub(crate) struct GotoDefinition;

/// Go to the definition of the symbol at `path`, `line`, `col` (from 1), using the language server. For all uses of it
/// use `references`; without a language server use `grep`.
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
    /// Where it is defined; a name may have several definitions, or none.
    locations: Vec<FileLocation>,
}

impl LanguageTool for GotoDefinition {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "definition";
    const NEEDS: Needs = Needs::Project;

    fn path(input: &Input) -> &str {
        &input.path
    }

    fn position(input: &Input) -> Option<TextPosition> {
        Some(TextPosition { line: input.line.get(), col: input.col.get() })
    }

    async fn ask(talk: &mut LanguageSession<'_>, input: &Input) -> Result<Output, LanguageServerError> {
        talk.need("definitionProvider", "where things are defined")?;
        let position = talk.position(TextPosition { line: input.line.get(), col: input.col.get() })?;
        let answer = talk.ask("textDocument/definition", json!({ "position": position })).await?;
        let named = named(&answer).ok_or_else(|| talk.not_understood("a list of places"))?;
        Ok(Output { locations: located(talk, named).await? })
    }
}

impl LanguageOutput for Output {
    fn found_nothing(&self) -> bool {
        self.locations.is_empty()
    }

    fn text(&self, _at: AnswerTime) -> String {
        if self.locations.is_empty() {
            return "no definition was found".to_owned();
        }
        self.locations.iter().map(FileLocation::text).collect::<Vec<_>>().join("\n")
    }
}

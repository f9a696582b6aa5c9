//! `symbols`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    asking::{AnswerTime, LanguageOutput, LanguageTool},
    error::LanguageServerError,
    server_state::{Needs, cut},
    session::LanguageSession,
    text::{Range, Span, Text, Units},
};

/// How many are given.
const MOST: usize = 5000;
/// How deep they lie in one another.
const DEEPEST: usize = 64;
/// What the protocol's numbers mean, from 1.
const KINDS: [&str; 26] = [
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "enum member",
    "struct",
    "event",
    "operator",
    "type parameter",
];

pub(crate) struct Symbols;

/// List what a file defines: types, functions, fields, constants, each with its lines. Use it to find your way in a
/// long file before you read a part of it with `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "path": "src/main.rs" }))]
pub(crate) struct Input {
    /// Path in the workspace.
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// In the order in which they stand; at most 5000.
    symbols: Vec<Symbol>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Symbol {
    name: String,
    /// Such as `function` or `struct`.
    kind: &'static str,
    /// All of it.
    range: Range,
    /// Its name.
    selection_range: Range,
    /// What it belongs to, where the server does not nest them.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// Such as its signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<Symbol>,
}

impl LanguageTool for Symbols {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "symbols";
    const NEEDS: Needs = Needs::Document;

    fn path(input: &Input) -> &str {
        &input.path
    }

    async fn ask(talk: &mut LanguageSession<'_>, _input: &Input) -> Result<Output, LanguageServerError> {
        talk.need("documentSymbolProvider", "what a file defines")?;
        let answer = talk.ask("textDocument/documentSymbol", json!({})).await?;
        let mut reading = SymbolReader { text: &talk.document.text, units: talk.offered.units, left: MOST };
        let symbols = match &answer {
            Value::Null => Some(Vec::new()),
            Value::Array(all) => reading.all(all, 0),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
        };
        let mut symbols = symbols.ok_or_else(|| talk.not_understood("a list of symbols"))?;
        symbols.sort_by_key(|symbol| symbol.range);
        Ok(Output { path: talk.document.place.to_string(), symbols })
    }
}

impl LanguageOutput for Output {
    fn text(&self, _at: AnswerTime) -> String {
        let mut lines = Vec::new();
        self.symbols.iter().for_each(|symbol| symbol.tell(0, &mut lines));
        match lines.len() {
            0 => format!("{} defines nothing", self.path),
            count => format!("{}: {count} symbols\n{}", self.path, lines.join("\n")),
        }
    }
}

/// Reads symbols in both of their forms.
struct SymbolReader<'a> {
    text: &'a Text,
    units: Units,
    left: usize,
}

impl SymbolReader<'_> {
    fn all(&mut self, said: &[Value], depth: usize) -> Option<Vec<Symbol>> {
        let mut symbols = Vec::new();
        for one in said {
            if self.left == 0 || depth > DEEPEST {
                break;
            }
            self.left -= 1;
            symbols.push(self.one(one, depth)?);
        }
        Some(symbols)
    }

    fn one(&mut self, said: &Value, depth: usize) -> Option<Symbol> {
        let span = |said: &Value| Span::deserialize(said).ok();
        let (whole, name) = match said.get("location") {
            Some(location) => (span(&location["range"])?, span(&location["range"])?),
            None => (span(&said["range"])?, span(&said["selectionRange"])?),
        };
        let kind = said["kind"].as_u64().and_then(|kind| usize::try_from(kind).ok()?.checked_sub(1));
        let some = |text: &Value| text.as_str().filter(|text| !text.is_empty()).map(|text| cut(text, 500));
        let children = said["children"].as_array().map(Vec::as_slice).unwrap_or_default();
        Some(Symbol {
            name: cut(said["name"].as_str()?, 500),
            kind: kind.and_then(|kind| KINDS.get(kind)).copied().unwrap_or("symbol"),
            range: self.text.range(whole, self.units),
            selection_range: self.text.range(name, self.units),
            container: some(&said["containerName"]),
            detail: some(&said["detail"]),
            children: self.all(children, depth + 1)?,
        })
    }
}

impl Symbol {
    fn tell(&self, depth: usize, lines: &mut Vec<String>) {
        let detail = self.detail.as_ref().map_or_else(String::new, |detail| format!("  {detail}"));
        let indent = "  ".repeat(depth);
        lines.push(format!("{:>6}  {indent}{} {}{detail}", self.selection_range.start.line, self.kind, self.name));
        self.children.iter().for_each(|child| child.tell(depth + 1, lines));
    }
}

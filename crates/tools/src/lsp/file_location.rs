//! Places in files that a server names, as people see them.

use std::{collections::HashMap, sync::Arc};

use haft_runtime::ToolError;
use haft_sandbox::{PathError, Root, WorkspacePath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    address::{self, FileAddress},
    documents::{OpenDocument, read},
    server_state::cut,
    session::LanguageSession,
    text::{Range, Span, Text, Units},
};
use crate::blocking::StopFlag;

/// How many letters of a line are shown.
const PREVIEW: usize = 200;

/// A place in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileLocation {
    /// Relative to the workspace; absolute outside it.
    pub(super) path: String,
    pub(super) range: Range,
    /// The line that it begins in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preview: Option<String>,
    /// Whether it lies outside the workspace, where nothing is opened: columns are then as the server counts them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) external: bool,
}

impl FileLocation {
    pub(super) fn text(&self) -> String {
        let shown = match &self.preview {
            Some(line) => format!("  {line}"),
            None if self.external => "  (outside the workspace)".to_owned(),
            None => String::new(),
        };
        format!("{}:{}:{}{shown}", self.path, self.range.start.line, self.range.start.col)
    }
}

/// What a server names: an address and a part of it. `None` when it is nothing of the kind.
pub(super) fn named(answer: &Value) -> Option<Vec<(String, Span)>> {
    match answer {
        Value::Null => Some(Vec::new()),
        Value::Array(all) => all.iter().map(one).collect(),
        Value::Object(_) => one(answer).map(|one| vec![one]),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// A place, or a link to one.
fn one(said: &Value) -> Option<(String, Span)> {
    let (address, span) = match said.get("targetUri") {
        Some(address) => (address, &said["targetSelectionRange"]),
        None => (&said["uri"], &said["range"]),
    };
    Some((address.as_str()?.to_owned(), Span::deserialize(span).ok()?))
}

/// The same for people, in the same order.
pub(super) async fn located(
    talk: &LanguageSession<'_>,
    named: Vec<(String, Span)>,
) -> Result<Vec<FileLocation>, ToolError> {
    let (document, units) = (talk.document.clone(), talk.offered.units);
    talk.workspace
        .files
        .look(talk.ctx, move |root, stop| PreviewReader::new(root, document, units).locate(&named, stop))
        .await
}

/// Reads the files that a server names, each once.
struct PreviewReader<'a> {
    root: &'a Root,
    units: Units,
    texts: HashMap<WorkspacePath, Option<Arc<Text>>>,
}

impl<'a> PreviewReader<'a> {
    fn new(root: &'a Root, document: OpenDocument, units: Units) -> Self {
        Self { root, units, texts: HashMap::from([(document.place, Some(document.text))]) }
    }

    fn locate(mut self, named: &[(String, Span)], stop: &StopFlag) -> Result<Vec<FileLocation>, ToolError> {
        let mut all = Vec::with_capacity(named.len());
        for (address, span) in named {
            stop.check()?;
            all.push(match address::read(self.root, address) {
                FileAddress::Inside(place) if !self.leads_outside(&place) => self.inside(place, *span),
                FileAddress::Inside(place) => outside(place.to_string(), *span),
                FileAddress::Outside(path) => outside(cut(&path, 4096), *span),
            });
        }
        Ok(all)
    }

    fn leads_outside(&self, place: &WorkspacePath) -> bool {
        matches!(self.root.resolve(place), Err(PathError::Outside { .. }))
    }

    fn inside(&mut self, place: WorkspacePath, span: Span) -> FileLocation {
        let path = place.to_string();
        let root = self.root;
        let read = |place: &WorkspacePath| read(root, place).ok().map(|(_, text, _)| Arc::new(Text::new(text)));
        let text = self.texts.entry(place).or_insert_with_key(read);
        let Some(text) = text else {
            return FileLocation { path, range: span.as_it_is(), preview: None, external: false };
        };
        let range = text.range(span, self.units);
        let preview = text.line(range.start.line - 1).map(|line| cut(line.trim(), PREVIEW));
        FileLocation { path, range, preview, external: false }
    }
}

fn outside(path: String, span: Span) -> FileLocation {
    FileLocation { path, range: span.as_it_is(), preview: None, external: true }
}

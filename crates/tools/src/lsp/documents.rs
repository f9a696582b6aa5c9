//! The documents that are open in a server, kept in step with the files that they are.

use std::{
    collections::HashMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{Root, WorkspacePath};
use serde_json::{Value, json};

use super::{
    address,
    handshake::{LanguageCapabilities, WithText},
    servers::{LanguageServer, is_of_project},
    text::Text,
    watched::{Snapshot, WatchEvent, WatchedFile},
};
use crate::refusal::{Trying, broke_off, cannot};

/// The largest file that is shown to a server.
const LARGEST: u64 = 16 << 20;
/// How many documents are open at the most; the one that was not asked about for longest is closed.
const MOST_OPEN: usize = 64;
/// So many files that changed by themselves are opened, so that the server has surely seen them when it answers.
const FEW: usize = 32;

/// The documents that are open in a server.
#[derive(Debug)]
pub(super) struct Documents {
    seen: Snapshot,
    open: HashMap<PathBuf, Document>,
    /// How often something has changed.
    changes: u64,
    /// How often something was asked.
    uses: u64,
}

/// What may begin soon, though nothing was heard of it yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingWork {
    /// That the project is read.
    pub(super) project: bool,
    /// That it is checked.
    pub(super) checks: bool,
}

#[derive(Debug)]
struct Document {
    place: WorkspacePath,
    address: String,
    text: Arc<Text>,
    mark: WatchedFile,
    version: i64,
    /// The count of changes when the server last heard of it.
    told: u64,
    used: u64,
}

/// A document as the server has it.
#[derive(Clone, Debug)]
pub(super) struct OpenDocument {
    pub(super) place: WorkspacePath,
    pub(super) address: String,
    pub(super) text: Arc<Text>,
}

/// What a server must hear before it is asked.
#[derive(Debug, Default)]
pub(super) struct DocumentUpdate {
    pub(super) notes: Vec<Value>,
    /// Documents, and the version that the server must have seen.
    pub(super) expected: Vec<(String, i64)>,
    pub(super) closed: Vec<String>,
    pub(super) unsettled: PendingWork,
}

/// What is around the documents of a server.
pub(super) struct DocumentContext<'a> {
    pub(super) root: &'a Root,
    pub(super) server: &'a LanguageServer,
    pub(super) offered: &'a LanguageCapabilities,
}

impl Documents {
    /// For a server that begins with the files as they were `seen`.
    pub(super) fn new(seen: Snapshot) -> Self {
        Self { seen, open: HashMap::new(), changes: 0, uses: 0 }
    }

    /// The files as the server was last told of them.
    pub(super) fn seen(&self) -> &Snapshot {
        &self.seen
    }

    /// Whether all files are compared, and not only open documents.
    pub(super) fn sees_all(&self) -> bool {
        self.seen.is_whole()
    }

    /// Brings the server in step with the files as they are `now`, where they are not still as they were `seen`, and
    /// opens the document that is asked about.
    pub(super) fn step(
        &mut self,
        around: &DocumentContext<'_>,
        now: Option<Snapshot>,
        place: &WorkspacePath,
    ) -> Result<(OpenDocument, DocumentUpdate), ToolError> {
        let mut news = DocumentUpdate::default();
        self.uses += 1;
        let mut became: Vec<(PathBuf, WatchEvent)> = self.follow_open(around, &mut news);
        if let Some(now) = now {
            let others = now.since(&self.seen).into_iter().filter(|(path, _)| !self.open.contains_key(path));
            became.extend(others);
            self.seen = now;
        }
        self.tell(around.root, &became, &mut news);
        let new = became.iter().filter(|(path, became)| *became != WatchEvent::Deleted && !is_of_project(path));
        let new: Vec<&PathBuf> = new.map(|(path, _)| path).filter(|path| !self.open.contains_key(*path)).collect();
        if new.len() <= FEW {
            for path in new {
                // What cannot be read any more is told as gone next time.
                let _ = self.open(around, &within(path), &mut news);
            }
        }
        let opened = self.open(around, place, &mut news)?;
        self.close_oldest(&mut news);
        Ok((opened, news))
    }

    /// Makes the server look again at a document that stayed the same while others changed.
    pub(super) fn touch(&mut self, opened: &OpenDocument, news: &mut DocumentUpdate) {
        let changes = self.changes;
        if let Some(document) = self.open.get_mut(opened.place.as_path())
            && document.told < changes
        {
            document.tell_text(changes, news);
        }
    }

    /// Looks at every open document, and says what has become of those that are not the same.
    fn follow_open(&mut self, around: &DocumentContext<'_>, news: &mut DocumentUpdate) -> Vec<(PathBuf, WatchEvent)> {
        let mut became = Vec::new();
        for (path, document) in &mut self.open {
            let stamp = around.root.meta(&document.place).ok().flatten().map(|meta| meta.stamp);
            if stamp.is_some_and(|stamp| document.mark.is_still(&stamp)) {
                continue;
            }
            match read(around.root, &document.place) {
                Ok((_, text, mark)) => {
                    document.mark = mark;
                    if text != document.text.as_str() {
                        document.text = Arc::new(Text::new(text));
                        became.push((path.clone(), WatchEvent::Changed));
                    }
                }
                Err(_) => became.push((path.clone(), WatchEvent::Deleted)),
            }
        }
        self.changes += u64::from(!became.is_empty());
        for (path, became) in &became {
            match became {
                WatchEvent::Deleted => self.close(path, news),
                WatchEvent::Created | WatchEvent::Changed => {
                    if let Some(document) = self.open.get_mut(path) {
                        document.tell_text(self.changes, news);
                        document.tell_saved(around.offered.save, news);
                    }
                }
            }
        }
        became
    }

    /// Tells of files that have changed, and that what follows from them may begin soon.
    fn tell(&mut self, root: &Root, became: &[(PathBuf, WatchEvent)], news: &mut DocumentUpdate) {
        if became.is_empty() {
            return;
        }
        self.changes += 1;
        let project = became.len() > FEW || became.iter().any(|(path, _)| is_of_project(path));
        news.unsettled = PendingWork { project, checks: true };
        let event = |(path, became): &(PathBuf, WatchEvent)| json!({ "uri": address::of(&root.path().join(path)), "type": *became as u8 });
        let changes: Vec<Value> = became.iter().map(event).collect();
        news.notes.push(note("workspace/didChangeWatchedFiles", json!({ "changes": changes })));
    }

    fn open(
        &mut self,
        around: &DocumentContext<'_>,
        place: &WorkspacePath,
        news: &mut DocumentUpdate,
    ) -> Result<OpenDocument, ToolError> {
        if let Some(document) = self.open.get_mut(place.as_path()) {
            document.used = self.uses;
            return Ok(document.opened());
        }
        let (place, text, mark) = read(around.root, place)?;
        let address = address::of(&around.root.path().join(place.as_path()));
        let language = around.server.language_of(place.as_path());
        let item = json!({ "uri": address, "languageId": language, "version": 1, "text": text });
        news.notes.push(note("textDocument/didOpen", json!({ "textDocument": item })));
        news.expected.push((address.clone(), 1));
        let text = Arc::new(Text::new(text));
        let document = Document { place, address, text, mark, version: 1, told: self.changes, used: self.uses };
        let opened = document.opened();
        self.open.insert(opened.place.as_path().to_owned(), document);
        Ok(opened)
    }

    fn close_oldest(&mut self, news: &mut DocumentUpdate) {
        while self.open.len() > MOST_OPEN {
            let Some(oldest) = self.open.iter().min_by_key(|(_, document)| document.used) else { return };
            let path = oldest.0.clone();
            self.close(&path, news);
        }
    }

    fn close(&mut self, path: &Path, news: &mut DocumentUpdate) {
        if let Some(Document { address, .. }) = self.open.remove(path) {
            news.notes.push(note("textDocument/didClose", json!({ "textDocument": { "uri": address } })));
            news.closed.push(address);
        }
    }
}

impl Document {
    fn opened(&self) -> OpenDocument {
        OpenDocument { place: self.place.clone(), address: self.address.clone(), text: Arc::clone(&self.text) }
    }

    /// Tells the whole text as a new version.
    fn tell_text(&mut self, changes: u64, news: &mut DocumentUpdate) {
        (self.version, self.told) = (self.version + 1, changes);
        let document = json!({ "uri": self.address, "version": self.version });
        let changes = json!([{ "text": self.text.as_str() }]);
        let params = json!({ "textDocument": document, "contentChanges": changes });
        news.notes.push(note("textDocument/didChange", params));
        news.expected.push((self.address.clone(), self.version));
    }

    fn tell_saved(&self, wanted: Option<WithText>, news: &mut DocumentUpdate) {
        let document = json!({ "uri": self.address });
        let params = match wanted {
            Some(WithText::Yes) => json!({ "textDocument": document, "text": self.text.as_str() }),
            Some(WithText::No) => json!({ "textDocument": document }),
            None => return,
        };
        news.notes.push(note("textDocument/didSave", params));
    }
}

/// A message that has no answer.
pub(super) fn note(method: &str, params: Value) -> Value {
    let mut note = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        note["params"] = params;
    }
    note
}

/// A place by its path in the workspace, as a walk gives it.
pub(super) fn within(path: &Path) -> WorkspacePath {
    path.iter().fold(WorkspacePath::root(), |place, name| place.join(name))
}

/// The text of a file, and where it really is.
pub(super) fn read(root: &Root, place: &WorkspacePath) -> Result<(WorkspacePath, String, WatchedFile), ToolError> {
    let before = SystemTime::now();
    let open = root.open_file(place).trying("read")?;
    let shown = place.to_string();
    if open.meta.size > LARGEST {
        let why = format!("it has {} bytes, and a language server is shown at most {LARGEST}", open.meta.size);
        return Err(cannot(ErrorCode::TooLarge, "ask about", &shown, &why));
    }
    let mut bytes = Vec::new();
    open.file.take(LARGEST).read_to_end(&mut bytes).map_err(|err| broke_off("read", &shown, &err))?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| cannot(ErrorCode::BinaryFile, "ask about", &shown, "it is not UTF-8 text"))?;
    Ok((open.place, text, WatchedFile::new(open.meta.stamp, before)))
}

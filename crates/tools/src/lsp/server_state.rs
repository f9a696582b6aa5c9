//! What was heard of a server so far: what it can do, how far it is, what it finds wrong.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::{handshake::LanguageCapabilities, server_diagnostic::ServerDiagnostic};

/// How many kinds of work are followed at once; a server that has more is not waited for the others.
const MOST_WORK: usize = 256;
/// How much of what it says on its standard error is kept.
const KEPT: usize = 16 << 10;
/// How many of its last lines are told.
const LINES: usize = 8;
/// How rust-analyzer says that the compiler could not be had; everything else that it warns of leaves the compiler's word.
const NO_COMPILER: &str = "cargo check failed";

/// What was heard of a server so far.
#[derive(Debug, Default)]
pub(super) struct LanguageServerState {
    /// What it can do, once it has said so.
    pub(super) offered: Option<Arc<LanguageCapabilities>>,
    /// Why it cannot be asked any more.
    pub(super) ended: Option<String>,
    /// Whether everything of it is dead.
    pub(super) gone: bool,
    /// Whether it was told to end.
    pub(super) leaves: bool,
    /// How many messages came from it.
    pub(super) messages: u64,
    status: Option<LanguageServerHealth>,
    /// Under way, by the name that the server gives it.
    working: BTreeMap<String, WorkProgress>,
    /// Of the open documents, by address.
    published: HashMap<String, PublishedDiagnostics>,
}

/// How a server says that it is.
#[derive(Debug)]
struct LanguageServerHealth {
    quiescent: bool,
    /// Whether it cannot do its work at all.
    failed: bool,
    message: Option<String>,
}

#[derive(Debug)]
struct WorkProgress {
    title: String,
    message: String,
    percentage: Option<u8>,
}

/// What a server published of an open document.
#[derive(Debug, Default)]
struct PublishedDiagnostics {
    /// The version that it must have seen.
    expected: i64,
    /// Whether it has.
    is_current: bool,
    found: Vec<ServerDiagnostic>,
}

/// How far a server is with what an answer rests on.
#[derive(Clone, Debug)]
pub(super) struct LoadingProgress {
    /// What it does: starting, indexing or checking.
    pub(super) doing: &'static str,
    pub(super) percentage: Option<u8>,
    /// The same in the server's own words.
    pub(super) work: Option<String>,
}

/// What an answer rests on, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Only the text of the document.
    Document,
    /// That the project is read.
    Project,
    /// That it was checked too.
    Checks,
}

impl LanguageServerState {
    /// Takes a notification.
    pub(super) fn take(&mut self, method: &str, params: &Value) {
        match method {
            "$/progress" => self.take_progress(params),
            "experimental/serverStatus" => {
                let message = params["message"].as_str().map(|text| cut(text, 500));
                let (quiescent, failed) = (params["quiescent"] == true, params["health"] == "error");
                self.status = Some(LanguageServerHealth { quiescent, failed, message });
            }
            "textDocument/publishDiagnostics" => {
                let address = params["uri"].as_str().unwrap_or_default();
                if let Some(published) = self.published.get_mut(address) {
                    published.is_current = params["version"].as_i64().is_none_or(|seen| seen >= published.expected);
                    published.found = ServerDiagnostic::all(&params["diagnostics"]);
                }
            }
            _ => {}
        }
    }

    fn take_progress(&mut self, params: &Value) {
        let (token, value) = (params["token"].to_string(), &params["value"]);
        let percentage = value["percentage"].as_u64().and_then(|part| u8::try_from(part.min(100)).ok());
        let message = value["message"].as_str().map(|text| cut(text, 200));
        match value["kind"].as_str() {
            Some("begin") if self.working.len() < MOST_WORK => {
                let title = cut(value["title"].as_str().unwrap_or_default(), 200);
                self.working.insert(token, WorkProgress { title, message: message.unwrap_or_default(), percentage });
            }
            Some("report") => {
                if let Some(work) = self.working.get_mut(&token) {
                    work.percentage = percentage.or(work.percentage);
                    work.message = message.unwrap_or_else(|| std::mem::take(&mut work.message));
                }
            }
            Some("end") => {
                self.working.remove(&token);
            }
            Some(_) | None => {}
        }
    }

    /// A document is open, or changed: what was published of it is old until the server has seen this version.
    pub(super) fn expect(&mut self, address: &str, version: i64) {
        let published = self.published.entry(address.to_owned()).or_default();
        (published.expected, published.is_current) = (version, false);
    }

    /// A document is closed.
    pub(super) fn forget(&mut self, address: &str) {
        self.published.remove(address);
    }

    /// Whether the server has said what it finds in a document as it is now.
    pub(super) fn is_current(&self, address: &str) -> bool {
        self.published.get(address).is_some_and(|published| published.is_current)
    }

    /// What it published of a document.
    pub(super) fn published(&self, address: &str) -> Vec<ServerDiagnostic> {
        self.published.get(address).map(|published| published.found.clone()).unwrap_or_default()
    }

    /// Whether nothing that the answer rests on is under way, as far as was heard.
    pub(super) fn is_calm(&self, needs: Needs) -> bool {
        let is_read = self.status.as_ref().is_some_and(|status| status.quiescent);
        match (self.tells_status(), needs) {
            (_, Needs::Document) => true,
            (true, Needs::Project) => is_read,
            (true, Needs::Checks) => is_read && self.working.is_empty(),
            (false, _) => self.working.is_empty(),
        }
    }

    /// Whether the server says by itself when it has read everything.
    pub(super) fn tells_status(&self) -> bool {
        self.status.is_some() || self.offered.as_ref().is_some_and(|offered| offered.tells_status())
    }

    /// What it complains about as a whole.
    pub(super) fn complaint(&self) -> Option<String> {
        self.status.as_ref().and_then(|status| status.message.clone())
    }

    /// Why nothing was checked, where the server or the compiler behind it says that it could not.
    pub(super) fn unchecked(&self) -> Option<String> {
        let status = self.status.as_ref()?;
        let said = status.message.as_deref().unwrap_or_default();
        match said.find(NO_COMPILER) {
            Some(at) => Some(said[at..].to_owned()),
            None if status.failed && said.is_empty() => Some("the server has failed, and does not say why".to_owned()),
            None => status.failed.then(|| said.to_owned()),
        }
    }

    /// What is under way.
    pub(super) fn progress(&self) -> LoadingProgress {
        // Work that says how far it is tells more than work that does not.
        let known = self.working.values().find(|work| work.percentage.is_some());
        let work = known.or_else(|| self.working.values().next());
        let words = |work: &WorkProgress| match work.message.as_str() {
            "" => work.title.clone(),
            message => format!("{}: {message}", work.title),
        };
        let doing = match (&self.offered, self.status.as_ref().is_some_and(|status| status.quiescent)) {
            (None, _) => "starting",
            (Some(_), true) => "checking",
            (Some(_), false) => "indexing",
        };
        LoadingProgress { doing, percentage: work.and_then(|work| work.percentage), work: work.map(words) }
    }
}

impl std::fmt::Display for LoadingProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.percentage, &self.work) {
            (Some(part), _) => write!(f, "still {} ({part} %)", self.doing),
            (None, Some(work)) => write!(f, "still {} ({})", self.doing, cut(work, 80)),
            (None, None) => write!(f, "still {}", self.doing),
        }
    }
}

/// The end of what a server says on its standard error.
#[derive(Debug, Default)]
pub(super) struct LanguageServerTail(VecDeque<u8>);

impl LanguageServerTail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        self.0.drain(..self.0.len().saturating_sub(KEPT));
    }

    /// Its last lines.
    pub(super) fn lines(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_is_told_by_its_part_or_by_its_words() {
        let told = |percentage, work: Option<&str>| {
            LoadingProgress { doing: "indexing", percentage, work: work.map(str::to_owned) }.to_string()
        };
        assert_eq!(told(Some(63), Some("Reading")), "still indexing (63 %)");
        assert_eq!(told(None, Some("Fetching: metadata")), "still indexing (Fetching: metadata)");
        assert_eq!(told(None, None), "still indexing");
    }
}

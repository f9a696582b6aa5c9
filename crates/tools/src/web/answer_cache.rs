//! Answers that were given before, which hold again when their host says so.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_sandbox::web::{HeaderMap, header};

/// How many answers are kept, the most bytes of one, and the most of all together.
const MOST: usize = 64;
const LARGEST: usize = 4 << 20;
const ALL_TOGETHER: usize = 16 << 20;

/// By what a host knows its answer again, and what asks it whether that still holds.
const MARKS: [(header::HeaderName, header::HeaderName); 2] =
    [(header::ETAG, header::IF_NONE_MATCH), (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE)];

/// Answers by their questions, the oldest first.
#[derive(Debug, Default)]
pub(super) struct WebAnswerCache(Mutex<VecDeque<(String, Arc<WebAnswer>)>>);

/// A whole answer, its body unpacked.
#[derive(Clone, Debug)]
pub(super) struct WebAnswer {
    pub(super) headers: HeaderMap,
    pub(super) bytes: Arc<Vec<u8>>,
}

impl WebAnswerCache {
    /// What was answered to this question.
    pub(super) fn answer(&self, question: &str) -> Option<Arc<WebAnswer>> {
        self.lock().iter().find(|(asked, _)| asked == question).map(|(_, answer)| Arc::clone(answer))
    }

    /// Keeps an answer in the place of an earlier one, where its host can be asked about it.
    pub(super) fn keep(&self, question: String, answer: WebAnswer) {
        let mut all = self.lock();
        all.retain(|(asked, _)| *asked != question);
        if answer.bytes.len() > LARGEST || !MARKS.iter().any(|(mark, _)| answer.headers.contains_key(mark)) {
            return;
        }
        all.push_back((question, Arc::new(answer)));
        let size =
            |all: &VecDeque<(String, Arc<WebAnswer>)>| -> usize { all.iter().map(|(_, one)| one.bytes.len()).sum() };
        while all.len() > MOST || size(&all) > ALL_TOGETHER {
            all.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Arc<WebAnswer>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebAnswer {
    /// Whether a header of this name asks a host if an answer still holds.
    pub(super) fn is_asked_about_by(name: &str) -> bool {
        MARKS.iter().any(|(_, ask)| name.eq_ignore_ascii_case(ask.as_str()))
    }

    /// Asks with a request whether the answer still holds.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        for (mark, ask) in MARKS {
            if let Some(value) = self.headers.get(mark) {
                headers.insert(ask, value.clone());
            }
        }
    }

    /// The answer once its host has said that it holds, with what the host says of it now.
    pub(super) fn confirmed(&self, now: &HeaderMap) -> WebAnswer {
        let mut headers = self.headers.clone();
        for (name, value) in now {
            // They tell how the body was packed and how long it was, and there is none now.
            if ![header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name) {
                headers.insert(name, value.clone());
            }
        }
        WebAnswer { headers, bytes: Arc::clone(&self.bytes) }
    }
}

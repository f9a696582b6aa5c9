//! The matching lines of one file, as the searcher comes by them.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::cut::{FAR, cut};

/// A line that matches, with the lines around it that no other line has taken.
#[derive(Debug)]
pub(super) struct MatchingLine {
    pub(super) number: u64,
    /// Where the match begins, in bytes from 1, if `text` does not show it.
    pub(super) column: Option<u64>,
    pub(super) text: String,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

impl MatchingLine {
    /// Roughly the memory that it takes.
    pub(super) fn weight(&self) -> usize {
        let around = self.before.iter().chain(&self.after).map(|text| text.len() + size_of::<String>());
        self.text.len() + size_of::<Self>() + around.sum::<usize>()
    }
}

/// How much is wanted of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchDetail {
    /// The lines, so many at the most.
    Lines(usize),
    /// How many there are.
    Count,
    /// Whether there is one.
    Any,
}

/// Takes in what the searcher finds in one file.
pub(super) struct LineCollector<'m> {
    matcher: &'m RegexMatcher,
    depth: MatchDetail,
    /// How many bytes of lines are kept.
    room: usize,
    before: Vec<String>,
    pub(super) found: Vec<MatchingLine>,
    pub(super) count: u64,
    pub(super) is_binary: bool,
    /// Whether a line that is kept is not UTF-8.
    pub(super) is_foreign: bool,
}

impl<'m> LineCollector<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, depth: MatchDetail, room: usize) -> Self {
        Self {
            matcher,
            depth,
            room,
            before: Vec::new(),
            found: Vec::new(),
            count: 0,
            is_binary: false,
            is_foreign: false,
        }
    }

    fn has_room(&self) -> bool {
        match self.depth {
            MatchDetail::Lines(most) => self.found.len() < most && self.room > 0,
            MatchDetail::Count | MatchDetail::Any => false,
        }
    }

    fn keep(&mut self, number: u64, bytes: &[u8], at: Option<usize>) {
        let text = self.cut(bytes, at.unwrap_or(0));
        let column = at.filter(|at| *at >= FAR).map(|at| at as u64 + 1);
        let line = MatchingLine { number, column, text, before: std::mem::take(&mut self.before), after: Vec::new() };
        self.room = self.room.saturating_sub(line.weight());
        self.found.push(line);
    }

    fn cut(&mut self, bytes: &[u8], at: usize) -> String {
        self.is_foreign |= std::str::from_utf8(bytes).is_err();
        cut(bytes, at)
    }

    fn keep_after(&mut self, bytes: &[u8]) {
        let text = self.cut(bytes, 0);
        self.room = self.room.saturating_sub(text.len());
        if let Some(last) = self.found.last_mut() {
            last.after.push(text);
        }
    }

    /// Where matches begin in what was found.
    fn starts(&self, bytes: &[u8]) -> Vec<usize> {
        let mut starts = Vec::new();
        // This engine has no errors.
        let _ = self.matcher.find_iter(bytes, |found| {
            starts.push(found.start());
            true
        });
        starts
    }
}

impl Sink for LineCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if !searcher.multi_line_with_matcher(self.matcher) {
            self.count += 1;
            if self.has_room() {
                let at = self.matcher.find(found.bytes()).ok().flatten().map(|at| at.start());
                self.keep(found.line_number().unwrap_or(0), found.bytes(), at);
            }
            return Ok(self.depth != MatchDetail::Any);
        }
        let starts = if self.has_room() { self.starts(found.bytes()) } else { Vec::new() };
        let mut begin = 0;
        for (number, line) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
            self.count += 1;
            if self.has_room() {
                let own = begin..begin + line.len();
                let at = starts.iter().find(|start| own.contains(start)).map(|start| start - begin);
                self.keep(number, line, at);
            }
            begin += line.len();
        }
        Ok(self.depth != MatchDetail::Any)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Once there is no room, the lines around belong to nothing that is kept.
        let is_kept = self.count == self.found.len() as u64;
        match context.kind() {
            SinkContextKind::Before if self.has_room() => {
                let text = self.cut(context.bytes(), 0);
                self.before.push(text);
            }
            SinkContextKind::After if is_kept => self.keep_after(context.bytes()),
            SinkContextKind::Before | SinkContextKind::After | SinkContextKind::Other => {}
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

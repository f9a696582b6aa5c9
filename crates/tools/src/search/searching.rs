//! What one thread of `grep` does with files, and what all have found together.

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_sandbox::{Charset, EntryKind, Meta, PathError};

use super::{
    best::Best,
    grep::OutputMode,
    lines::{LineCollector, MatchDetail, MatchingLine},
    order::{SortKey, SortOrder},
    pace::{EncodingCheck, Pace, PacedFile},
    walk::{Visitor, WalkEntry},
};

/// The longest line that is searched, or the largest file if matches go over several lines.
const LONGEST: usize = 16 << 20;
/// The largest file that is read in another encoding than UTF-8, as for `read_file`.
const LARGEST_DECODED: u64 = 16 << 20;
/// How many bytes of results are kept, whatever the caller says.
const HEAVIEST: usize = 8 << 20;

/// What is searched for, and what is wanted of it.
pub(super) struct SearchPlan {
    pub(super) matcher: RegexMatcher,
    pub(super) pattern: String,
    pub(super) multiline: bool,
    pub(super) context: usize,
    pub(super) most: usize,
    pub(super) mode: OutputMode,
    pub(super) sort: SortOrder,
}

impl SearchPlan {
    /// Letters beyond ASCII are other bytes in other encodings.
    fn checks(&self) -> EncodingCheck {
        if self.pattern.is_ascii() { EncodingCheck::Head } else { EncodingCheck::Whole }
    }
}

/// The text of a file in another encoding than UTF-8, as `read_file` reads it.
fn decoded(mut file: &File) -> Option<String> {
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST_DECODED + 1).read_to_end(&mut bytes).ok()?;
    let charset = Charset::of(&bytes).filter(|charset| !charset.is_utf8() && bytes.len() as u64 <= LARGEST_DECODED)?;
    charset.decode(&bytes)
}

/// One thread's searcher and what it has found.
pub(super) struct FileSearcher<'a> {
    plan: &'a SearchPlan,
    pace: &'a Pace,
    /// Its own, because threads that share one wait for each other.
    matcher: RegexMatcher,
    searcher: Searcher,
    best: Best<SortKey, Hit>,
    pub(super) tally: Tally,
}

/// A result: a line, or a file with its number of lines.
pub(super) enum Hit {
    Line(MatchingLine),
    File(u64),
}

/// How many of what there were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) lines: u64,
    pub(super) files_matched: u64,
    pub(super) files_searched: u64,
    pub(super) binary: u64,
    pub(super) sensitive: u64,
    pub(super) unreadable: u64,
}

impl Visitor for FileSearcher<'_> {
    const AT_ONCE: usize = 64;

    fn visit(&mut self, spot: &WalkEntry<'_>) {
        if spot.kind != EntryKind::File {
            return;
        }
        match spot.folder.open_file(spot.root, spot.name) {
            Ok(Some((file, meta))) => self.search(spot.path, &file, &meta),
            Ok(None) => {}
            Err(PathError::Sensitive { .. }) => self.tally.sensitive += 1,
            Err(_) => self.tally.unreadable += 1,
        }
    }
}

impl<'a> FileSearcher<'a> {
    pub(super) fn new(plan: &'a SearchPlan, pace: &'a Pace) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(plan.multiline)
            .before_context(plan.context)
            .after_context(plan.context)
            .heap_limit(Some(LONGEST))
            .build();
        let best = Best::new(plan.most, HEAVIEST);
        Self { plan, pace, matcher: plan.matcher.clone(), searcher, best, tally: Tally::default() }
    }

    /// Searches one open file.
    pub(super) fn search(&mut self, path: &Path, file: &File, meta: &Meta) {
        let key = SortKey::new(self.plan.sort, path.as_os_str(), meta.modified);
        let mut lines = LineCollector::new(&self.matcher, self.depth(&key), HEAVIEST);
        let mut paced = PacedFile::new(file, self.pace, self.plan.checks());
        let mut searched = self.searcher.search_reader(&self.matcher, &mut paced, &mut lines);
        if (paced.is_foreign || lines.is_foreign)
            && self.pace.goes_on()
            && let Some(text) = decoded(file)
        {
            lines = LineCollector::new(&self.matcher, self.depth(&key), HEAVIEST);
            searched = self.searcher.search_slice(&self.matcher, text.as_bytes(), &mut lines);
        }
        if !self.pace.goes_on() {
            // What was found up to here is true, but the file is not one that was searched.
        } else if searched.is_err() {
            self.tally.unreadable += 1;
            return;
        } else if lines.is_binary {
            self.tally.binary += 1;
            return;
        } else {
            self.tally.files_searched += 1;
        }
        let (found, count) = (lines.found, lines.count);
        self.take(&key, found, count);
    }

    /// Everything that the threads have found.
    pub(super) fn together(plan: &'a SearchPlan, pace: &'a Pace, threads: Vec<Self>) -> (Tally, Vec<(SortKey, Hit)>) {
        let mut all = Self::new(plan, pace);
        for one in threads {
            all.best.absorb(one.best);
            all.tally.add(one.tally);
        }
        (all.tally, all.best.into_sorted())
    }

    /// Lines are only made where they can still be among the first.
    fn depth(&self, key: &SortKey) -> MatchDetail {
        match self.plan.mode {
            OutputMode::Lines if self.best.wants(|other| key < other) => MatchDetail::Lines(self.plan.most),
            OutputMode::Lines | OutputMode::Count => MatchDetail::Count,
            OutputMode::Files => MatchDetail::Any,
        }
    }

    fn take(&mut self, key: &SortKey, found: Vec<MatchingLine>, count: u64) {
        if count == 0 {
            return;
        }
        self.tally.lines += count;
        self.tally.files_matched += 1;
        if self.plan.mode != OutputMode::Lines {
            let weight = key.path.len() + size_of::<SortKey>();
            return self.best.offer(key.clone(), weight, Hit::File(count));
        }
        for line in found {
            self.best.offer(key.at_line(line.number), line.weight() + key.path.len(), Hit::Line(line));
        }
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        let Self { lines, files_matched, files_searched, binary, sensitive, unreadable } = other;
        self.lines += lines;
        self.files_matched += files_matched;
        self.files_searched += files_searched;
        self.binary += binary;
        self.sensitive += sensitive;
        self.unreadable += unreadable;
    }
}

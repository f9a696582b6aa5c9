//! Text that grows word by word: spaces are joined, blocks are set apart, and each line begins as its place demands.

/// How far apart two things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Line,
    Block,
}

/// Growing text.
pub(super) struct TextLines {
    text: String,
    gap: Gap,
    space: bool,
    /// How many of the prefixes the empty line in a gap has: those that hold before and after it.
    quiet: usize,
    /// What each line begins with: quotes and the indents of lists, outermost first.
    prefixes: Vec<String>,
    /// What the next line begins with in the place of one of them, such as the mark of an item.
    mark: Option<(usize, String)>,
    /// Marks that wait for their first word.
    waiting: Vec<&'static str>,
}

impl TextLines {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            gap: Gap::None,
            space: false,
            quiet: 0,
            prefixes: Vec::new(),
            mark: None,
            waiting: Vec::new(),
        }
    }

    /// Ends the line or the block.
    pub(super) fn part(&mut self, gap: Gap) {
        let depth = self.prefixes.len();
        self.quiet = if self.gap == Gap::None { depth } else { self.quiet.min(depth) };
        self.gap = self.gap.max(gap);
        self.space = false;
    }

    pub(super) fn indent(&mut self, prefix: impl Into<String>, mark: Option<String>) {
        if let Some(mark) = mark {
            self.mark = Some((self.prefixes.len(), mark));
        }
        self.prefixes.push(prefix.into());
    }

    pub(super) fn outdent(&mut self) {
        self.prefixes.pop();
        let left = self.prefixes.len();
        self.quiet = self.quiet.min(left);
        self.mark.take_if(|(place, _)| *place >= left);
    }

    /// Adds words; whatever space is between them becomes one space.
    pub(super) fn words(&mut self, text: &str, escape: impl Fn(&mut String, &str)) {
        if text.starts_with(is_space) {
            self.space = true;
        }
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            self.begin();
            escape(&mut self.text, word);
            self.space = true;
        }
        if !text.is_empty() && !text.ends_with(is_space) {
            self.space = false;
        }
    }

    /// Adds something whole, such as a mark that stands directly beside a word.
    pub(super) fn whole(&mut self, text: &str) {
        self.begin();
        self.text.push_str(text);
    }

    /// Adds lines as they are.
    pub(super) fn verbatim(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.gap = Gap::None;
                self.new_line();
            } else {
                self.begin();
            }
            self.text.push_str(line);
        }
    }

    /// A mark around the words to come; none is written when none come.
    pub(super) fn open(&mut self, mark: &'static str) {
        self.waiting.push(mark);
    }

    /// Ends a mark.
    pub(super) fn close(&mut self, mark: &'static str) {
        if self.waiting.pop().is_none() {
            // A block inside has parted the words from their mark.
            let space = std::mem::take(&mut self.space);
            self.text.push_str(mark);
            self.space = space;
        }
    }

    /// Where the text is now, and what comes after that.
    pub(super) fn here(&mut self) -> usize {
        self.begin();
        self.text.len()
    }

    pub(super) fn since(&self, here: usize) -> &str {
        self.text.get(here..).unwrap_or_default()
    }

    /// Takes back what was written since.
    pub(super) fn take_back(&mut self, here: usize) {
        self.text.truncate(here);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.text.remove(at);
    }

    /// Ends directly after the last word, whatever space is to come.
    pub(super) fn after_word(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_at_line_start(&self) -> bool {
        self.text.is_empty() || self.gap > Gap::None
    }

    pub(super) fn finish(mut self) -> String {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        self.text
    }

    fn begin(&mut self) {
        match self.gap {
            Gap::None if self.text.is_empty() => self.prefix(),
            Gap::None if self.space => self.text.push(' '),
            Gap::None => {}
            Gap::Line => self.new_line(),
            Gap::Block => {
                if !self.text.is_empty() {
                    self.text.push('\n');
                    self.text.push_str(self.prefixes[..self.quiet].concat().trim_end());
                }
                self.new_line();
            }
        }
        self.gap = Gap::None;
        self.space = false;
        for mark in self.waiting.drain(..) {
            self.text.push_str(mark);
        }
    }

    fn new_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.prefix();
    }

    fn prefix(&mut self) {
        let marked = self.mark.take();
        for (at, prefix) in self.prefixes.iter().enumerate() {
            let mark = marked.as_ref().filter(|(place, _)| *place == at).map(|(_, mark)| mark);
            self.text.push_str(mark.unwrap_or(prefix));
        }
    }
}

/// Space that is joined; a space that does not break stays what it is.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

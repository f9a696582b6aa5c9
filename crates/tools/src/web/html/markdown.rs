//! An article as Markdown, or as plain text.

use std::ops::Range;

use haft_sandbox::web::Url;
use html5ever::local_name;

use super::{
    article::Article,
    lines::{Gap, TextLines},
    tree::{self, NodeKind, PageNode, is_one_of},
};
use crate::blocking::StopFlag;

/// What a page is turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum PageFormat {
    Text,
    Markdown,
}

/// The readable part of a page with its title; `None` when nobody waits for it any more. Links become whole URLs.
pub(in crate::web) fn readable(page: &str, url: &Url, form: PageFormat, stop: &StopFlag) -> Option<String> {
    let nodes = tree::read(page, stop)?;
    let based =
        nodes.iter().find(|node| is_one_of!(node.name(), "base")).and_then(|node| node.attribute(&local_name!("href")));
    let base = based.and_then(|base| url.join(base).ok()).unwrap_or_else(|| url.clone());
    let article = Article::find(&nodes);
    let mut writer = PageWriter::new(&nodes, &base, form, LONGER * page.len() + A_LITTLE);
    let mut range = article.start..article.end;
    if !range.clone().any(|at| is_one_of!(nodes[at].name(), "h1") && !article.leaves_out(at)) {
        writer.title();
    }
    writer.walk(&mut range, |at| article.leaves_out(at));
    if writer.is_full() {
        writer.lines.part(Gap::Block);
        writer.lines.verbatim(TOO_LONG);
    }
    Some(writer.finish())
}

/// A page and its text are about as long. One that says little and means much, such as rows that are to be as wide as the
/// widest, or thousands of links beneath a long address, could become text that no memory holds.
const LONGER: usize = 4;
const A_LITTLE: usize = 64 << 10;
const TOO_LONG: &str = "[the rest is left out: written out, it would be many times as long as the page]";

/// What is to be done when an element ends.
enum Closing {
    Gap(Gap),
    Mark(&'static str),
    Link { here: usize, url: String },
    List,
    Indent(Gap),
}

pub(super) struct PageWriter<'a> {
    pub(super) nodes: &'a [PageNode],
    base: &'a Url,
    pub(super) form: PageFormat,
    pub(super) lines: TextLines,
    open: Vec<(usize, Closing)>,
    /// The number of the next item of each open list; `None` where they have none.
    lists: Vec<Option<usize>>,
    /// Whether all of it must stand on one line, as in a cell.
    pub(super) flat: bool,
    /// How long the text may become.
    pub(super) most: usize,
}

impl<'a> PageWriter<'a> {
    fn new(nodes: &'a [PageNode], base: &'a Url, form: PageFormat, most: usize) -> Self {
        Self { nodes, base, form, lines: TextLines::new(), open: Vec::new(), lists: Vec::new(), flat: false, most }
    }

    /// Whether nothing more should come.
    pub(super) fn is_full(&self) -> bool {
        self.lines.length() > self.most
    }

    /// What lies in a range, on one line.
    pub(super) fn flat(&self, mut range: Range<usize>) -> String {
        let mut writer = PageWriter { flat: true, ..PageWriter::new(self.nodes, self.base, self.form, self.most) };
        writer.walk(&mut range, |_| false);
        writer.finish().replace('\n', " ")
    }

    fn finish(self) -> String {
        self.lines.finish()
    }

    fn title(&mut self) {
        let Some(at) = self.nodes.iter().position(|node| is_one_of!(node.name(), "title")) else { return };
        let title = collected(self.nodes, at);
        if !title.trim().is_empty() {
            self.lines.whole(if self.marks() { "# " } else { "" });
            self.text(&title);
            self.lines.part(Gap::Block);
        }
    }

    /// Goes through nodes in their order, each once, and ends what has ended before each.
    fn walk(&mut self, range: &mut Range<usize>, leave_out: impl Fn(usize) -> bool) {
        let mut at = range.start;
        while at < range.end && !self.is_full() {
            self.close_until(at);
            let node = &self.nodes[at];
            at = match &node.what {
                NodeKind::Text(text) => {
                    self.text(text);
                    at + 1
                }
                NodeKind::Element { .. } if leave_out(at) => node.end,
                NodeKind::Element { .. } => self.element(at),
            };
        }
        self.close_until(usize::MAX);
    }

    fn close_until(&mut self, at: usize) {
        while let Some((_, closing)) = self.open.pop_if(|(end, _)| *end <= at) {
            match closing {
                Closing::Gap(gap) => self.part(gap),
                Closing::Mark(mark) => self.lines.close(mark),
                Closing::Link { here, url } => self.end_link(here, &url),
                Closing::List => {
                    self.lists.pop();
                    self.part(if self.lists.is_empty() { Gap::Block } else { Gap::Line });
                }
                Closing::Indent(gap) => {
                    self.lines.outdent();
                    self.part(gap);
                }
            }
        }
    }

    /// Begins an element, and gives the node to go on with.
    fn element(&mut self, at: usize) -> usize {
        let node = &self.nodes[at];
        match *node.name() {
            local_name!("br") => self.part(Gap::Line),
            local_name!("hr") => self.line_across(),
            local_name!("img") => self.picture(node),
            local_name!("pre") => return self.listing(at),
            local_name!("code") | local_name!("kbd") | local_name!("samp") | local_name!("tt") => return self.code(at),
            local_name!("table") if !self.flat => {
                if let Some(next) = self.table(at) {
                    return next;
                }
                self.block(node.end, Gap::Block);
            }
            local_name!("a") => self.begin_link(node),
            local_name!("b") | local_name!("strong") => self.mark(node.end, "**"),
            local_name!("i") | local_name!("em") | local_name!("cite") | local_name!("dfn") => self.mark(node.end, "*"),
            local_name!("del") | local_name!("s") | local_name!("strike") => self.mark(node.end, "~~"),
            local_name!("h1")
            | local_name!("h2")
            | local_name!("h3")
            | local_name!("h4")
            | local_name!("h5")
            | local_name!("h6") => self.heading(node),
            local_name!("ul") | local_name!("menu") => self.list(node, None),
            local_name!("ol") => self.list(
                node,
                Some(node.attribute(&local_name!("start")).and_then(|first| first.parse().ok()).unwrap_or(1)),
            ),
            local_name!("li") => self.item(node.end),
            local_name!("blockquote") => self.indented(node.end, "> ", None),
            local_name!("dt") | local_name!("summary") => {
                self.block(node.end, Gap::Block);
                self.mark(node.end, "**");
            }
            local_name!("dd") => self.indented(node.end, "  ", None),
            local_name!("td") | local_name!("th") | local_name!("tr") | local_name!("option") => {
                self.block(node.end, Gap::Line)
            }
            _ if node.is_inline => {}
            _ => self.block(node.end, Gap::Block),
        }
        at + 1
    }

    fn marks(&self) -> bool {
        self.form == PageFormat::Markdown
    }

    fn part(&mut self, gap: Gap) {
        if self.flat { self.lines.words(" ", |_, _| {}) } else { self.lines.part(gap) }
    }

    fn block(&mut self, end: usize, gap: Gap) {
        self.part(gap);
        self.open.push((end, Closing::Gap(gap)));
    }

    fn mark(&mut self, end: usize, mark: &'static str) {
        if self.marks() {
            self.lines.open(mark);
            self.open.push((end, Closing::Mark(mark)));
        }
    }

    fn indented(&mut self, end: usize, prefix: &str, mark: Option<String>) {
        if self.flat {
            return self.block(end, Gap::Block);
        }
        self.part(Gap::Block);
        self.lines.indent(prefix, mark);
        self.open.push((end, Closing::Indent(Gap::Block)));
    }

    fn heading(&mut self, node: &PageNode) {
        self.block(node.end, Gap::Block);
        let level: usize = node.name()[1..].parse().unwrap_or(1);
        if self.marks() && !self.flat && node.end > 0 {
            self.lines.whole(&format!("{} ", "#".repeat(level)));
        }
    }

    fn list(&mut self, node: &PageNode, first: Option<usize>) {
        self.part(if self.lists.is_empty() { Gap::Block } else { Gap::Line });
        self.lists.push(first);
        self.open.push((node.end, Closing::List));
    }

    fn item(&mut self, end: usize) {
        if self.flat {
            return self.block(end, Gap::Line);
        }
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.part(Gap::Line);
        self.lines.indent(" ".repeat(mark.len()), Some(mark));
        self.open.push((end, Closing::Indent(Gap::Line)));
    }

    fn line_across(&mut self) {
        self.part(Gap::Block);
        if self.marks() && !self.flat {
            self.lines.whole("---");
            self.part(Gap::Block);
        }
    }

    fn picture(&mut self, node: &PageNode) {
        let alt = node.attribute(&local_name!("alt")).unwrap_or_default().trim().to_owned();
        let source = node.attribute(&local_name!("src")).and_then(|source| self.link(source));
        match source.filter(|_| self.marks() && !alt.is_empty()) {
            Some(source) => {
                self.lines.whole("![");
                self.text(&alt);
                self.lines.after_word(&format!("]({source})"));
            }
            None => self.text(&alt),
        }
    }

    /// A whole URL that may be shown; `None` for scripts, embedded pictures and places on the same page.
    fn link(&self, link: &str) -> Option<String> {
        let link = link.trim();
        if link.is_empty() || link.starts_with('#') {
            return None;
        }
        let url = self.base.join(link).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto")
            .then(|| url.to_string().replace('(', "%28").replace(')', "%29"))
    }

    fn begin_link(&mut self, node: &PageNode) {
        let Some(url) = node.attribute(&local_name!("href")).and_then(|link| self.link(link)).filter(|_| self.marks())
        else {
            return;
        };
        let here = self.lines.here();
        self.lines.whole("[");
        self.open.push((node.end, Closing::Link { here, url }));
    }

    /// A link around nothing is none, and one around blocks only keeps them.
    fn end_link(&mut self, here: usize, url: &str) {
        let text = self.lines.since(here);
        if text.len() <= 1 {
            self.lines.take_back(here);
        } else if text.contains('\n') {
            self.lines.remove(here);
        } else {
            self.lines.after_word(&format!("]({url})"));
        }
    }

    fn listing(&mut self, at: usize) -> usize {
        let node = &self.nodes[at];
        let text = collected(self.nodes, at);
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if self.flat {
            self.lines.words(text, escaped);
            return node.end;
        }
        self.part(Gap::Block);
        if self.marks() {
            let fence = "`".repeat(longest_run(text).max(2) + 1);
            self.lines.verbatim(&format!("{fence}{}\n{text}\n{fence}", language(&self.nodes[at..node.end])));
        } else {
            self.lines.verbatim(text);
        }
        self.part(Gap::Block);
        node.end
    }

    fn code(&mut self, at: usize) -> usize {
        let text = collected(self.nodes, at);
        let trimmed: Vec<&str> = text.split_whitespace().collect();
        let code = trimmed.join(" ");
        if self.marks() && !code.is_empty() {
            let fence = "`".repeat(if code.contains('`') { longest_run(&code) + 1 } else { 1 });
            let room = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
            self.lines.whole(&format!("{fence}{room}{code}{room}{fence}"));
        } else {
            self.lines.words(&code, |text, word| text.push_str(word));
        }
        self.nodes[at].end
    }

    fn text(&mut self, text: &str) {
        if !self.marks() {
            return self.lines.words(text, |text, word| text.push_str(word));
        }
        if !self.lines.is_at_line_start() {
            return self.lines.words(text, escaped);
        }
        // What would make a heading, an item or a quote of a line that is none.
        let begins = text.trim_start();
        let number = begins.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let numbered = number.len() < begins.len() && number.starts_with(". ");
        if ["# ", "## ", "### ", "- ", "+ ", "> "].iter().any(|mark| begins.starts_with(mark)) {
            self.lines.whole("\\");
        } else if numbered {
            let digits = &begins[..begins.len() - number.len()];
            self.lines.whole(&format!("{digits}\\"));
            return self.lines.words(number, escaped);
        }
        self.lines.words(begins, escaped);
    }
}

/// Adds a word in which nothing is taken for Markdown.
fn escaped(text: &mut String, word: &str) {
    // Most words have no letter that could be.
    if !word.bytes().any(|byte| matches!(byte, b'\\' | b'`' | b'*' | b'[' | b']' | b'<' | b'_')) {
        return text.push_str(word);
    }
    let mut before = ' ';
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let inside = before.is_alphanumeric() && letters.peek().is_some_and(|next| next.is_alphanumeric());
        if matches!(letter, '\\' | '`' | '*' | '[' | ']' | '<') || (letter == '_' && !inside) {
            text.push('\\');
        }
        text.push(letter);
        before = letter;
    }
}

/// All text in a node, as it is.
fn collected(nodes: &[PageNode], at: usize) -> String {
    let mut text = String::new();
    for node in &nodes[at..nodes[at].end] {
        match &node.what {
            NodeKind::Text(piece) => text.push_str(piece),
            NodeKind::Element { name, .. } if is_one_of!(name, "br") => text.push('\n'),
            NodeKind::Element { .. } => {}
        }
    }
    text
}

/// The language that a listing says it is in.
fn language(nodes: &[PageNode]) -> &str {
    let classes = nodes.iter().take(3).filter_map(|node| node.attribute(&local_name!("class")));
    let named = classes
        .flat_map(str::split_whitespace)
        .find_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")));
    named.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-#_".contains(&byte))).unwrap_or("")
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

//! A page as one flat list of nodes. Nothing here recurses and everything is bounded, because pages come from strangers.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use html5ever::{
    Attribute, LocalName, local_name,
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts, states::RawKind,
    },
};

use crate::blocking::StopFlag;

/// Elements that lie deeper become siblings, as in browsers.
const DEEPEST: usize = 256;
/// How much of a page is read between two looks at the time and at whether anybody still waits.
const PIECE: usize = 4 << 10;
/// About how many bytes of a page are one node of it.
const BYTES_OF_A_NODE: usize = 16;
/// What is not read by then is left out: a page that takes longer was made to.
const LONGEST: Duration = Duration::from_secs(5);

/// One thing on a page; the list is in the order of the page, so that what lies inside it follows it.
pub(super) struct PageNode {
    pub(super) what: NodeKind,
    /// The first node that does not lie inside.
    pub(super) end: usize,
    /// Whether it is part of a line.
    pub(super) is_inline: bool,
}

pub(super) enum NodeKind {
    Text(StrTendril),
    Element { name: LocalName, attributes: Vec<Attribute> },
}

/// The name of what has none.
static NAMELESS: LocalName = local_name!("");

/// Whether a name is one of those listed. Names that HTML knows are compared as numbers.
macro_rules! is_one_of {
    ($name:expr, $($one:tt)|+) => { matches!(*$name, $(html5ever::local_name!($one))|+) };
}
pub(super) use is_one_of;

impl PageNode {
    /// The name of an element; empty for text.
    pub(super) fn name(&self) -> &LocalName {
        match &self.what {
            NodeKind::Text(_) => &NAMELESS,
            NodeKind::Element { name, .. } => name,
        }
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, wanted: &LocalName) -> Option<&str> {
        match &self.what {
            NodeKind::Text(_) => None,
            NodeKind::Element { attributes, .. } => {
                attributes.iter().find(|attribute| attribute.name.local == *wanted).map(|attribute| &*attribute.value)
            }
        }
    }
}

/// Reads a page; `None` when nobody waits for it any more.
pub(super) fn read(page: &str, stop: &StopFlag) -> Option<Vec<PageNode>> {
    let tokenizer = Tokenizer::new(Builder::for_page(page), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = page;
    let until = Instant::now() + LONGEST;
    while !rest.is_empty() && Instant::now() < until {
        if stop.is_wanted() {
            return None;
        }
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        input.push_back(StrTendril::from_slice(piece));
        // Whatever it comes upon, only the end of the input ends it.
        while !input.is_empty() {
            let _went_on = tokenizer.feed(&input);
        }
        rest = after;
    }
    tokenizer.end();
    Some(tokenizer.sink.0.into_inner().finish())
}

struct Builder(RefCell<NodeTree>);

#[derive(Default)]
struct NodeTree {
    nodes: Vec<PageNode>,
    /// The elements that are open, outermost first.
    open: Vec<usize>,
    /// How many more are open that lie too deep.
    too_deep: usize,
}

impl Builder {
    fn for_page(page: &str) -> Self {
        Self(RefCell::new(NodeTree { nodes: Vec::with_capacity(page.len() / BYTES_OF_A_NODE), ..NodeTree::default() }))
    }
}

impl TokenSink for Builder {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut growing = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => growing.add(NodeKind::Text(text)),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return growing.start(tag),
            Token::TagToken(tag) => growing.end(&tag.name),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

impl NodeTree {
    fn add(&mut self, what: NodeKind) {
        let is_inline = match &what {
            NodeKind::Text(_) => true,
            NodeKind::Element { name, .. } => is_inline(name),
        };
        let end = self.nodes.len() + 1;
        self.nodes.push(PageNode { what, end, is_inline });
    }

    fn start(&mut self, tag: Tag) -> TokenSinkResult<()> {
        self.close_implied(&tag.name);
        let reads_on = raw(&tag.name);
        let is_open = !(is_void(&tag.name) || tag.self_closing && is_foreign(&tag.name));
        self.add(NodeKind::Element { name: tag.name, attributes: tag.attrs });
        if is_open && self.open.len() < DEEPEST {
            self.open.push(self.nodes.len() - 1);
        } else if is_open {
            self.too_deep += 1;
        }
        reads_on.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData)
    }

    fn end(&mut self, name: &LocalName) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let inline = is_inline(name);
        for at in (0..self.open.len()).rev() {
            let open = &self.nodes[self.open[at]];
            if open.name() == name {
                self.close_down_to(at);
                return;
            }
            // A stray end of something small does not end something large.
            if inline && !open.is_inline {
                return;
            }
        }
    }

    /// Ends what a new element leaves no room for: a paragraph in a paragraph, an item in an item, a cell in a cell.
    fn close_implied(&mut self, name: &LocalName) {
        type Is = fn(&LocalName) -> bool;
        let (ended, within): (Is, Is) = match *name {
            local_name!("li") => (|open| is_one_of!(open, "li"), |open| is_one_of!(open, "ul" | "ol" | "menu")),
            local_name!("dt") | local_name!("dd") => {
                (|open| is_one_of!(open, "dt" | "dd"), |open| is_one_of!(open, "dl"))
            }
            local_name!("option") => (|open| is_one_of!(open, "option"), |open| is_one_of!(open, "select")),
            local_name!("td") | local_name!("th") => {
                (|open| is_one_of!(open, "td" | "th"), |open| is_one_of!(open, "tr" | "table"))
            }
            local_name!("tr") => (|open| is_one_of!(open, "tr"), |open| is_one_of!(open, "table")),
            local_name!("thead") | local_name!("tbody") | local_name!("tfoot") => {
                (|open| is_one_of!(open, "thead" | "tbody" | "tfoot"), |open| is_one_of!(open, "table"))
            }
            local_name!("body") => (|open| is_one_of!(open, "head"), |_| false),
            _ if is_inline(name) => return,
            _ => (|open| is_one_of!(open, "p"), holds_paragraphs),
        };
        for at in (0..self.open.len()).rev() {
            let open = self.nodes[self.open[at]].name();
            if ended(open) {
                return self.close_down_to(at);
            }
            if within(open) {
                return;
            }
        }
    }

    fn close_down_to(&mut self, at: usize) {
        let end = self.nodes.len();
        for open in self.open.drain(at..) {
            self.nodes[open].end = end;
        }
    }

    fn finish(mut self) -> Vec<PageNode> {
        self.close_down_to(0);
        self.nodes
    }
}

/// How the content of an element is read when it is no markup.
fn raw(name: &LocalName) -> Option<RawKind> {
    Some(match *name {
        local_name!("script") => RawKind::ScriptData,
        local_name!("style")
        | local_name!("xmp")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes") => RawKind::Rawtext,
        local_name!("title") | local_name!("textarea") => RawKind::Rcdata,
        _ => return None,
    })
}

/// Elements that hold nothing and have no end.
fn is_void(name: &LocalName) -> bool {
    is_one_of!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements of drawings and formulas, which may end where they begin.
fn is_foreign(name: &LocalName) -> bool {
    is_one_of!(
        name,
        "svg" | "math" | "path" | "g" | "use" | "rect" | "circle" | "line" | "polygon" | "polyline" | "ellipse"
    )
}

/// Elements inside which a paragraph is one of their own.
fn holds_paragraphs(name: &LocalName) -> bool {
    is_one_of!(name, "div" | "td" | "th" | "li" | "dd" | "blockquote" | "section" | "article")
}

/// Elements that are part of a line.
fn is_inline(name: &LocalName) -> bool {
    is_one_of!(
        name,
        "a" | "abbr"
            | "acronym"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "br"
            | "button"
            | "cite"
            | "code"
            | "data"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "img"
            | "input"
            | "ins"
            | "kbd"
            | "label"
            | "mark"
            | "q"
            | "rp"
            | "rt"
            | "ruby"
            | "s"
            | "samp"
            | "small"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "time"
            | "tt"
            | "u"
            | "var"
            | "wbr"
    )
}

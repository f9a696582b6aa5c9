//! Which part of a page is what somebody came to read.

use html5ever::{LocalName, local_name};

use super::tree::{NodeKind, PageNode, is_one_of};

/// Shorter than this, a part is no article.
const SHORTEST: usize = 200;
/// Shorter than this, a paragraph says nothing about what it stands in.
const SHORTEST_PARAGRAPH: usize = 25;

/// Words in the class or id of what stands around articles.
const AROUND: &[&str] = &[
    "advert",
    "banner",
    "breadcrumb",
    "combx",
    "comment",
    "cookie",
    "disqus",
    "footer",
    "menu",
    "modal",
    "nav",
    "newsletter",
    "pager",
    "pagination",
    "popup",
    "promo",
    "related",
    "remark",
    "share",
    "shoutbox",
    "sidebar",
    "skyscraper",
    "social",
    "sponsor",
    "subscribe",
    "toolbar",
];
/// Words in the class or id of what holds them.
const HOLDS: &[&str] =
    &["article", "body", "blog", "content", "entry", "hentry", "main", "page", "post", "story", "text"];

/// What of a page is worth reading.
pub(super) struct Article {
    /// The node that holds it; all of the page when that is 0 and no element.
    pub(super) start: usize,
    pub(super) end: usize,
    /// What inside it is not part of it, by node.
    left_out: Vec<bool>,
}

impl Article {
    /// Whether a node and all in it are to be skipped.
    pub(super) fn leaves_out(&self, node: usize) -> bool {
        self.left_out[node]
    }

    pub(super) fn find(nodes: &[PageNode]) -> Self {
        let mut weighed = TextWeights::new(nodes);
        let whole = 0..nodes.len();
        let all = weighed.text(&whole);
        let candidates = [weighed.only(&local_name!("main")), weighed.only(&local_name!("article")), weighed.best()];
        let enough = |node: &usize| weighed.text(&(*node..nodes[*node].end)) >= SHORTEST.max(all / 4);
        let mut chosen = candidates.into_iter().flatten().find(enough);
        // A page of many articles has one within its main part only if that is most of it.
        if let Some(main) = chosen
            && let Some(inner) = weighed.only_within(&local_name!("article"), main)
            && weighed.text(&(inner..nodes[inner].end)) * 2 > weighed.text(&(main..nodes[main].end))
        {
            chosen = Some(inner);
        }
        let range = chosen.map_or(whole, |node| node..nodes[node].end);
        let most = weighed.text(&range) / 2;
        weighed.leave_out_what_stands_around(&range, most);
        Self { start: range.start, end: range.end, left_out: weighed.left_out }
    }
}

struct TextWeights<'a> {
    nodes: &'a [PageNode],
    left_out: Vec<bool>,
    /// How much visible text comes before each node, and how much of it is in links.
    text_before: Vec<usize>,
    link_before: Vec<usize>,
}

impl<'a> TextWeights<'a> {
    fn new(nodes: &'a [PageNode]) -> Self {
        let mut left_out = vec![false; nodes.len()];
        let (mut text_before, mut link_before) = (vec![0; nodes.len() + 1], vec![0; nodes.len() + 1]);
        let (mut hidden_until, mut link_until) = (0, 0);
        for (at, node) in nodes.iter().enumerate() {
            if at >= hidden_until && is_never_shown(node) {
                left_out[at] = true;
                hidden_until = node.end;
            }
            if is_one_of!(node.name(), "a") {
                link_until = node.end;
            }
            let length = match &node.what {
                NodeKind::Text(text) if at >= hidden_until => text.split_whitespace().map(|word| word.len() + 1).sum(),
                NodeKind::Text(_) | NodeKind::Element { .. } => 0,
            };
            text_before[at + 1] = text_before[at] + length;
            link_before[at + 1] = link_before[at] + if at < link_until { length } else { 0 };
        }
        Self { nodes, left_out, text_before, link_before }
    }

    fn text(&self, range: &std::ops::Range<usize>) -> usize {
        self.text_before[range.end] - self.text_before[range.start]
    }

    /// How much of the text in a node is links, from 0 to 1.
    fn links(&self, node: usize) -> f64 {
        let range = node..self.nodes[node].end;
        let links = self.link_before[range.end] - self.link_before[range.start];
        links as f64 / self.text(&range).max(1) as f64
    }

    /// The one element of this name or role on the page.
    fn only(&self, name: &LocalName) -> Option<usize> {
        let is = |node: &PageNode| node.name() == name || node.attribute(&local_name!("role")) == Some(&**name);
        let mut found = self.nodes.iter().enumerate().filter(|(_, node)| is(node)).map(|(at, _)| at);
        found.next().filter(|_| found.next().is_none())
    }

    fn only_within(&self, name: &LocalName, outer: usize) -> Option<usize> {
        let inside = outer + 1..self.nodes[outer].end;
        let mut found = inside.filter(|at| self.nodes[*at].name() == name);
        found.next().filter(|_| found.next().is_none())
    }

    /// The element whose paragraphs hold the most running text.
    fn best(&self) -> Option<usize> {
        let mut scores = vec![0.0_f64; self.nodes.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            while open.last().is_some_and(|last| self.nodes[*last].end <= at) {
                open.pop();
            }
            if is_one_of!(node.name(), "p" | "pre" | "blockquote" | "td") {
                let length = self.text(&(at..node.end));
                if length >= SHORTEST_PARAGRAPH {
                    let score = (1.0 + (length as f64 / 100.0).min(3.0)) * (1.0 - self.links(at));
                    for (share, holder) in [1.0, 0.5, 0.3].into_iter().zip(open.iter().rev()) {
                        scores[*holder] += score * share;
                    }
                }
            }
            if !node.is_inline {
                open.push(at);
            }
        }
        let weight =
            |at: usize| scores[at] * (1.0 - self.links(at)) * if is_around(&self.nodes[at]) { 0.2 } else { 1.0 };
        // Most nodes hold nothing that counts, and a closer look at each would take longer than reading the page.
        let holders = (0..self.nodes.len()).filter(|at| scores[*at] > 0.0).map(|at| (at, weight(at)));
        holders.max_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|(_, weight)| *weight > 0.0).map(|(at, _)| at)
    }

    /// Marks navigation, forms and the like inside the article, unless that would be most of it.
    fn leave_out_what_stands_around(&mut self, range: &std::ops::Range<usize>, most: usize) {
        for at in range.clone().skip(1) {
            let node = &self.nodes[at];
            if matches!(node.what, NodeKind::Text(_)) {
                continue;
            }
            let inside = at..node.end;
            let by_name =
                is_one_of!(node.name(), "nav" | "aside" | "footer" | "button" | "select" | "input" | "textarea");
            let by_role = matches!(
                node.attribute(&local_name!("role")),
                Some("navigation" | "banner" | "contentinfo" | "complementary" | "search" | "menu" | "dialog")
            );
            let by_word = !node.is_inline && self.links(at) > 0.3 && is_around(node);
            if (by_name || by_role || by_word) && self.text(&inside) <= most {
                self.left_out[at] = true;
            }
        }
    }
}

fn is_never_shown(node: &PageNode) -> bool {
    let NodeKind::Element { attributes, .. } = &node.what else { return false };
    let by_name = is_one_of!(
        node.name(),
        "script"
            | "style"
            | "noscript"
            | "template"
            | "head"
            | "iframe"
            | "object"
            | "svg"
            | "math"
            | "canvas"
            | "audio"
            | "video"
            | "dialog"
            | "noembed"
            | "noframes"
            | "datalist"
            | "title"
    );
    let styled = |style: &str| {
        let style: String = style.split_whitespace().collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    if by_name || attributes.is_empty() {
        return by_name;
    }
    node.attribute(&local_name!("hidden")).is_some()
        || node.attribute(&local_name!("aria-hidden")) == Some("true")
        || node.attribute(&local_name!("style")).is_some_and(styled)
}

fn is_around(node: &PageNode) -> bool {
    let words = [node.attribute(&local_name!("class")), node.attribute(&local_name!("id"))];
    let words: Vec<String> = words.into_iter().flatten().map(str::to_ascii_lowercase).collect();
    let has = |list: &[&str]| words.iter().any(|words| list.iter().any(|word| words.contains(word)));
    has(AROUND) && !has(HOLDS)
}

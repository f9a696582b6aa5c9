//! Redirections: which files a statement writes, and what it is given to read.

use tree_sitter::Node;

use super::{CommandParser, fields};
use crate::command::{
    simple::{RedirectWrite, SimpleCommand, StdinSource, WriteMode},
    word::Word,
};

/// What the redirections of a statement say.
#[derive(Default)]
pub(super) struct Redirections<'t> {
    pub(super) writes: Vec<RedirectWrite>,
    pub(super) feed: Option<StdinSource>,
    /// Words of the command that stand behind a redirection.
    pub(super) words: Vec<Word>,
    /// What the line of a here-document goes on with: into a pipe, or after it.
    piped: Vec<Node<'t>>,
    after: Vec<Node<'t>>,
}

impl CommandParser {
    /// A statement with its redirections.
    pub(super) fn redirected(&mut self, node: Node<'_>, text: &str) {
        let body = node.child_by_field_name("body");
        let others = node.named_children(&mut node.walk()).filter(|child| Some(*child) != body).collect::<Vec<_>>();
        let before = self.found.commands.len();
        let mut redirected = self.redirections(&others, text);
        let (piped, after) = (std::mem::take(&mut redirected.piped), std::mem::take(&mut redirected.after));
        match body {
            Some(body) if body.kind() == "command" => self.command(body, text, redirected),
            Some(_) | None => {
                let outer = self.scope.feed.clone();
                self.scope.feed = redirected.feed.take().or_else(|| outer.clone());
                if let Some(body) = body {
                    self.visit(body, text);
                }
                self.scope.feed = outer;
                if !redirected.writes.is_empty() || !redirected.words.is_empty() {
                    let Redirections { writes, words, .. } = redirected;
                    let (folder, feed) = (self.scope.folder.clone(), self.scope.feed.clone());
                    self.simple(SimpleCommand { words, writes, folder, feed, fetched: false });
                }
            }
        }
        for statement in piped {
            self.apart(|it| {
                it.scope.feed = it.output_since(before);
                it.children(statement, text);
            });
        }
        for statement in after {
            self.visit(statement, text);
        }
    }

    /// What these nodes say.
    pub(super) fn redirections<'t>(&mut self, nodes: &[Node<'t>], text: &str) -> Redirections<'t> {
        let mut told = Redirections::default();
        for node in nodes {
            match node.kind() {
                "file_redirect" => self.file_redirect(*node, text, &mut told),
                "herestring_redirect" => {
                    if let Some(word) = node.named_children(&mut node.walk()).last() {
                        told.feed = Some(StdinSource::Text(Word::read(word, text, &self.scope.variables)));
                        self.visit(word, text);
                    }
                }
                "heredoc_redirect" => self.here_redirect(*node, text, &mut told),
                _ => self.visit(*node, text),
            }
        }
        told
    }

    fn file_redirect(&mut self, node: Node<'_>, text: &str, told: &mut Redirections<'_>) {
        let operator = node.children(&mut node.walk()).find(|child| !child.is_named()).map(|child| child.kind());
        let way = match operator {
            Some(">" | "&>" | ">|" | ">&") => Some(WriteMode::Overwrites),
            Some(">>" | "&>>") => Some(WriteMode::Appends),
            Some(_) | None => None,
        };
        for (at, word) in node.children_by_field_name("destination", &mut node.walk()).enumerate() {
            let read = Word::read(word, text, &self.scope.variables);
            self.visit(word, text);
            match (at, way) {
                // The grammar takes every word after a redirection for its target, a shell only the first.
                (1.., _) => told.words.push(read),
                // `2>&1` writes to no file.
                (0, Some(way)) if word.kind() != "number" => told.writes.push(RedirectWrite { to: read, way }),
                (0, _) => {}
            }
        }
    }

    fn here_redirect<'t>(&mut self, node: Node<'t>, text: &str, told: &mut Redirections<'t>) {
        let raw = node
            .named_children(&mut node.walk())
            .any(|child| child.kind() == "heredoc_start" && text[child.byte_range()].contains(['\'', '"', '\\']));
        for (field, child) in fields(node) {
            match (field, child.kind()) {
                (Some("argument"), _) => told.words.push(Word::read(child, text, &self.scope.variables)),
                (Some("right"), _) => told.after.push(child),
                (_, "pipeline") => told.piped.push(child),
                (_, "file_redirect") => self.file_redirect(child, text, told),
                (_, "heredoc_body") => {
                    let body = &text[child.byte_range()];
                    let known = raw || !body.contains(['$', '`']);
                    told.feed = Some(StdinSource::Text(if known { Word::quoted(body) } else { Word::unknown(body) }));
                    if !raw {
                        self.visit(child, text);
                    }
                }
                _ => {}
            }
        }
    }

    /// A here-document in which a shell looks for `$(…)`.
    pub(super) fn here_document(&mut self, node: Node<'_>, text: &str) {
        let body = &text[node.byte_range()];
        if node.named_child_count() == 0 && (body.contains("$(") || body.contains('`')) {
            self.unclear("a here-document runs commands of its own");
        }
        self.children(node, text);
    }
}

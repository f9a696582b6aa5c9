//! From text to simple commands, through every place where a shell would find one.

mod redirect;

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use redirect::Redirections;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::{
    inner::{InnerCommand, Shell, inner},
    programs,
    simple::{SimpleCommand, StdinSource, short},
    word::{Variables, Word},
};

/// How much text is read; more is unclear.
const LONGEST: usize = 64 * 1024;
/// How long reading may take, all scripts inside of it included.
const TIME: Duration = Duration::from_secs(2);
/// How many simple commands are kept.
const MOST_COMMANDS: usize = 1_000;
/// How deep a tree is followed.
const DEEPEST: usize = 150;
/// How much deeper it is inside of a command that another runs.
const INNER: usize = 10;
/// How many `cd`s one after the other are followed.
const MOST_FOLDERS: usize = 32;

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct ParsedCommands {
    pub(super) commands: Vec<SimpleCommand>,
    /// The first thing that could not be read.
    pub(super) unclear: Option<String>,
    /// A function starts itself twice in a pipe.
    pub(super) bomb: bool,
}

/// Reads a whole command line.
pub(super) fn read(text: &str) -> ParsedCommands {
    let mut reader = CommandParser {
        until: Instant::now() + TIME,
        found: ParsedCommands::default(),
        scope: ShellScope::default(),
        depth: 0,
    };
    reader.script(text);
    reader.found
}

struct CommandParser {
    until: Instant,
    found: ParsedCommands,
    scope: ShellScope,
    depth: usize,
}

/// What a subshell has of its own.
#[derive(Clone, Default)]
struct ShellScope {
    folder: Vec<Word>,
    variables: Variables,
    feed: Option<StdinSource>,
    /// The functions around this place.
    functions: Vec<String>,
}

impl CommandParser {
    fn script(&mut self, text: &str) {
        if text.len() > LONGEST {
            return self.unclear(&format!("it is longer than {} KiB", LONGEST / 1024));
        }
        let Some(tree) = parse(text, self.until) else {
            return self.unclear("it takes too long to read");
        };
        let root = tree.root_node();
        if root.has_error() {
            self.unclear("it is no whole shell syntax: a quote, a bracket or a word is missing");
        }
        self.visit(root, text);
    }

    fn unclear(&mut self, what: &str) {
        self.found.unclear.get_or_insert_with(|| short(what));
    }

    /// Whether there is time, depth and room for more.
    fn goes_on(&mut self) -> bool {
        let why = if self.depth >= DEEPEST {
            "it is nested too deep".to_owned()
        } else if self.found.commands.len() >= MOST_COMMANDS {
            format!("it has more than {MOST_COMMANDS} commands")
        } else if Instant::now() > self.until {
            "it takes too long to read".to_owned()
        } else {
            return true;
        };
        self.unclear(&why);
        false
    }

    /// Looks at a node and at everything in it.
    fn visit(&mut self, node: Node<'_>, text: &str) {
        if !self.goes_on() {
            return;
        }
        self.depth += 1;
        match node.kind() {
            "command" => self.command(node, text, Redirections::default()),
            "redirected_statement" => self.redirected(node, text),
            "pipeline" => self.pipeline(node, text),
            "subshell" | "command_substitution" | "process_substitution" => self.apart(|it| it.children(node, text)),
            "function_definition" => self.function(node, text),
            "variable_assignment" => self.assignment(node, text),
            "for_statement" => self.every_turn(node, text),
            "heredoc_body" => self.here_document(node, text),
            _ => self.children(node, text),
        }
        self.depth -= 1;
    }

    fn children(&mut self, node: Node<'_>, text: &str) {
        for child in node.named_children(&mut node.walk()) {
            self.visit(child, text);
        }
    }

    /// What happens inside changes nothing outside.
    fn apart(&mut self, inside: impl FnOnce(&mut Self)) {
        let outside = self.scope.clone();
        inside(self);
        self.scope = outside;
    }

    fn command(&mut self, node: Node<'_>, text: &str, redirected: Redirections<'_>) {
        let Redirections { mut writes, mut feed, words: behind, .. } = redirected;
        let (before, mut words) = (self.found.commands.len(), Vec::new());
        for (field, child) in fields(node) {
            match field {
                Some("name" | "argument") => {
                    words.push(Word::read(child, text, &self.scope.variables));
                    self.visit(child, text);
                }
                Some("redirect") => {
                    let more = self.redirections(&[child], text);
                    feed = more.feed.or(feed);
                    writes.extend(more.writes);
                    words.extend(more.words);
                }
                // Such an assignment holds for the program, not for the words beside it.
                _ if child.kind() == "variable_assignment" => self.children(child, text),
                _ => self.visit(child, text),
            }
        }
        words.extend(behind);
        let fetched = self.found.commands[before..].iter().any(programs::fetches);
        let feed = feed.or_else(|| self.scope.feed.clone());
        self.simple(SimpleCommand { words, writes, folder: self.scope.folder.clone(), feed, fetched });
    }

    /// Keeps a simple command, and reads what it runs in turn.
    fn simple(&mut self, simple: SimpleCommand) {
        if !self.goes_on() {
            return;
        }
        let program = simple.program();
        match (&program, simple.words.first()) {
            (Some(program), _) => self.goes_to(program, simple.rest()),
            (None, Some(name)) => self.unclear(&format!("`{}` names a program only when it runs", name.source())),
            (None, None) => {}
        }
        let (inside, around) = (inner(&simple), simple.clone());
        self.found.commands.push(simple);
        self.depth += INNER;
        for part in inside {
            match part {
                InnerCommand::Words(words) => {
                    let only_a_way = program.as_deref().is_some_and(programs::is_only_a_way);
                    let writes = if only_a_way { around.writes.clone() } else { Vec::new() };
                    self.simple(SimpleCommand { words, writes, ..around.clone() });
                }
                InnerCommand::Script { word, shell } => self.inner_script(&word, shell),
                InnerCommand::Unread(what) => self.unclear(&what),
            }
        }
        self.depth -= INNER;
    }

    fn inner_script(&mut self, word: &Word, shell: Shell) {
        if !word.is_known() {
            self.unclear(&format!("`{}` is a script that is put together only when it runs", word.source()));
        }
        match shell {
            Shell::Own => self.apart(|it| it.script(&word.script())),
            Shell::Same => self.script(&word.script()),
        }
    }

    /// Follows `cd`, so that later words can be resolved.
    fn goes_to(&mut self, program: &str, rest: &[Word]) {
        let to = match program {
            "cd" | "pushd" => {
                let operand =
                    rest.iter().find(|word| word.literal().is_none_or(|text| text.len() < 2 || !text.starts_with('-')));
                operand.cloned().unwrap_or_else(|| Word::bare("~"))
            }
            "popd" => Word::unknown("popd"),
            _ => return,
        };
        if self.scope.folder.len() >= MOST_FOLDERS {
            self.scope.folder.clear();
            self.scope.folder.push(Word::unknown("cd"));
        }
        self.scope.folder.push(if to.literal().as_deref() == Some("-") { Word::unknown("cd -") } else { to });
    }

    fn pipeline(&mut self, node: Node<'_>, text: &str) {
        let begin = self.found.commands.len();
        let mut feed = self.scope.feed.clone();
        for statement in node.named_children(&mut node.walk()) {
            let before = self.found.commands.len();
            self.apart(|it| {
                it.scope.feed = feed.clone();
                it.visit(statement, text);
            });
            feed = self.output_since(before).or(feed);
        }
        let itself = |function: &String| {
            let calls =
                self.found.commands[begin..].iter().filter(|command| command.program().as_ref() == Some(function));
            calls.count() > 1
        };
        self.found.bomb |= self.scope.functions.iter().any(itself);
    }

    /// What the commands from there on print.
    fn output_since(&self, before: usize) -> Option<StdinSource> {
        let commands = self.found.commands.get(before..)?;
        let last = commands.last()?;
        let said = if commands.len() == 1 { last.says() } else { None };
        Some(said.map_or_else(
            || StdinSource::Pipe {
                from: last.program().unwrap_or_else(|| "another program".to_owned()),
                fetched: commands.iter().any(|command| {
                    programs::fetches(command) || matches!(command.feed, Some(StdinSource::Pipe { fetched: true, .. }))
                }),
            },
            StdinSource::Text,
        ))
    }

    fn function(&mut self, node: Node<'_>, text: &str) {
        let name = node.child_by_field_name("name").map(|name| text[name.byte_range()].to_owned());
        self.apart(|it| {
            it.scope.functions.extend(name);
            it.children(node, text);
        });
    }

    fn assignment(&mut self, node: Node<'_>, text: &str) {
        let value = node.child_by_field_name("value");
        if let Some(name) = node.child_by_field_name("name") {
            let adds = node.children(&mut node.walk()).any(|child| child.kind() == "+=");
            let known = value.filter(|value| !adds && value.kind() != "array");
            let word = known.map(|value| Word::read(value, text, &self.scope.variables)).filter(Word::is_known);
            self.scope.variables.insert(text[name.byte_range()].to_owned(), word);
        }
        self.children(node, text);
    }

    /// A loop: its variable is another thing each time.
    fn every_turn(&mut self, node: Node<'_>, text: &str) {
        if let Some(name) = node.child_by_field_name("variable") {
            self.scope.variables.insert(text[name.byte_range()].to_owned(), None);
        }
        self.children(node, text);
    }
}

/// The children with the names of their fields.
fn fields(node: Node<'_>) -> Vec<(Option<&'static str>, Node<'_>)> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    let mut more = cursor.goto_first_child();
    while more {
        found.push((cursor.field_name(), cursor.node()));
        more = cursor.goto_next_sibling();
    }
    found
}

fn parse(text: &str, until: Instant) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut in_time = |_: &_| if Instant::now() > until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = ParseOptions::new().progress_callback(&mut in_time);
    // The grammar's scanner looks letters up in a table of 256, so that others would be read from beyond it. To a shell
    // they are all parts of words, like `x`; every place in the text stays where it is.
    let plain: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    parser.parse_with_options(&mut |from, _| plain.get(from..).unwrap_or_default(), None, Some(options))
}

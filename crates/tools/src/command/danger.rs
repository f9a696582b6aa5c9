//! What is refused in every mode: commands whose resolved target is the system, the home folder, or a disk.

use super::{
    args::Args,
    simple::{SimpleCommand, base_name},
    target::{Places, ShellPath},
    word::Word,
};

/// Tests of `find` that leave nothing of a tree out.
const UNSELECTIVE: &[&str] = &["-type", "-mindepth", "-maxdepth"];
/// Options and actions of `find` that select nothing.
const NO_TEST: &[&str] = &[
    "-delete", "-depth", "-d", "-xdev", "-mount", "-print", "-print0", "-ls", "-follow", "-H", "-L", "-P", "-o", "-a",
    "-true",
];

/// Why the command is refused.
pub(super) fn of(simple: &SimpleCommand, places: &Places<'_>) -> Option<String> {
    let look = DangerCheck { simple, places };
    if simple.writes.iter().any(|write| look.is_disk(&write.to)) {
        return Some(on_disk("the redirection"));
    }
    let program = simple.program()?;
    match program.as_str() {
        "rm" => look.removal(),
        "find" => look.search(),
        "dd" => look.copies_onto_disk(),
        "wipefs" => {
            let args = Args::read(simple.rest(), "ot");
            let wipes = args.has('a', "all") || args.has('o', "offset");
            (wipes && look.any_disk(&args.operands)).then(|| on_disk("`wipefs`"))
        }
        "shred" | "tee" | "blkdiscard" | "mkswap" => {
            look.any_disk(&Args::read(simple.rest(), "").operands).then(|| on_disk(&format!("`{program}`")))
        }
        "cp" => {
            let args = Args::read(simple.rest(), "tS");
            args.operands.last().is_some_and(|to| look.is_disk(to)).then(|| on_disk("`cp`"))
        }
        format if format == "mkfs" || format.starts_with("mkfs.") || format == "mke2fs" => {
            look.any_disk(&Args::read(simple.rest(), "").operands).then(|| on_disk(&format!("`{program}`")))
        }
        _ => None,
    }
}

fn on_disk(what: &str) -> String {
    format!("{what} would write over a disk; work on an image file inside the workspace instead")
}

struct DangerCheck<'a> {
    simple: &'a SimpleCommand,
    places: &'a Places<'a>,
}

impl DangerCheck<'_> {
    fn target(&self, word: &Word) -> Option<ShellPath> {
        ShellPath::resolve(word, &self.simple.folder, self.places)
    }

    fn is_disk(&self, word: &Word) -> bool {
        self.target(word).is_some_and(|target| target.is_disk())
    }

    fn any_disk(&self, words: &[&Word]) -> bool {
        words.iter().any(|word| self.is_disk(word))
    }

    /// `rm -r` of a vital folder. Without `-f` as well: there is nobody at the keyboard whom `rm` could ask.
    fn removal(&self) -> Option<String> {
        let args = Args::read(self.simple.rest(), "");
        if !args.has('r', "recursive") && !args.has('R', "recursive") {
            return None;
        }
        if args.has_long("no-preserve-root") {
            return Some("`rm --no-preserve-root` is only of use to delete the whole system".to_owned());
        }
        self.loss("rm", &args.operands)
    }

    /// `find` that deletes whatever it comes across.
    fn search(&self) -> Option<String> {
        let rest = self.simple.rest();
        let begins_test = |word: &Word| word.literal().is_some_and(|text| text.starts_with(['-', '(', '!']));
        let leading =
            rest.iter().take_while(|word| matches!(word.literal().as_deref(), Some("-H" | "-L" | "-P"))).count();
        let places: Vec<&Word> = rest[leading..].iter().take_while(|word| !begins_test(word)).collect();
        let tests = &rest[leading + places.len()..];
        if !deletes(tests) || selects(tests) {
            return None;
        }
        // Without a place it begins where it is.
        let here = Word::bare(".");
        let places = if places.is_empty() { vec![&here] } else { places };
        self.loss("find", &places)
    }

    fn loss(&self, program: &str, words: &[&Word]) -> Option<String> {
        let (word, vital) = words.iter().find_map(|word| Some((word, self.target(word)?.vital(self.places)?)))?;
        Some(format!(
            "`{program}` would delete {} (`{}`); name what should go, inside the workspace",
            vital.words(),
            word.source()
        ))
    }

    fn copies_onto_disk(&self) -> Option<String> {
        let mut words = self.simple.rest().iter().filter_map(Word::literal);
        let to = words.find_map(|word| word.strip_prefix("of=").map(Word::bare));
        to.is_some_and(|to| self.is_disk(&to)).then(|| on_disk("`dd`"))
    }
}

fn deletes(tests: &[Word]) -> bool {
    let words: Vec<String> = tests.iter().map(|word| word.literal().unwrap_or_default()).collect();
    words.iter().any(|word| word == "-delete")
        || words.windows(2).any(|pair| {
            ["-exec", "-execdir"].contains(&pair[0].as_str())
                && ["rm", "shred", "unlink"].contains(&base_name(&pair[1]))
        })
}

/// Whether a test narrows down what is found.
fn selects(tests: &[Word]) -> bool {
    let mut words = tests.iter().map(|word| word.literal().unwrap_or_default());
    while let Some(word) = words.next() {
        if UNSELECTIVE.contains(&word.as_str()) {
            words.next();
        } else if word.starts_with("-exec") {
            words.by_ref().find(|word| word == ";" || word == "+");
        } else if word.starts_with('-') && !NO_TEST.contains(&word.as_str()) {
            return true;
        }
    }
    false
}

//! Text that is made to hurt whoever reads it: it must end soon, and say that it was not read.

use proptest::prelude::*;

use crate::command::CommandLine;

#[test]
fn what_is_too_much_is_unclear() {
    let deep = |open: &str, close: &str| format!("{}true{}", open.repeat(3_000), close.repeat(3_000));
    let mut laughs = "a=xxxxxxxxxxxxxxxxxxxx;".to_owned();
    for _ in 0..40 {
        laughs.push_str("a=\"$a$a\";");
    }
    laughs.push_str("$a");
    let all = [
        "x ".repeat(40_000),
        "a;".repeat(5_000),
        "cd a;".repeat(5_000),
        "a|".repeat(3_000) + "a",
        "a && ".repeat(5_000) + "a",
        deep("(", ")"),
        deep("$(", ")"),
        deep("{ ", ";}"),
        deep("\"$(", ")\""),
        deep("eval ", ""),
        deep("sudo ", ""),
        "((((".repeat(4_000),
        "\"$(`".repeat(8_000),
        "<<A ".repeat(3_000),
        laughs,
    ];
    for text in all {
        let command = CommandLine::read(&text);
        assert!(command.unclear().is_some(), "{}…", &text[..40]);
        assert!(command.forced_ask().is_some(), "{}…", &text[..40]);
    }
}

/// A number in braces that ends in a letter from far away: the grammar's scanner must never see it.
#[test]
fn letters_from_far_away_are_parts_of_words() {
    for far in ['\u{fdfa}', '\u{1f574}', '\u{e0194}', '\u{10ffff}'] {
        let command = CommandLine::read(&format!("echo {{1..{far}}} {{{far}; rm a{far}b"));
        assert!(command.explained().iter().any(|line| line.program == "rm" && line.words.contains(far)), "{far:?}");
    }
}

proptest! {
    /// Whatever the text, it is read without a fault.
    #[test]
    fn any_text_can_be_read(text in "\\PC{0,60}") {
        let command = CommandLine::read(&text);
        drop((command.explained(), command.unclear(), command.runs_others()));
    }

    /// The same of text that nearly is a command.
    #[test]
    fn any_tokens_can_be_read(tokens in proptest::collection::vec(
        prop::sample::select(vec![
            "rm", "-rf", "/", "ä", "'", "\"", "`", "$(", ")", "(", "{", "}", ";", "|", "&", "<<EOF", "\n", "EOF", "<<<", ">", "$X",
            "${", "${X", "$'", "\\", "if", "then", "fi", "f()", "=", "a=", "[[", "]]", "find", "-exec", "sudo", "bash", "-c", "eval", "*",
        ]), 0..25)) {
        for glue in ["", " "] {
            let command = CommandLine::read(&tokens.join(glue));
            drop((command.explained(), command.unclear(), command.runs_others()));
        }
    }
}

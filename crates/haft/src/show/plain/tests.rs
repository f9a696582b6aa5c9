//! Text that hides something, and text that only is of another language.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::{Plain, folded, is_plain, plain, plain_command};

fn marked(text: &str, marked: usize) -> Plain {
    Plain { text: text.to_owned(), marked }
}

/// Text that everybody may write.
const ORDINARY: &[&str] = &[
    "plain\n\ttext",
    "Größe, Übergröße, naïve, «ça va»",
    "e\u{301}te\u{301} in the way of a Mac",
    "Tiếng Việt, Tie\u{302}\u{301}ng Vie\u{323}\u{302}t",
    "漢字とかな、葛\u{e0100}城市、中文。",
    "한국어 문장",
    "العربية هِيَ لُغَةٌ ١٢٣",
    "می\u{200c}خواهم",
    "हिन्दी में क्\u{200d}ष और श्री",
    "বাংলা র\u{200d}্যাব",
    "ไทย ที่ นี้ กำ",
    "שָׁלוֹם עוֹלָם",
    "русский текст, Ελληνικά",
    "👍🏽 👩\u{200d}💻 👨\u{200d}👩\u{200d}👧\u{200d}👦 ❤\u{fe0f} 🏳\u{fe0f}\u{200d}🌈 1\u{fe0f}\u{20e3} 🇩🇪 🧑🏾\u{200d}🚒",
    "≠ → ∑ € £ ½ “quoted” – dash… ©",
    "日本語\u{3000}空白 and\u{a0}more",
];

#[test]
fn every_language_stays_as_it_is() {
    for text in ORDINARY {
        assert_eq!(plain(text), marked(text, 0));
    }
}

#[test]
fn what_hides_is_written_out() {
    let all = [
        ("rm \u{202e}x", "rm \\u{202e}x", 1),
        ("a\u{200b}b", "a\\u{200b}b", 1),
        ("\u{feff}a", "\\u{feff}a", 1),
        ("a\u{ad}b", "a\\u{ad}b", 1),
        ("\x1b[2Jx\r", "\\u{1b}[2Jx\\u{d}", 2),
        ("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\u{7f}\\u{0}", 3),
        ("a\u{2028}b", "a\\u{2028}b", 1),
        ("\u{e000}\u{10ffff}\u{378}", "\\u{e000}\\u{10ffff}\\u{378}", 3),
        ("hi\u{e0068}\u{e0069}", "hi\\u{e0068}\\u{e0069}", 2),
        ("🏴\u{e0067}\u{e007f}", "🏴\\u{e0067}\\u{e007f}", 2),
        ("a\u{200d}b", "a\\u{200d}b", 1),
        ("a\u{200c}b", "a\\u{200c}b", 1),
        ("می\u{200c}\u{200c}خ", "می\\u{200c}\\u{200c}خ", 2),
        ("a\u{fe0f}b", "a\\u{fe0f}b", 1),
        ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}", 1),
        ("a\u{e0101}", "a\\u{e0101}", 1),
        ("👩\u{200d}a", "👩\\u{200d}a", 1),
        ("\u{301}a", "\\u{301}a", 1),
        ("x \u{338}a", "x \\u{338}a", 1),
        ("\u{3164}\u{115f}\u{2800}", "\\u{3164}\\u{115f}\\u{2800}", 3),
        ("a\u{34f}b", "a\\u{34f}b", 1),
    ];
    for (text, expected, count) in all {
        assert_eq!(plain(text), marked(expected, count));
        assert_eq!(plain_command(text), marked(expected, count));
    }
}

#[test]
fn heaps_of_marks_are_cut_down() {
    let heap = format!("z{}", "\u{335}\u{301}\u{30b}".repeat(10));
    assert_eq!(plain(&heap).marked, 26);
}

/// From the paper "Trojan Source" (CVE-2021-42574, CVE-2021-42694).
#[test]
fn trojan_sources_are_seen() {
    let all = [
        ("/*\u{202e} } \u{2066}if (isAdmin)\u{2069} \u{2066} begin admins only */", 4),
        ("if access_level != 'none\u{202e}\u{2066}': # Check if admin\u{2069}\u{2066}' and access_level != 'user'", 4),
        ("''' Subtract funds from bank account then \u{2067}''' ;return", 1),
        ("/* Say hello; newline\u{2067} /*/ return 0 ;", 1),
    ];
    for (text, count) in all {
        let shown = plain(text);
        assert_eq!(shown.marked, count, "{}", shown.text);
        assert!(!shown.text.contains(['\u{202e}', '\u{2066}', '\u{2067}', '\u{2069}']), "{}", shown.text);
    }
    assert_eq!(plain_command("say\u{41d}ello()"), marked("say\\u{41d}ello()", 1));
}

#[test]
fn what_looks_like_a_command_is_written_out() {
    let all = [
        ("c\u{430}t x", "c\\u{430}t x", 1),
        ("\u{441}\u{430}t x", "\\u{441}\\u{430}t x", 2),
        ("\u{441}\u{443} x", "\\u{441}\\u{443} x", 2),
        ("f\u{3bf}o/b\u{430}r", "f\\u{3bf}o/b\\u{430}r", 2),
        ("ｒｍ x", "\\u{ff52}\\u{ff4d} x", 2),
        ("𝐫𝐦 x", "\\u{1d42b}\\u{1d426} x", 2),
        ("ls\u{37e} x", "ls\\u{37e} x", 1),
        ("rm \u{2013}rf", "rm \\u{2013}rf", 1),
        ("a\u{2215}b", "a\\u{2215}b", 1),
        ("a\u{a0}b", "a\\u{a0}b", 1),
        ("l\u{455}", "l\\u{455}", 1),
        ("ﬁnd .", "\\u{fb01}nd .", 1),
        ("\u{261}it push", "\\u{261}it push", 1),
    ];
    for (text, expected, count) in all {
        assert_eq!(plain_command(text), marked(expected, count), "{text}");
    }
}

#[test]
fn names_in_other_languages_stay_readable_in_a_command() {
    let all = [
        "mv Größe.txt œuvre-æble-kapı-łódź.md",
        "git commit -m 'не работает с сетью, со склада'",
        "cat файл.txt документы/отчёт.pdf",
        "cat αρχείο.txt",
        "ls 文書/報告書.pdf AIノート.md 日本語テスト",
        "ls 한글.txt",
        "ls ملف.txt",
        "ls हिन्दी.txt",
        "echo '👩\u{200d}💻 done – really “so”, don’t'",
        "echo naïve café",
    ];
    for text in all {
        assert_eq!(plain_command(text), marked(text, 0));
    }
}

#[test]
fn long_lines_are_folded_and_nothing_is_lost() {
    assert_eq!(folded("one two three", 8), ["one two ", "three"]);
    assert_eq!(folded("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(folded("a\n\nb", 10), ["a", "", "b"]);
    assert_eq!(folded("漢字漢字", 5), ["漢字", "漢字"]);
    assert_eq!(folded("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    assert_eq!(folded("x👩\u{200d}💻y", 3), ["x👩\u{200d}💻", "y"]);
    assert_eq!(folded("  indented words", 10), ["  indented", " words"]);
    assert_eq!(folded("", 10), [""]);
    assert_eq!(folded("漢", 1), ["漢"]);
}

proptest! {
    #[test]
    fn folding_keeps_every_character(text in "[ a-z漢é\t]{0,80}", width in 2_usize..20) {
        let lines = folded(&text, width);
        prop_assert_eq!(lines.concat(), text);
        for line in lines.iter().filter(|line| !line.contains('\t')) {
            prop_assert!(line.as_str().width() <= width, "{:?}", line);
        }
    }

    /// Whatever the text: no control character but the two of ordinary lines is left, and the number is right.
    #[test]
    fn nothing_is_left_that_moves_the_cursor(text in "(?s).{0,40}") {
        for shown in [plain(&text), plain_command(&text)] {
            prop_assert!(!shown.text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t'));
            prop_assert_eq!(shown.marked == 0, shown.text == text);
            prop_assert_eq!(plain(&shown.text).marked, 0);
        }
    }
}

#[test]
fn what_cannot_be_trusted_is_seen_anywhere_in_a_long_text() {
    let long = "plain text\tand\n".repeat(100);
    assert!(is_plain(&long) && is_plain(""));
    for at in [0, 1, 254, 255, 256, 257, 511, 512, 1023, long.len() - 1] {
        for odd in ["\u{1b}", "\r", "\u{7f}", "\0"] {
            let mut text = long.clone();
            text.replace_range(at..=at, odd);
            assert!(!is_plain(&text), "{odd:?} at {at}");
        }
    }
}

proptest! {
    #[test]
    fn only_ascii_that_is_seen_is_plain(text in "[ -~\\n\\t]{0,40}", odd in any::<char>(), at in 0usize..40) {
        prop_assert!(is_plain(&text));
        let at = at.min(text.len());
        let with_odd = format!("{}{odd}{}", &text[..at], &text[at..]);
        prop_assert_eq!(is_plain(&with_odd), matches!(odd, ' '..='~' | '\n' | '\t'), "{:?}", with_odd);
    }
}

#[test]
fn every_byte_of_ascii_is_judged_by_itself() {
    for byte in 0..=0x7f_u8 {
        let text = format!("ab{}\ty\n~ and more", char::from(byte));
        assert_eq!(is_plain(&text), matches!(byte, b' '..=b'~' | b'\n' | b'\t'), "{byte}");
    }
}

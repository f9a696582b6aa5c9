//! Text from models and files, made safe to look at: nothing in it can move the cursor, hide or look like something else.

/// The text with control, bidirectional, zero-width and other invisible characters written out as `⟨U+202E⟩`.
pub(crate) fn safe(text: &str) -> String {
    if !text.chars().any(hides) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if hides(letter) {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    shown
}

fn hides(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{3164}' => true,
        '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' => true,
        '\u{E0000}'..='\u{E0FFF}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn nothing_hides() {
        assert_eq!(safe("plain\n\tüñí 漢字 🙂"), "plain\n\tüñí 漢字 🙂");
        assert_eq!(safe("rm \u{202E}x"), "rm ⟨U+202E⟩x");
        assert_eq!(safe("a\u{200B}b\x1b[2J\r"), "a⟨U+200B⟩b⟨U+001B⟩[2J⟨U+000D⟩");
    }
}

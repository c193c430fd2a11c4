//! Texts of others in mails: titles of errors are written by whoever has a DSN.

/// The most characters of a text in a line.
const MAX_LINE: usize = 160;
/// What ends a text that was cut.
const ELLIPSIS: char = '…';
/// Between letters that would look like an address, so that no mail program makes a link of them: it is
/// not seen, and is no break.
const WORD_JOINER: char = '\u{2060}';

/// A text in one line: without control characters, without what turns the direction of others around it,
/// and without anything that a mail program would make a link of.
pub(super) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut length = 0;
    for character in text.chars() {
        let character = if character.is_whitespace() { ' ' } else { character };
        if is_hidden(character) || character == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        if length == MAX_LINE {
            line.push(ELLIPSIS);
            break;
        }
        // `https://…`, `www.…`, `evil.example`, `a@b`: by what is shown, not by what stood in between.
        if (character.is_alphanumeric() || character == '/') && line.ends_with([':', '.', '@']) {
            line.push(WORD_JOINER);
        }
        line.push(character);
        length += 1;
    }
    line.trim_end().to_owned()
}

/// The same for a subject, which no program makes links of.
pub(super) fn subject(text: &str) -> String {
    line(text).replace(WORD_JOINER, "")
}

/// Whether a character is not to be seen, or changes how others are.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_that_shows_all_that_it_has() {
        assert_eq!(line("  a\r\nBcc: b\t c\0d\u{202e}e\u{200b}f "), "a Bcc: b cdef");
        assert_eq!(line(""), "");
        assert_eq!(line("\u{202e}\n"), "");
        assert_eq!(line("größe 😀"), "größe 😀");
    }

    #[test]
    fn a_text_is_no_link() {
        assert_eq!(line("https://evil.example/a"), "https:\u{2060}//evil.\u{2060}example/a");
        assert_eq!(line("mail me@b.de."), "mail me@\u{2060}b.\u{2060}de.");
        // What is hidden is dropped, and hides nothing.
        assert_eq!(line("evil.\u{200b}example"), "evil.\u{2060}example");
        assert_eq!(line("https:\u{1}//x"), "https:\u{2060}//x");
        assert_eq!(line("a@\u{2060}\u{ad}b"), "a@\u{2060}b");
        assert_eq!(subject("see evil.example"), "see evil.example");
    }

    #[test]
    fn a_long_text_is_cut() {
        let cut = line(&"é".repeat(200));
        assert_eq!(cut.chars().count(), 161);
        assert!(cut.ends_with('…'));
    }
}

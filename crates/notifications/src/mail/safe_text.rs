//! Untrusted texts in emails. For example, a DSN holder chooses error titles.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Maximum characters of a line.
const MAX_LINE: usize = 160;
/// End of a truncated text.
const ELLIPSIS: char = '…';
/// Invisible character without a line break. After a delimiter, it keeps email clients from
/// linking the text.
const WORD_JOINER: char = '\u{2060}';
/// Delimiters of addresses, with all characters that IDNA and NFKC map to `.`, `:` and `@`.
const DELIMITERS: &[char] = &[
    ':', '.', '@', '\u{2024}', '\u{3002}', '\u{fe13}', '\u{fe52}', '\u{fe55}', '\u{fe6b}',
    '\u{ff0e}', '\u{ff1a}', '\u{ff20}', '\u{ff61}',
];
/// Zero-width character between digits. A word joiner has no effect on telephone numbers: clients
/// that detect them skip it.
const NON_JOINER: char = '\u{200c}';
/// Maximum digits in a row, with any separators. Android links five.
const MAX_DIGITS: usize = 4;
/// Maximum combining marks on a letter. More overlap the lines above and below.
const MAX_MARKS: usize = 2;
/// An invisible character that Unicode does not classify as white space.
const BRAILLE_BLANK: char = '\u{2800}';
/// Title for texts without visible characters.
const NO_TITLE: &str = "(no title)";

/// Returns a text as one line, truncated to [`MAX_LINE`]. Empty if it has no visible characters.
///
/// Drops invisible characters, changes of the text direction and excess combining marks.
/// Inserts invisible characters where an email client would detect a link.
pub(super) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let (mut length, mut marks, mut digits) = (0, 0, 0);
    for character in text.chars() {
        let character = if character.is_whitespace() { ' ' } else { character };
        if is_hidden(character) || character == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        match character.general_category() {
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark => {
                marks += 1;
                // A mark without a letter is dropped.
                if marks > MAX_MARKS || line.is_empty() {
                    continue;
                }
            }
            // A spacing mark belongs to the previous letter.
            GeneralCategory::SpacingMark => {}
            _ => marks = 0,
        }
        if length == MAX_LINE {
            line.push(ELLIPSIS);
            break;
        }
        // `https://…`, `www.…`, `evil.example`, `a@b`. Dropped characters do not count.
        let starts_part = character.is_alphanumeric() || "/\u{ff0f}+".contains(character);
        if starts_part && line.ends_with(DELIMITERS) {
            line.push(WORD_JOINER);
        }
        if character.is_numeric() {
            if digits == MAX_DIGITS {
                line.push(NON_JOINER);
                digits = 0;
            }
            digits += 1;
        } else if character.is_alphabetic() && !"xX".contains(character) {
            // An `x` can precede an extension number.
            digits = 0;
        }
        line.push(character);
        length += 1;
    }
    line.trim_end().to_owned()
}

/// Returns the [`line`] of a title, or [`NO_TITLE`] if it is empty.
pub(super) fn title(text: &str) -> String {
    let title = line(text);
    if title.is_empty() { NO_TITLE.to_owned() } else { title }
}

/// Returns the [`line`] of a subject. Email clients do not link subjects.
pub(super) fn subject(text: &str) -> String {
    line(text).replace([WORD_JOINER, NON_JOINER], "")
}

/// Returns `true` for characters that are invisible or affect how others are displayed.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || is_default_ignorable(character)
        || matches!(character, BRAILLE_BLANK | '\u{fff9}'..='\u{fffb}')
}

/// Returns Unicode's property `Default_Ignorable_Code_Point`.
fn is_default_ignorable(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_one_visible_line() {
        assert_eq!(line("  a\r\nBcc: b\t c\0d\u{202e}e\u{200b}f "), "a Bcc: b cdef");
        assert_eq!(line(""), "");
        assert_eq!(line("\u{202e}\n"), "");
        assert_eq!(line("größe 😀"), "größe 😀");
    }

    #[test]
    fn invisible_characters_are_dropped() {
        assert_eq!(line("a\u{3164}b\u{2800}c\u{34f}d\u{fe0f}e\u{ffa0}f\u{e0100}"), "abcdef");
        for nothing in ["", " ", "\u{3164}\u{2800} \u{34f}\u{fe0f}", " \u{301}\u{20dd}"] {
            assert_eq!((line(nothing), title(nothing)), (String::new(), NO_TITLE.to_owned()));
        }
        assert_eq!(title("a"), "a");
        let known = regex::Regex::new(r"^\p{Default_Ignorable_Code_Point}$").unwrap();
        // Planes 0 and 1, and the start of 14. Other planes have none.
        for character in ('\0'..='\u{1ffff}').chain('\u{e0000}'..='\u{e1fff}') {
            let is_known = known.is_match(character.encode_utf8(&mut [0; 4]));
            assert_eq!(is_default_ignorable(character), is_known, "{character:?}");
        }
    }

    #[test]
    fn letters_keep_at_most_two_marks() {
        let marks = |count: usize| "\u{300}".repeat(count);
        assert_eq!(line(&format!("a{}b{}", marks(100), marks(2))), format!("a{0}b{0}", marks(2)));
        // Hidden characters and spacing marks do not reset the count.
        assert_eq!(line("a\u{300}\u{200b}\u{301}\u{34f}\u{302}"), "a\u{300}\u{301}");
        let wide = "\u{93e}";
        assert_eq!(
            line(&format!("\u{915}{}{wide}{}", marks(1), marks(2))),
            format!("\u{915}{0}{wide}{0}", marks(1))
        );
        assert_eq!(line(&format!("a{}{wide}", marks(3))), format!("a{}{wide}", marks(2)));
        assert_eq!(line("a\u{20dd}\u{20de}\u{20df}"), "a\u{20dd}\u{20de}");
        assert_eq!(line("\u{e01}\u{e47}\u{e47}\u{e47}"), "\u{e01}\u{e47}\u{e47}");
        // Words with many marks.
        for word in ["ज़िंदगी", "Vie\u{302}\u{323}t", "ที่นี่"] {
            assert_eq!(line(word), word);
        }
    }

    #[test]
    fn texts_are_not_linked() {
        assert_eq!(line("https://evil.example/a"), "https:\u{2060}//evil.\u{2060}example/a");
        assert_eq!(line("mail me@b.de."), "mail me@\u{2060}b.\u{2060}de.");
        // Hidden characters do not prevent the detection of links.
        assert_eq!(line("evil.\u{200b}example"), "evil.\u{2060}example");
        assert_eq!(line("https:\u{1}//x"), "https:\u{2060}//x");
        assert_eq!(line("a@\u{2060}\u{ad}b"), "a@\u{2060}b");
        assert_eq!(subject("see evil.example"), "see evil.example");
    }

    #[test]
    fn delimiters_of_other_widths_are_not_linked() {
        for dot in ['\u{2024}', '\u{3002}', '\u{fe52}', '\u{ff0e}', '\u{ff61}'] {
            assert_eq!(line(&format!("evil{dot}example")), format!("evil{dot}\u{2060}example"));
        }
        assert_eq!(line("a\u{ff20}b\u{fe6b}c"), "a\u{ff20}\u{2060}b\u{fe6b}\u{2060}c");
        let url = "http\u{ff1a}\u{ff0f}\u{ff0f}x";
        assert_eq!(line(url), url.replacen('\u{ff0f}', "\u{2060}\u{ff0f}", 1));
    }

    #[test]
    fn telephone_numbers_are_not_linked() {
        let numbers = [
            "+1 (800) 555-0199",
            "tel:+18005550199",
            "800.555.0199",
            "800x555x0199",
            "８００５５５０１９９",
            "٨٠٠٥٥٥٠١٩٩",
        ];
        for number in numbers {
            let line = line(&format!("Call {number} now"));
            let digits = |part: &str| part.chars().filter(|it| it.is_numeric()).count();
            assert!(line.split('\u{200c}').all(|part| digits(part) <= 4), "{line:?}");
            assert_eq!(subject(&line), format!("Call {number} now"));
        }
        assert_eq!(line("tel:+1"), "tel:\u{2060}+1");
        for plain in ["HTTP 500 of 1000", "at line 1234 in 5678 ms"] {
            assert_eq!(line(plain), plain);
        }
    }

    #[test]
    fn long_texts_are_truncated() {
        let cut = line(&"é".repeat(200));
        assert_eq!(cut.chars().count(), 161);
        assert!(cut.ends_with('…'));
    }
}

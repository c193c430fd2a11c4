//! Message templates: messages without parts that differ between occurrences
//! (`docs/semantics/error-tracking.md`, "Message templates").
//!
//! The scanner is written by hand: it makes one pass, needs no tables, and takes about as long as
//! hashing.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::asset_name::{self, is_hexadecimal};

/// Maximum bytes of a message that distinguish errors.
const MAX_BYTES: usize = 1_024;
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Returns the template of a message: its first non-empty line, at most 1 KiB.
///
/// Placeholders replace the variable parts: `<url>`, `<email>`, `<ip>`, `<uuid>`, `<date>`,
/// `<path>`, `<quoted>` and `<number>` (whole, decimal, hexadecimal, versions). `<hash>` replaces
/// hashes in asset names, and one space replaces white space. The template of a template is itself.
pub(super) fn message_template(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut scanner =
        Scanner { rest: cut_bytes(line, MAX_BYTES), previous: None, out: String::new() };
    while scanner.step() {}
    scanner.out.truncate(scanner.out.trim_end().len());
    scanner.out
}

/// Returns the longest start of at most `most` bytes that ends between characters.
pub(super) fn cut_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

struct Scanner<'t> {
    rest: &'t str,
    /// The last byte written. A placeholder separates words, like the bracket at its end.
    previous: Option<u8>,
    out: String,
}

impl Scanner<'_> {
    /// Processes one token. Returns `false` at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if first.is_whitespace() {
            let length = self.rest.len() - self.rest.trim_start().len();
            self.emit(length, " ");
        } else if let Some(length) = placeholder_length(self.rest) {
            self.copy(length);
        } else if let Some(length) = self.quoted_length() {
            self.emit(length, "<quoted>");
        } else if let Some(length) = url_length(self.rest) {
            self.emit(length, "<url>");
        } else if let Some(length) = date_length(self.rest).filter(|_| self.is_at_word_start()) {
            self.emit(length, "<date>");
        } else if is_delimiter(first) {
            self.copy(first.len_utf8());
        } else {
            self.word();
        }
        true
    }

    fn is_at_word_start(&self) -> bool {
        !self.previous.is_some_and(is_word_byte)
    }

    fn emit(&mut self, length: usize, placeholder: &str) {
        self.out.push_str(placeholder);
        self.advance(length);
    }

    fn copy(&mut self, length: usize) {
        self.out.push_str(self.rest.get(..length).unwrap_or_default());
        self.advance(length);
    }

    fn advance(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
        self.previous = self.out.bytes().next_back();
    }

    /// Returns the length of a quoted literal. An apostrophe does not begin one.
    fn quoted_length(&self) -> Option<usize> {
        let quote = self.rest.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
        if !self.is_at_word_start() {
            return None;
        }
        let closings = self.rest.match_indices(quote).map(|(index, _)| index + 1).skip(1);
        closings
            .into_iter()
            .find(|end| !self.rest.as_bytes().get(*end).copied().is_some_and(is_word_byte))
    }

    /// Processes a run of characters that can belong together, such as an address or a path.
    fn word(&mut self) {
        let end = self.rest.find(|c: char| c.is_whitespace() || is_delimiter(c));
        let run = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
        let word = run.trim_end_matches(['.', ':', '!', '?']);
        if word.is_empty() {
            return self.copy(run.len());
        }
        match whole_word_placeholder(word) {
            Some(placeholder) => self.emit(word.len(), placeholder),
            None => match asset_name::without_hash(word) {
                Cow::Owned(name) => self.emit(word.len(), &name),
                Cow::Borrowed(_) => self.parts_of_word(word),
            },
        }
    }

    /// Returns the length of a number at the start of `rest`, with its sign or the `v` of a
    /// version.
    fn number_length(&self, rest: &str) -> Option<usize> {
        if self.previous.is_some_and(is_atom_byte) {
            return None;
        }
        match rest.as_bytes() {
            // After a placeholder it is a range: `1-5`.
            [b'-' | b'+', b'0'..=b'9', ..] if self.previous == Some(b'>') => None,
            [b'-' | b'+' | b'v' | b'V', b'0'..=b'9', ..] => {
                unsigned_number_length(rest.get(1..)?).map(|length| length + 1)
            }
            _ => unsigned_number_length(rest),
        }
    }

    /// Replaces the numbers inside a word.
    fn parts_of_word(&mut self, word: &str) {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let length = match self.number_length(rest) {
                Some(length) => {
                    self.emit(length, "<number>");
                    length
                }
                None if first.is_ascii_alphanumeric() => {
                    let length = atom_length(rest);
                    self.copy(length);
                    length
                }
                None => {
                    self.copy(first.len_utf8());
                    first.len_utf8()
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// `true` for separators of words, except white space.
fn is_delimiter(c: char) -> bool {
    matches!(
        c,
        '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '[' | ']' | '{' | '}' | ',' | ';' | '=' | '|'
    )
}

/// Letters outside ASCII belong to words.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Returns the length of a placeholder of an earlier template, which stays.
fn placeholder_length(text: &str) -> Option<usize> {
    const PLACEHOLDERS: [&str; 9] = [
        "<url>", "<email>", "<ip>", "<uuid>", "<date>", "<path>", "<quoted>", "<number>", "<hash>",
    ];
    PLACEHOLDERS.iter().find(|name| text.starts_with(**name)).map(|name| name.len())
}

/// Returns the length of `scheme://` and the text up to white space or a quote, without closing
/// punctuation.
fn url_length(text: &str) -> Option<usize> {
    let scheme =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))?;
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let location = text.get(scheme..)?.strip_prefix("://")?;
    let end = location
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'))
        .unwrap_or(location.len());
    let trimmed =
        location.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
    (starts_with_letter && !trimmed.is_empty()).then(|| scheme + "://".len() + trimmed.len())
}

/// Returns the length of `YYYY-MM-DD` or `YYYY/MM/DD`, with an optional time, fraction and zone.
fn date_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let date = shape_length(bytes, b"0000-00-00").or_else(|| shape_length(bytes, b"0000/00/00"))?;
    let time = bytes.get(date..).filter(|rest| matches!(rest.first(), Some(b'T' | b't' | b' ')));
    let time =
        time.and_then(|rest| shape_length(rest.get(1..)?, b"00:00")).map(|length| length + 1);
    let mut end = date + time.unwrap_or(0);
    if time.is_some() {
        end += shape_length(bytes.get(end..)?, b":00").unwrap_or(0);
        end += fraction_length(bytes.get(end..)?);
        let zone = bytes.get(end..)?;
        end += shape_length(zone, b"Z")
            .or_else(|| shape_length(zone, b"+00:00"))
            .or_else(|| shape_length(zone, b"-00:00"))
            .or_else(|| shape_length(zone, b"+0000"))
            .unwrap_or(0);
    }
    let ends_word = !bytes.get(end).copied().is_some_and(is_word_byte);
    ends_word.then_some(end)
}

fn fraction_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'.', rest @ ..] => match leading_digits(rest) {
            0 => 0,
            digits => digits + 1,
        },
        _ => 0,
    }
}

/// Returns the length of `shape` if `bytes` begin with it. A `0` matches any digit.
fn shape_length(bytes: &[u8], shape: &[u8]) -> Option<usize> {
    let start = bytes.get(..shape.len())?;
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    start.iter().zip(shape).all(fits).then_some(shape.len())
}

fn whole_word_placeholder(word: &str) -> Option<&'static str> {
    if is_uuid(word) {
        Some("<uuid>")
    } else if is_email(word) {
        Some("<email>")
    } else if is_ip(word) {
        Some("<ip>")
    } else if is_path(word) {
        Some("<path>")
    } else {
        None
    }
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.split('-').map(str::len).eq(UUID_GROUPS)
        && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(user, domain)| {
        !user.is_empty() && !domain.contains('@') && domain.trim_matches('.').contains('.')
    })
}

/// `true` for an address, with an optional port or prefix length.
fn is_ip(word: &str) -> bool {
    let bare = word.split_once('/').map_or(word, |(address, _)| address);
    let host = match bare.split_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => bare,
    };
    host.parse::<Ipv4Addr>().is_ok()
        // `a::b` is more likely a path of modules.
        || (bare.bytes().any(|byte| byte.is_ascii_digit()) && bare.parse::<Ipv6Addr>().is_ok())
}

/// `true` for absolute and relative paths of Unix and Windows. One slash inside a word is not
/// enough: `and/or`.
fn is_path(word: &str) -> bool {
    let starts = ["/", "./", "../", "~/", ".\\", "..\\", "\\\\"];
    let has_drive =
        matches!(word.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    let separators = word.bytes().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    let has_name = word.bytes().any(is_word_byte);
    has_name && (starts.iter().any(|start| word.starts_with(start)) || has_drive || separators >= 2)
}

/// Returns the length of a number at the start of `text`. It can be whole, decimal, have an
/// exponent, or several dots like a version. A hexadecimal number has a prefix or many digits.
fn unsigned_number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if let [b'0', b'x' | b'X', digits @ ..] = bytes {
        let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if length > 0 {
            return Some(2 + length);
        }
    }
    let atom = text.get(..atom_length(text))?;
    let has_letter = atom.bytes().any(|byte| byte.is_ascii_alphabetic());
    if has_letter && is_hexadecimal(atom) {
        return Some(atom.len());
    }
    let mut end = leading_digits(bytes);
    if end == 0 {
        return None;
    }
    loop {
        match fraction_length(bytes.get(end..)?) {
            0 => break,
            fraction => end += fraction,
        }
    }
    Some(end + exponent_length(bytes.get(end..)?))
}

fn exponent_length(bytes: &[u8]) -> usize {
    let [b'e' | b'E', rest @ ..] = bytes else { return 0 };
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    match leading_digits(rest.get(sign..).unwrap_or_default()) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

fn leading_digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn atom_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_alphanumeric).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replaces_variable_parts() {
        for (message, template) in [
            ("cannot load order 8271", "cannot load order <number>"),
            ("took 1.5e3 ms, -3 left, v1.2.3", "took <number> ms, <number> left, <number>"),
            (
                "lines 1-5, pool-1-thread-2",
                "lines <number>-<number>, pool-<number>-thread-<number>",
            ),
            ("retry in 30s at 99.9%", "retry in <number>s at <number>%"),
            ("at 0x7fb182412bd0 in 8f14e45fceea167a", "at <number> in <number>"),
            ("user_42 order-8271 utf8 sha256", "user_<number> order-<number> utf8 sha256"),
            ("id ac012cad-f588-491b-b76d-a90129e33c41.", "id <uuid>."),
            ("mail to a.b+c@example.com failed", "mail to <email> failed"),
            ("connect 10.0.0.7:5432 refused", "connect <ip> refused"),
            ("connect to [::1]:80 and fe80::1", "connect to [<ip>]:<number> and <ip>"),
            ("GET https://api.example.com/orders/1?x=2: 404", "GET <url>: <number>"),
            ("see (http://x.y/z).", "see (<url>)."),
            ("at 2026-11-21T10:59:53.606631Z or 2026-11-21 10:59", "at <date> or <date>"),
            ("on 2026-11-21, 2026/11/21", "on <date>, <date>"),
            ("open '/var/x' and \"it's\" failed", "open <quoted> and <quoted> failed"),
            ("can't find `a` nor don't", "can't find <quoted> nor don't"),
            ("open /var/data/8f14.json:12:5: denied", "open <path>: denied"),
            ("open C:\\a\\b.txt, ../x and src/a/b.rs", "open <path>, <path> and <path>"),
            ("read and/or write", "read and/or write"),
            ("Loading chunk app.8f14e45f.js failed", "Loading chunk app.<hash>.js failed"),
            ("  two\t words \n second line", "two words"),
            ("\n\n first", "first"),
            ("größe 5 überschritten", "größe <number> überschritten"),
            ("a::b and std::vec deadbeef defaced1", "a::b and std::vec deadbeef <number>"),
            ("{a=1, b=[2,3]}", "{a=<number>, b=[<number>,<number>]}"),
            ("", ""),
        ] {
            assert_eq!(message_template(message), template, "{message}");
        }
    }

    #[test]
    fn keeps_one_kibibyte() {
        let template = message_template(&"é".repeat(2_000));
        assert_eq!(template.len(), MAX_BYTES);
    }

    proptest! {
        #[test]
        fn templates_of_templates_are_equal(
            words in prop::collection::vec(
                "[a-zé]{1,9}[.:!?]?|-?[0-9]{1,9}(\\.[0-9]{1,4})?|[0-9a-f]{8,40}|'[a-z ]{1,9}'|\\([0-9]{1,3}\\)\
                |https?://[a-z.]{1,9}/[a-z0-9?=&/]{0,9}|/[a-z]{1,5}/[a-z0-9.]{1,5}|[a-z]{1,5}=[0-9]{1,5}\
                |[a-z]{1,4}@[a-z]{1,4}\\.org|2026-1[0-2]-[0-2][0-9]|v[0-9]\\.[0-9]|[a-z]{1,4}-[0-9a-f]{8}\\.js",
                0..12,
            ),
        ) {
            let template = message_template(&words.join(" "));
            prop_assert_eq!(message_template(&template), template);
        }

        #[test]
        fn never_panics_on_special_characters(message in "[a-f0-9é .:/\\\\<>'\"`@=,+x~v-]{0,60}") {
            message_template(&message);
        }

        #[test]
        fn never_panics(message in any::<String>()) {
            message_template(&message);
        }

        #[test]
        fn ids_do_not_matter(a in any::<u128>(), b in any::<u128>(), n in any::<i64>(), m in any::<i64>()) {
            let message = |id: u128, n: i64| {
                let uuid = uuid::Uuid::from_u128(id);
                format!("{n} {uuid} {:032x} https://h/{id}/x?y={n} /a/{n}/b u{}@h.org '{id}'", id | 1 << 127, n)
            };
            prop_assert_eq!(message_template(&message(a, n)), message_template(&message(b, m)));
        }
    }
}

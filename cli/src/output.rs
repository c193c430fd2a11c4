//! Output of commands: results on standard output, as text or JSON, and notes on standard error.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use comfy_table::{Table, presets};
use serde::Serialize;
use shared::timestamp::Timestamp;

/// The format of results.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// Returns an output that writes JSON or text.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// `true` if results are written as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a result: `value` as JSON, or `text`.
    pub(crate) fn show(&self, value: &impl Serialize, text: &str) -> io::Result<()> {
        // `println!` would panic on a closed pipe.
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", escaped(&serde_json::to_string_pretty(value)?))?;
        } else if !text.is_empty() {
            writeln!(stdout, "{}", escaped(text))?;
        }
        stdout.flush()
    }
}

/// Writes a result that has only one format, or a part of it.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(escaped(text).as_bytes())?;
    stdout.flush()
}

/// Writes a note to standard error.
pub(crate) fn note(remark: &str) {
    // A failed write to standard error cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", escaped(remark));
}

/// Prompts for a line on standard error and returns it. Returns `None` if standard input is not a
/// terminal.
pub(crate) fn prompt(text: &str) -> io::Result<Option<String>> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{}", escaped(text))?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(Some(line.trim().to_owned()))
}

/// Escapes control characters other than line breaks, and bidirectional controls, as `\uXXXX`.
/// Names from files and the API cannot control the terminal. The meaning of JSON is unchanged.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let is_plain = character == '\n' || !character.is_control() && !reorders(character);
        if is_plain {
            escaped.push(character);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
    escaped
}

/// `true` for characters with Unicode's property `Bidi_Control`.
fn reorders(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns aligned columns with a header.
pub(crate) fn table<const N: usize>(
    names: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(names.map(str::to_uppercase)).add_rows(rows);
    aligned(table)
}

/// Returns one record, with a line per field.
pub(crate) fn card<const N: usize>(fields: [(&str, String); N]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .add_rows(fields.map(|(name, value)| [name.to_owned(), value]));
    aligned(table)
}

fn aligned(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// Formats a timestamp to the minute.
pub(crate) fn minute(at: Timestamp) -> String {
    let full = at.to_string();
    full.get(.."2026-11-21T04:16".len()).map_or(full.clone(), |minute| format!("{minute}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_columns_without_trailing_space() {
        let rows = [["a".to_owned(), "1\n2".to_owned()], ["long".to_owned(), "3".to_owned()]];
        assert_eq!(table(["name", "n"], rows), "NAME  N\na     1\n      2\nlong  3");
        assert_eq!(card([("id", "1".to_owned()), ("name", "x".to_owned())]), "id    1\nname  x");
    }

    #[test]
    fn escaped_text_cannot_control_a_terminal() {
        let hostile = "\u{1b}]0;title\u{7}\r\u{7f}\u{9b}31m\u{202e}gnp\u{2069}.exe\nß\u{301} 🚩";
        let shown = r"\u001b]0;title\u0007\u000d\u007f\u009b31m\u202egnp\u2069.exe";
        assert_eq!(escaped(hostile), format!("{shown}\nß\u{301} 🚩"));
        let json = escaped(&serde_json::to_string_pretty(&[hostile]).unwrap());
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [hostile]);
        assert!(!json.chars().any(|it| it != '\n' && it.is_control() || reorders(it)), "{json}");
    }

    #[test]
    fn shortens_times_to_the_minute() {
        assert_eq!(minute(Timestamp::from_millis(1_795_234_560_007)), "2026-11-21T04:16Z");
    }
}

//! Generated regions of files, between two markers:
//!
//! ```text
//! # --- generated: NAME (by make generate, from …; do not edit) ---
//! # --- end of generated: NAME ---
//! ```
//!
//! The markers are written by hand; the text between them is generated. Text after the name is
//! ignored. A region has the indentation of its first marker.

use std::ops::Range;

const BEGINNING: &str = "--- generated: ";
const END: &str = "--- end of generated: ";

/// Returns the line range of a region, without its markers.
fn lines_of(lines: &[&str], name: &str) -> Result<Range<usize>, String> {
    let beginning = only(lines, &format!("{BEGINNING}{name} "), name)?;
    let end = only(lines, &format!("{END}{name} "), name)?;
    if end < beginning {
        return Err(format!(
            "the end of the region `{name}` (line {}) is before its beginning (line {}); swap them",
            end + 1,
            beginning + 1
        ));
    }
    let others = marked(lines, BEGINNING).chain(marked(lines, END));
    if let Some(other) = others.into_iter().find(|line| (beginning + 1..end).contains(line)) {
        return Err(format!(
            "line {} is a marker within the region `{name}`; move it out, or delete it",
            other + 1
        ));
    }
    Ok(beginning + 1..end)
}

/// Returns the line numbers of a marker.
fn marked<'l>(lines: &'l [&str], marker: &'l str) -> impl Iterator<Item = usize> + 'l {
    let is_marker = move |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("# ").or_else(|| line.strip_prefix("<!-- "));
        line.is_some_and(|line| line.starts_with(marker))
    };
    lines.iter().enumerate().filter(move |(_, line)| is_marker(line)).map(|(number, _)| number)
}

fn only(lines: &[&str], marker: &str, name: &str) -> Result<usize, String> {
    let marker_text = marker.trim_end();
    match marked(lines, marker).collect::<Vec<_>>()[..] {
        [line] => Ok(line),
        [] => Err(format!(
            "the marker `{marker_text}` is missing; restore it where the region `{name}` belongs"
        )),
        [first, second, ..] => Err(format!(
            "the marker `{marker_text}` occurs twice (lines {} and {}); delete one of them",
            first + 1,
            second + 1
        )),
    }
}

/// Returns the text with new content in a region.
pub(crate) fn replace(text: &str, name: &str, content: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let region = lines_of(&lines, name)?;
    let marker = lines[region.start - 1];
    let indent = &marker[..marker.len() - marker.trim_start().len()];
    let indented = content.lines().map(|line| match line {
        "" => String::new(),
        line => format!("{indent}{line}"),
    });
    let before = lines[..region.start].iter().map(|&line| line.to_owned());
    let after = lines[region.end..].iter().map(|&line| line.to_owned());
    Ok(before.chain(indented).chain(after).map(|line| line + "\n").collect())
}

/// Returns the handwritten part: the text with empty regions.
pub(crate) fn by_hand(text: &str, names: &[&str]) -> Result<String, String> {
    names.iter().try_fold(text.to_owned(), |text, name| replace(&text, name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
before
  # --- generated: list (by make generate; do not edit) ---
  old
  # --- end of generated: list ---
between
<!-- --- generated: lists (by make generate; do not edit) --- -->
<!-- --- end of generated: lists --- -->
";

    #[test]
    fn a_region_is_replaced_and_indented_like_its_marker() {
        let replaced = replace(TEXT, "list", "- one\n\n  two\n").unwrap();
        assert_eq!(replaced, TEXT.replace("  old\n", "  - one\n\n    two\n"));
        let replaced = replace(TEXT, "lists", "x").unwrap();
        assert!(replaced.contains("--- -->\nx\n<!--"), "{replaced}");
    }

    #[test]
    fn by_hand_empties_the_regions() {
        assert_eq!(by_hand(TEXT, &["list", "lists"]).unwrap(), TEXT.replace("  old\n", ""));
    }

    #[test]
    fn missing_markers_are_reported_with_a_remedy() {
        let without_end = TEXT.replace("  # --- end of generated: list ---\n", "");
        let error = replace(&without_end, "list", "").unwrap_err();
        assert_eq!(
            error,
            "the marker `--- end of generated: list` is missing; restore it where the region `list` \
             belongs"
        );
        assert!(
            replace(TEXT, "other", "").unwrap_err().contains("`--- generated: other` is missing")
        );
    }

    #[test]
    fn duplicate_markers_are_reported_with_line_numbers() {
        let error = replace(&TEXT.repeat(2), "list", "").unwrap_err();
        assert!(error.contains("`--- generated: list` occurs twice (lines 2 and 9)"), "{error}");
    }

    #[test]
    fn misplaced_markers_are_rejected() {
        let swapped = "# --- end of generated: a ---\n# --- generated: a (…) ---\n";
        assert!(replace(swapped, "a", "").unwrap_err().contains("swap them"));
        let nested = "# --- generated: a (…) ---\n# --- generated: b (…) ---\n\
                      # --- end of generated: b ---\n# --- end of generated: a ---\n";
        assert!(replace(nested, "a", "").unwrap_err().contains("line 2 is a marker within"));
    }
}

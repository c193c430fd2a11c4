//! Maximum sizes of the parts of a stored event. Most are limits that Sentry documents
//! (`docs/semantics/error-tracking.md`, "Trimming"); the others bound the remaining parts.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use shared::json::Json;

use super::json_text::{member_size, size};
use super::member::{Members, cut};
use super::trimmed_paths::TrimmedPaths;

/// Maximum characters of a message or an exception's value.
pub(super) const MESSAGE_CHARS: usize = 8_192;
/// Maximum frames of a stack. The middle is left out.
pub(super) const FRAMES: usize = 50;
/// Maximum exceptions of a chain. The middle is left out.
pub(super) const EXCEPTIONS: usize = 50;
/// Maximum characters of a tag's key, and of its value.
pub(super) const TAG_CHARS: usize = 200;
/// Maximum tags of an event.
pub(super) const TAGS: usize = 200;
/// Maximum JSON bytes of a context, and of each other small structure.
pub(super) const CONTEXT_BYTES: usize = 8_000;
/// Maximum JSON bytes of all extra data.
pub(super) const EXTRA_BYTES: usize = 256_000;
/// Maximum characters of a name: function, module, file, type.
pub(super) const NAME_CHARS: usize = 512;
/// Maximum characters of a line of source code.
pub(super) const SOURCE_LINE_CHARS: usize = 256;
/// Maximum lines before or after the one that failed.
pub(super) const SOURCE_LINES: usize = 10;
/// Maximum characters of a short filterable value.
pub(super) const ATTRIBUTE_CHARS: usize = 200;
/// Maximum parts of a client's fingerprint.
pub(super) const FINGERPRINT_PARTS: usize = 32;

/// Cuts a text, and notes its path if the text was too long.
pub(super) fn cut_noted<'a>(
    text: Cow<'a, str>,
    most: usize,
    path: &str,
    trimmed_paths: &mut TrimmedPaths,
) -> Cow<'a, str> {
    let length = text.len();
    let text = cut(text, most);
    if text.len() < length {
        trimmed_paths.note(path);
    }
    text
}

/// Removes the middle of a list, so that at most `most` items stay. Returns `true` if it removed
/// any.
pub(super) fn cut_middle<T>(list: &mut Vec<T>, most: usize) -> bool {
    let excess = list.len().saturating_sub(most);
    if excess > 0 {
        let start = most / 2;
        list.drain(start..start.saturating_add(excess));
    }
    excess > 0
}

/// Removes the largest fields of an object until its JSON has at most `most` bytes. The later of
/// two fields with equal sizes is removed first. Returns `false` if the value is not an object and
/// is too large.
pub(super) fn fit(
    json: &mut Json<'_>,
    most: usize,
    path: &str,
    trimmed_paths: &mut TrimmedPaths,
) -> bool {
    let mut total = size(json);
    if total <= most {
        return true;
    }
    let Json::Object(members) = json else {
        trimmed_paths.note(path);
        return false;
    };
    let mut left_out = HashSet::new();
    for (index, bytes) in largest_first(members) {
        if total <= most {
            break;
        }
        // The size includes the comma.
        total = total.saturating_sub(bytes + 1);
        left_out.insert(index);
        if let Some((name, _)) = members.get(index) {
            trimmed_paths.note(&format!("{path}.{name}"));
        }
    }
    let mut index = 0..;
    members.retain(|_| index.next().is_none_or(|index| !left_out.contains(&index)));
    true
}

/// Returns the index and size of each field, the largest first. For equal sizes the later field is
/// first.
fn largest_first(members: &Members<'_>) -> Vec<(usize, usize)> {
    let sizes = members.iter().map(member_size).enumerate();
    let mut sizes: Vec<(usize, usize)> = sizes.collect();
    sizes.sort_unstable_by_key(|(index, bytes)| Reverse((*bytes, *index)));
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::json_text::to_string;
    use proptest::prelude::*;

    #[test]
    fn removes_the_largest_fields_first() {
        let mut json = Json::parse(r#"{"a":"xxxx","b":"xxxxxxxx","c":"x","d":"x"}"#, 4).unwrap();
        let mut trimmed_paths = TrimmedPaths::default();
        assert!(fit(&mut json, 30, "extra", &mut trimmed_paths));
        assert_eq!(to_string(&json), r#"{"a":"xxxx","c":"x","d":"x"}"#);
        assert!(fit(&mut json, 20, "extra", &mut trimmed_paths));
        assert_eq!(to_string(&json), r#"{"c":"x","d":"x"}"#);
        assert!(fit(&mut json, 10, "extra", &mut trimmed_paths));
        assert_eq!(to_string(&json), r#"{"c":"x"}"#);
        assert!(!fit(&mut Json::String("xxxx".into()), 5, "extra", &mut trimmed_paths));
        let mut event = Vec::new();
        trimmed_paths.put_into(&mut event);
        let record = r#"{"trimmed":["extra.b","extra.a","extra.d","extra"]}"#;
        assert_eq!(to_string(&Json::Object(event)), record);
    }

    #[test]
    fn cuts_the_middle() {
        let mut list: Vec<usize> = (0..10).collect();
        assert!(cut_middle(&mut list, 5));
        assert_eq!(list, [0, 1, 7, 8, 9]);
        assert!(!cut_middle(&mut list, 5));
    }

    proptest! {
        #[test]
        fn objects_fit_the_limit(texts in proptest::collection::vec("[a\"é]{0,20}", 0..12), most in 2..200_usize) {
            let members = texts.iter().map(|text| (text.into(), Json::String(text.into())));
            let mut json = Json::Object(members.collect());
            fit(&mut json, most, "x", &mut TrimmedPaths::default());
            prop_assert!(size(&json) <= most);
        }
    }
}

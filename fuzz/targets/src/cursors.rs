//! Cursors: those that were sealed open to what was sealed, and nothing else opens.

use shared::http::CursorKey;

pub(crate) fn cursors(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let key = CursorKey::new("what cursors are sealed with here");
    let (list, position) = text.split_once('\n').unwrap_or(("list", text));
    // No list has a NUL in its name.
    let list = list.replace('\0', "");
    assert!(key.open(&list, position).is_err(), "nobody guesses a cursor");
    let cursor = key.seal(&list, position);
    assert_eq!(cursor, key.seal(&list, position), "the same each time");
    assert_eq!(key.open(&list, &cursor).as_deref(), Ok(position));
    assert!(key.open(&format!("{list}/"), &cursor).is_err(), "it is of use in its list only");
    let Some(first) = bytes.first() else { return };
    let at = usize::from(*first) % cursor.len();
    let other = if cursor.as_bytes()[at] == b'x' { "y" } else { "x" };
    let mut changed = cursor.clone();
    changed.replace_range(at..=at, other);
    assert!(key.open(&list, &changed).is_err(), "{changed}");
    changed.truncate(at);
    assert!(key.open(&list, &changed).is_err(), "{changed}");
}

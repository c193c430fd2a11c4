//! Cursors: sealed cursors open to their content, and other text never opens.

use shared::http::CursorKey;

pub(crate) fn cursors(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let key = CursorKey::new("key of the fuzz target for cursors");
    let (list, position) = text.split_once('\n').unwrap_or(("list", text));
    // List names have no NUL.
    let list = list.replace('\0', "");
    assert!(key.open(&list, position).is_err(), "random text opened as a cursor");
    let cursor = key.seal(&list, position);
    assert_eq!(cursor, key.seal(&list, position), "sealing is not deterministic");
    assert_eq!(key.open(&list, &cursor).as_deref(), Ok(position));
    assert!(key.open(&format!("{list}/"), &cursor).is_err(), "the cursor opened in another list");
    let Some(first) = bytes.first() else { return };
    let at = usize::from(*first) % cursor.len();
    let other = if cursor.as_bytes()[at] == b'x' { "y" } else { "x" };
    let mut changed = cursor.clone();
    changed.replace_range(at..=at, other);
    assert!(key.open(&list, &changed).is_err(), "{changed}");
    changed.truncate(at);
    assert!(key.open(&list, &changed).is_err(), "{changed}");
}

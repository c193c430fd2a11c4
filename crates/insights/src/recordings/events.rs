//! The events of a recording: a JSON array, read one element at a time.

use super::Malformed;

/// Most bytes of an event that is parsed. Breadcrumbs are far smaller. Snapshots and mutations of
/// the page can be megabytes, and are skipped.
const MAX_EVENT_BYTES: usize = 64 * 1024;

/// Calls `take` with the JSON text of each element of an array, except large ones. Only the
/// nesting is checked; `take` parses the element.
///
/// # Errors
/// [`Malformed`] if the text is no array or ends early.
pub fn each_event<'r>(json: &'r [u8], mut take: impl FnMut(&'r [u8])) -> Result<(), Malformed> {
    let mut at = skip_space(json, 0);
    if json.get(at) != Some(&b'[') {
        return Err(Malformed);
    }
    at = skip_space(json, at + 1);
    if json.get(at) == Some(&b']') {
        return ends_at(json, at + 1);
    }
    loop {
        let end = end_of_value(json, at).ok_or(Malformed)?;
        let event = json.get(at..end).unwrap_or_default();
        if event.is_empty() {
            return Err(Malformed);
        }
        if event.len() <= MAX_EVENT_BYTES {
            take(event);
        }
        at = skip_space(json, end);
        match json.get(at) {
            Some(b',') => at = skip_space(json, at + 1),
            Some(b']') => return ends_at(json, at + 1),
            _ => return Err(Malformed),
        }
    }
}

fn ends_at(json: &[u8], at: usize) -> Result<(), Malformed> {
    if skip_space(json, at) == json.len() { Ok(()) } else { Err(Malformed) }
}

fn skip_space(json: &[u8], at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Returns the end of the value at a position; `None` if the text ends inside it.
fn end_of_value(json: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match json.get(at)? {
            b'"' => {
                at = end_of_string(json, at + 1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            // The end of the surrounding array also ends a number or a literal.
            b']' | b'}' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            byte if depth == 0 && byte.is_ascii_whitespace() => return Some(at),
            _ => at += 1,
        }
    }
}

/// Returns the position after the closing quote.
fn end_of_string(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = json.get(at..)?;
        let next = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        at += next + 1;
        if rest.get(next) == Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(json: &str) -> Result<Vec<String>, Malformed> {
        let mut found = Vec::new();
        each_event(json.as_bytes(), |event| {
            found.push(String::from_utf8_lossy(event).into_owned());
        })?;
        Ok(found)
    }

    #[test]
    fn elements_are_read_one_by_one() {
        for (json, expected) in [
            ("[]", vec![]),
            (" [ ] \n", vec![]),
            (r#"[{"a":"]}\""},2, "x,y" ,[[]]]"#, vec![r#"{"a":"]}\""}"#, "2", "\"x,y\"", "[[]]"]),
            ("[null\n,true]", vec!["null", "true"]),
        ] {
            assert_eq!(read(json), Ok(expected.into_iter().map(str::to_owned).collect()), "{json}");
        }
    }

    #[test]
    fn broken_arrays_are_malformed() {
        for json in ["", "{}", "[", "[1", "[1,", "[,]", "[1,]", "[\"a]", "[{]", "[1]]", "[1]x", "1"]
        {
            assert_eq!(read(json), Err(Malformed), "{json}");
        }
    }

    #[test]
    fn large_events_are_skipped() {
        let large = format!("\"{}\"", "x".repeat(MAX_EVENT_BYTES));
        assert_eq!(read(&format!("[1,{large},2]")), Ok(vec!["1".to_owned(), "2".to_owned()]));
    }

    proptest! {
        #[test]
        fn arrays_have_the_elements_that_a_parser_finds(
            texts in prop::collection::vec("[a\\\\\"\\[\\]{},]{0,9}", 0..6),
        ) {
            let events: Vec<Value> =
                texts.iter().map(|text| serde_json::json!({"t": [text, {"u": text}]})).collect();
            let json = serde_json::to_string(&events).unwrap();
            let found = read(&json).unwrap();
            let found: Vec<Value> =
                found.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
            prop_assert_eq!(found, events);
        }
    }
}

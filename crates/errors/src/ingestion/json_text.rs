//! Writes [`Json`], and measures its size.

use std::borrow::Cow;

use shared::json::Json;

/// Returns the JSON text of a value, without white space, with numbers as sent.
pub(super) fn to_string(json: &Json<'_>) -> String {
    let mut text = Vec::with_capacity(1_024);
    write(json, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Appends the JSON text of a value.
pub(super) fn write(json: &Json<'_>, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(written) => out.extend_from_slice(written.as_bytes()),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                separate(index, out);
                write(item, out);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (index, (name, value)) in members.iter().enumerate() {
                separate(index, out);
                write_string(name, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Returns the number of bytes that [`write`] appends.
pub(super) fn size(json: &Json<'_>) -> usize {
    match json {
        Json::Null | Json::Bool(true) => 4,
        Json::Bool(false) => 5,
        Json::Number(written) => written.len(),
        Json::String(text) => string_size(text),
        Json::Array(items) => {
            2 + items.iter().map(size).sum::<usize>() + items.len().saturating_sub(1)
        }
        Json::Object(members) => {
            2 + members.iter().map(member_size).sum::<usize>() + members.len().saturating_sub(1)
        }
    }
}

/// Returns the number of bytes of a field, without the comma.
pub(super) fn member_size((name, value): &(Cow<'_, str>, Json<'_>)) -> usize {
    string_size(name) + 1 + size(value)
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn string_size(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 1,
        0..0x20 => 5,
        _ => 0,
    });
    2 + text.len() + escapes.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_parsed_json_unchanged() {
        let text = r#"{"a":[1.50,-0,1e9,true,false,null,[],{}],"é\n":"\u0000\"\\"}"#;
        let json = Json::parse(text, 8).unwrap();
        assert_eq!(to_string(&json), text);
    }

    proptest! {
        #[test]
        fn size_equals_the_written_bytes(strings in proptest::collection::vec(any::<String>(), 0..5)) {
            let items = strings.iter().map(|text| Json::String(text.into())).collect();
            let members = strings.iter().map(|text| (text.into(), Json::String(text.into())));
            let members = members.chain([("list".into(), Json::Array(items))]).collect();
            let json = Json::Object(members);
            prop_assert_eq!(size(&json), to_string(&json).len());
        }
    }
}

//! The events of a recording: a JSON array, read one element at a time.

use std::fmt;

use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Malformed;

/// Most bytes of an event that is parsed. Breadcrumbs are far smaller. Snapshots and mutations of
/// the page can be megabytes, and are skipped.
const MAX_EVENT_BYTES: usize = 64 * 1024;

/// Calls `take` with the JSON text of each element of an array, except large ones.
///
/// # Errors
/// [`Malformed`] if the text is not a JSON array.
pub fn each_event<'r>(json: &'r [u8], take: impl FnMut(&'r str)) -> Result<(), Malformed> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = reader.deserialize_seq(Events(take)).and_then(|()| reader.end());
    read.map_err(|_| Malformed)
}

/// Reads elements without keeping them.
struct Events<F>(F);

impl<'r, F: FnMut(&'r str)> Visitor<'r> for Events<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the events of a recording")
    }

    fn visit_seq<A: SeqAccess<'r>>(mut self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<&RawValue>()? {
            if event.get().len() <= MAX_EVENT_BYTES {
                (self.0)(event.get());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(json: &str) -> Result<Vec<String>, Malformed> {
        let mut found = Vec::new();
        each_event(json.as_bytes(), |event| found.push(event.to_owned()))?;
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

//! What is counted of an event.

use shared::timestamp::Timestamp;

use super::run::{Damaged, Unread, put_bytes};
use crate::attribute::{Attribute, Attributes, Category, UserHash};
use crate::grouping::Fingerprint;

/// One event, as far as it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Which error it belongs to.
    pub fingerprint: Fingerprint,
    /// What it can be filtered by.
    pub attributes: Attributes,
}

/// The first byte of what [`encode_attributes`] writes.
const FORM: u8 = 1;

/// What an event can be filtered by, as its row has it: a byte for the form, then of the user and of each
/// attribute the length and the bytes, none of what the event does not tell. Attributes have the order of
/// [`Attribute::ALL`], to which later releases add at the end only: what they add is left unread, and what was
/// written before is absent.
pub fn encode_attributes(attributes: &Attributes) -> Vec<u8> {
    let mut encoded = vec![FORM];
    let mut put = |value: &[u8]| put_bytes(value, &mut encoded);
    put(attributes.user().map(UserHash::to_bytes).as_ref().map_or(&[], <[u8; 8]>::as_slice));
    for attribute in Attribute::ALL {
        let value = attributes.get(attribute).filter(|_| !follows(attribute, attributes));
        put(value.unwrap_or_default().as_bytes());
    }
    encoded
}

/// Reads what [`encode_attributes`] writes: all of it, or what tells the `wanted` categories.
///
/// # Errors
///
/// [`Damaged`], if these are not its bytes.
pub fn decode_attributes(
    encoded: &[u8],
    wanted: Option<&[Category]>,
) -> Result<Attributes, Damaged> {
    let mut unread = match encoded.split_first() {
        Some((&FORM, rest)) => Unread::part(rest),
        _ => return Err(Damaged("what a row is filtered by has an unknown form")),
    };
    let mut next = || if unread.is_empty() { Ok([].as_slice()) } else { unread.bytes() };
    let mut attributes = Attributes::default();
    match next()? {
        [] => {}
        user => {
            let user = user.try_into().map_err(|_| Damaged("a user has not 8 bytes"))?;
            attributes.set_user(UserHash::from_bytes(user));
        }
    }
    for attribute in Attribute::ALL {
        let value = next()?;
        if wanted.is_none_or(|wanted| tells(attribute, wanted)) {
            let value = str::from_utf8(value).map_err(|_| Damaged("a value is no text"))?;
            attributes.set(attribute, Some(value.to_owned()));
        }
    }
    add_culprit(&mut attributes);
    Ok(attributes)
}

/// Whether an attribute is one of these categories, or one of them follows from it.
fn tells(attribute: Attribute, categories: &[Category]) -> bool {
    categories.contains(&Category::Attribute(attribute))
        || attribute == Attribute::Transaction
            && categories.contains(&Category::Attribute(Attribute::Culprit))
}

/// Whether an attribute need not be written: where there is a transaction, it is usually also the culprit.
fn follows(attribute: Attribute, attributes: &Attributes) -> bool {
    attribute == Attribute::Culprit
        && attributes.get(Attribute::Culprit) == attributes.get(Attribute::Transaction)
}

/// Adds the culprit that a row did not have, since it follows from the transaction.
fn add_culprit(attributes: &mut Attributes) {
    if attributes.get(Attribute::Culprit).is_none() {
        let transaction = attributes.get(Attribute::Transaction).map(str::to_owned);
        attributes.set(Attribute::Culprit, transaction);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attributes(values: &[(Attribute, &str)], user: Option<UserHash>) -> Attributes {
        let mut attributes = Attributes::default();
        for (attribute, value) in values {
            attributes.set(*attribute, Some((*value).to_owned()));
        }
        attributes.set_user(user);
        attributes
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let long = "ä".repeat(200);
        for values in [
            &[][..],
            &[(Attribute::Culprit, "shop in add")],
            &[(Attribute::Transaction, "GET /"), (Attribute::Culprit, "GET /")],
            &[(Attribute::Environment, &long), (Attribute::Culprit, "\0\n")],
            &Attribute::ALL.map(|attribute| (attribute, attribute.name())),
        ] {
            for user in [None, UserHash::of("42")] {
                let attributes = attributes(values, user);
                assert_eq!(
                    decode_attributes(&encode_attributes(&attributes), None),
                    Ok(attributes)
                );
            }
        }
    }

    /// Rows are there for 90 days: what is written today must be read by what is written tomorrow.
    #[test]
    fn the_form_stays() {
        let values = Attribute::ALL.map(|attribute| (attribute, attribute.name()));
        let encoded = encode_attributes(&attributes(&values, UserHash::from_bytes([7; 8])));
        let expected = b"\x01\x08\x07\x07\x07\x07\x07\x07\x07\x07\
            \x0benvironment\x07release\x05level\x07handled\x07browser\x02os\x06device\x07country\
            \x08platform\x0btransaction\x03bot\x03url\x04type\x07culprit";
        assert_eq!(encoded.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn what_was_written_before_an_attribute_was_added_is_read() {
        let older = b"\x01\x00\x0aproduction\x051.2.3";
        let values = [(Attribute::Environment, "production"), (Attribute::Release, "1.2.3")];
        assert_eq!(decode_attributes(older, None), Ok(attributes(&values, None)));
    }

    #[test]
    fn no_more_is_read_than_what_tells_the_wanted_categories() {
        let mut values = Attribute::ALL.map(|attribute| (attribute, attribute.name())).to_vec();
        values.retain(|(attribute, _)| *attribute != Attribute::Culprit);
        let encoded = encode_attributes(&attributes(&values, UserHash::of("42")));
        let read = |wanted: Attribute| {
            decode_attributes(&encoded, Some(&[Category::Attribute(wanted)])).unwrap()
        };
        let there = |attributes: &Attributes| {
            Attribute::ALL
                .into_iter()
                .filter(|it| attributes.get(*it).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(there(&read(Attribute::Release)), [Attribute::Release]);
        assert_eq!(read(Attribute::Culprit).get(Attribute::Culprit), Some("transaction"));
        assert_eq!(read(Attribute::Culprit).get(Attribute::Release), None);
    }

    #[test]
    fn what_a_later_release_adds_is_left_unread() {
        let attributes = attributes(&[(Attribute::Release, "1.2.3")], None);
        let encoded = [encode_attributes(&attributes), b"\x02de".to_vec()].concat();
        assert_eq!(decode_attributes(&encoded, None), Ok(attributes));
    }

    #[test]
    fn damaged_bytes_are_told() {
        let whole = encode_attributes(&attributes(
            &[(Attribute::Culprit, "shop in add")],
            UserHash::of("42"),
        ));
        let (before_user, after_user, before_culprit) = (1, 10, whole.len() - 12);
        for length in 0..whole.len() {
            let is_between_values =
                length == before_user || (after_user..=before_culprit).contains(&length);
            let read = decode_attributes(&whole[..length], None);
            assert_eq!(read.is_ok(), is_between_values, "{length} bytes");
        }
        for (at, byte) in [(0, 2), (1, 7), (10, 0xff), (whole.len() - 1, 0xff)] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            assert!(decode_attributes(&damaged, None).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn changed_bytes_are_read_or_told_damaged(
            values in proptest::collection::vec("\\PC{0,6}", Attribute::ALL.len()),
            user in proptest::option::of(any::<[u8; 8]>()),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut written = Attributes::default();
            for (attribute, value) in Attribute::ALL.into_iter().zip(values) {
                written.set(attribute, Some(value));
            }
            written.set_user(user.and_then(UserHash::from_bytes));
            let mut encoded = encode_attributes(&written);
            let at = at.index(encoded.len());
            encoded[at] = byte;
            if let Ok(attributes) = decode_attributes(&encoded, None) {
                let again = decode_attributes(&encode_attributes(&attributes), None);
                prop_assert_eq!(again, Ok(attributes));
            }
        }
    }
}

//! What is counted of an event.

use std::fmt;

use crate::error_tracking::attribute::{Attribute, Attributes, UserHash};
use crate::timestamp::Timestamp;

use super::run::{Damaged, Unread, new_column, put_number};

/// The identity of an error: a 128-bit hash of what its events have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Reads what [`fmt::Display`] writes: 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let fingerprint = Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes());
        (fingerprint.to_string() == text).then_some(fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

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

/// What an event can be filtered by, as its row has it: the version of columns, then of the user and of each
/// attribute the length and the bytes, none of what the event does not tell. What others add after these is
/// left unread.
pub fn encode_attributes(attributes: &Attributes) -> Vec<u8> {
    let mut encoded = new_column();
    let mut put = |value: &[u8]| {
        put_number(value.len(), &mut encoded);
        encoded.extend(value);
    };
    put(attributes.user().map(UserHash::to_bytes).as_ref().map_or(&[], <[u8; 8]>::as_slice));
    for attribute in Attribute::ALL {
        let value = attributes.get(attribute).filter(|_| !follows(attribute, attributes));
        put(value.unwrap_or_default().as_bytes());
    }
    encoded
}

/// Reads what [`encode_attributes`] writes.
///
/// # Errors
///
/// [`Damaged`], if these are not its bytes.
pub fn decode_attributes(encoded: &[u8]) -> Result<Attributes, Damaged> {
    let mut unread = Unread::column(encoded)?;
    let mut next = || {
        let length = unread.length()?;
        unread.take(length)
    };
    let mut attributes = Attributes::default();
    match next()? {
        [] => {}
        user => {
            let user = user.try_into().map_err(|_| Damaged("a user has not 8 bytes"))?;
            attributes.set_user(UserHash::from_bytes(user));
        }
    }
    for attribute in Attribute::ALL {
        let value = str::from_utf8(next()?).map_err(|_| Damaged("a value is no text"))?;
        attributes.set(attribute, Some(value.to_owned()));
    }
    add_culprit(&mut attributes);
    Ok(attributes)
}

/// Whether an attribute need not be written: where there is a transaction, it is usually also the culprit.
fn follows(attribute: Attribute, attributes: &Attributes) -> bool {
    attribute == Attribute::Culprit
        && attributes.get(Attribute::Culprit) == attributes.get(Attribute::Transaction)
}

/// Adds the culprit that a row did not have, since it follows from the transaction.
pub fn add_culprit(attributes: &mut Attributes) {
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
                assert_eq!(decode_attributes(&encode_attributes(&attributes)), Ok(attributes));
            }
        }
    }

    /// Rows are there for 90 days: what is written today must be read by what is written tomorrow.
    #[test]
    fn the_form_stays() {
        let values = [(Attribute::Environment, "production"), (Attribute::Culprit, "shop in add")];
        let encoded = encode_attributes(&attributes(&values, UserHash::from_bytes([7; 8])));
        let mut expected = b"\x01\x08\x07\x07\x07\x07\x07\x07\x07\x07\x0aproduction".to_vec();
        expected.extend([0; 12]);
        expected.extend(b"\x0bshop in add");
        assert_eq!(encoded, expected);
    }

    #[test]
    fn what_a_later_release_adds_is_left_unread() {
        let attributes = attributes(&[(Attribute::Release, "1.2.3")], None);
        let encoded = [encode_attributes(&attributes), b"\x02de".to_vec()].concat();
        assert_eq!(decode_attributes(&encoded), Ok(attributes));
    }

    #[test]
    fn damaged_bytes_are_told() {
        let whole = encode_attributes(&attributes(
            &[(Attribute::Culprit, "shop in add")],
            UserHash::of("42"),
        ));
        for length in 0..whole.len() {
            assert!(decode_attributes(&whole[..length]).is_err(), "{length} bytes");
        }
        for (at, byte) in [(0, 2), (1, 7), (10, 0xff), (whole.len() - 1, 0xff)] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            assert!(decode_attributes(&damaged).is_err(), "byte {at}");
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
            if let Ok(attributes) = decode_attributes(&encoded) {
                let again = decode_attributes(&encode_attributes(&attributes));
                prop_assert_eq!(again, Ok(attributes));
            }
        }
    }
}

//! The counted part of an event.

use shared::timestamp::Timestamp;

use super::run::{Damaged, Unread, put_bytes};
use crate::attribute::Attribute;
use crate::category::{Attributes, Category};
use crate::grouping::Fingerprint;

/// The counted part of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// The time of the event.
    pub occurred_at: Timestamp,
    /// The fingerprint of its error group.
    pub fingerprint: Fingerprint,
    /// The values that filters match.
    pub attributes: Attributes,
}

/// The format version, the first byte of [`encode_attributes`].
const FORMAT: u8 = 1;

/// Encodes the attributes of an event for its row: a format version, then the length and bytes of
/// each attribute. An absent value has length 0.
///
/// Attributes have the order of [`Attribute::ALL`], and later releases only append to that list. So
/// an older release ignores new attributes, and a newer one reads older rows without them.
pub fn encode_attributes(attributes: &Attributes) -> Vec<u8> {
    let mut encoded = vec![FORMAT];
    for attribute in Attribute::ALL {
        let value = attributes.get(attribute).filter(|_| !is_derived(attribute, attributes));
        put_bytes(value.unwrap_or_default().as_bytes(), &mut encoded);
    }
    encoded
}

/// Decodes the output of [`encode_attributes`]: all attributes, or only those that the `requested`
/// categories need.
///
/// # Errors
///
/// [`Damaged`] if the bytes are not a valid encoding.
pub fn decode_attributes(
    encoded: &[u8],
    requested: Option<&[Category]>,
) -> Result<Attributes, Damaged> {
    let mut unread = match encoded.split_first() {
        Some((&FORMAT, rest)) => Unread::part(rest),
        _ => return Err(Damaged("the attributes of a row have an unknown format")),
    };
    let mut next = || if unread.is_empty() { Ok([].as_slice()) } else { unread.bytes() };
    let mut attributes = Attributes::default();
    for attribute in Attribute::ALL {
        let value = next()?;
        if requested.is_none_or(|requested| is_needed(attribute, requested)) {
            let value = str::from_utf8(value).map_err(|_| Damaged("a value is not UTF-8"))?;
            attributes.set(attribute, Some(value.to_owned()));
        }
    }
    add_culprit(&mut attributes);
    Ok(attributes)
}

/// `true` if an attribute is one of these categories, or one of them is derived from it.
fn is_needed(attribute: Attribute, categories: &[Category]) -> bool {
    categories.contains(&attribute.into())
        || attribute == Attribute::Transaction && categories.contains(&Attribute::Culprit.into())
}

/// `true` if an attribute is not stored: the culprit usually equals the transaction.
fn is_derived(attribute: Attribute, attributes: &Attributes) -> bool {
    attribute == Attribute::Culprit
        && attributes.get(Attribute::Culprit) == attributes.get(Attribute::Transaction)
}

/// Copies the transaction into a culprit that was not stored.
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

    fn attributes(values: &[(Attribute, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        for (attribute, value) in values {
            attributes.set(*attribute, Some((*value).to_owned()));
        }
        attributes
    }

    #[test]
    fn encoded_attributes_decode_unchanged() {
        let long = "ä".repeat(200);
        for values in [
            &[][..],
            &[(Attribute::Culprit, "shop in add")],
            &[(Attribute::Transaction, "GET /"), (Attribute::Culprit, "GET /")],
            &[(Attribute::Environment, &long), (Attribute::Culprit, "\0\n")],
            &Attribute::ALL.map(|attribute| (attribute, attribute.as_str())),
        ] {
            let attributes = attributes(values);
            assert_eq!(decode_attributes(&encode_attributes(&attributes), None), Ok(attributes));
        }
    }

    /// Rows are kept for 90 days, so later releases must read the bytes of this one.
    #[test]
    fn encoding_is_stable() {
        let values = Attribute::ALL.map(|attribute| (attribute, attribute.as_str()));
        let encoded = encode_attributes(&attributes(&values));
        let expected = b"\x01\x0benvironment\x07release\x05level\x07handled\x07browser\x02os\x06device\x07country\
            \x08platform\x0btransaction\x03bot\x03url\x04type\x07culprit\x04user";
        assert_eq!(encoded.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn rows_without_newer_attributes_are_read() {
        let older = b"\x01\x0aproduction\x051.2.3";
        let values = [(Attribute::Environment, "production"), (Attribute::Release, "1.2.3")];
        assert_eq!(decode_attributes(older, None), Ok(attributes(&values)));
    }

    #[test]
    fn only_attributes_of_requested_categories_are_decoded() {
        let mut values = Attribute::ALL.map(|attribute| (attribute, attribute.as_str())).to_vec();
        values.retain(|(attribute, _)| *attribute != Attribute::Culprit);
        let encoded = encode_attributes(&attributes(&values));
        let read =
            |requested: Attribute| decode_attributes(&encoded, Some(&[requested.into()])).unwrap();
        let present = |attributes: &Attributes| {
            Attribute::ALL
                .into_iter()
                .filter(|it| attributes.get(*it).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(present(&read(Attribute::Release)), [Attribute::Release]);
        assert_eq!(read(Attribute::Culprit).get(Attribute::Culprit), Some("transaction"));
        assert_eq!(read(Attribute::Culprit).get(Attribute::Release), None);
    }

    #[test]
    fn bytes_of_later_releases_are_ignored() {
        let attributes = attributes(&[(Attribute::Release, "1.2.3")]);
        let encoded = [encode_attributes(&attributes), b"\x02de".to_vec()].concat();
        assert_eq!(decode_attributes(&encoded, None), Ok(attributes));
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let whole = encode_attributes(&attributes(&[(Attribute::Culprit, "shop in add")]));
        let (first, user) = (1, whole.len() - 1);
        let culprit = user - 12;
        for length in 0..whole.len() {
            let is_between_values = (first..=culprit).contains(&length) || length == user;
            let read = decode_attributes(&whole[..length], None);
            assert_eq!(read.is_ok(), is_between_values, "{length} bytes");
        }
        for (at, byte) in [(0, 2), (culprit, 0x7f), (culprit + 1, 0xff), (user, 0xff)] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            assert!(decode_attributes(&damaged, None).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn changed_bytes_decode_or_are_rejected(
            values in proptest::collection::vec("\\PC{0,6}", Attribute::ALL.len()),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut written = Attributes::default();
            for (attribute, value) in Attribute::ALL.into_iter().zip(values) {
                written.set(attribute, Some(value));
            }
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

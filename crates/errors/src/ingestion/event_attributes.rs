//! The filterable attributes of an event.
//!
//! Each value is cut to few bytes, so that a row with all of them stays under 1 KB: one write unit.
//!
//! An attribute that the event lacks is absent, also `environment`. Official SDKs send `production`
//! if nothing is configured, and Sentry's servers add nothing to an event without one.

use std::borrow::Cow;

use shared::json::Json;

use super::exception::is_handled;
use super::member::{Members, at_path, get, scalar_text};
use crate::ErrorDescription;
use crate::attribute::{Attribute, user_hash};
use crate::category::Attributes;
use crate::grouping::url_path::path_template;
use crate::tag::{MAX_TAG_KEYS, MAX_TAG_VALUE_BYTES, TagHash, TagKey};

const BROWSER: &[&[&str]] = &[&["contexts", "browser", "name"]];
const OS: &[&[&str]] = &[&["contexts", "os", "name"], &["contexts", "client_os", "name"]];
const DEVICE: &[&[&str]] = &[
    &["contexts", "device", "family"],
    &["contexts", "device", "model"],
    &["contexts", "device", "name"],
];
const COUNTRY: &[&[&str]] = &[&["user", "geo", "country_code"]];
/// Old SDKs send environment and release only as tags.
const ENVIRONMENT: &[&[&str]] = &[&["environment"], &["tags", "environment"]];
const RELEASE: &[&[&str]] = &[&["release"], &["tags", "release"]];
const URL: &[&[&str]] = &[&["request", "url"]];
const USER: [&[&str]; 3] = [&["user", "id"], &["user", "email"], &["user", "ip_address"]];
/// Text that SDKs send for an address that they do not know.
const ADDRESS_OF_SENDER: &str = "{{auto}}";
/// Maximum bytes of all values together. A value that a row stores once for two attributes counts
/// once. The URL gets the rest.
const MOST_BYTES_TOGETHER: usize = 768;

/// Returns the maximum bytes of a value in UTF-8.
fn most_bytes(attribute: Attribute) -> usize {
    match attribute {
        Attribute::Release | Attribute::Transaction | Attribute::Url | Attribute::Culprit => 200,
        Attribute::Type => 80,
        Attribute::Environment | Attribute::Device => 64,
        Attribute::Browser | Attribute::Os => 48,
        Attribute::Platform => 32,
        Attribute::Level | Attribute::Handled | Attribute::Country | Attribute::Bot => 8,
        Attribute::User => 16,
    }
}

/// Returns the tags of a canonical event that can become categories.
pub(super) fn read_tags(event: &Members<'_>) -> Vec<(TagKey, String)> {
    let Some(Json::Object(tags)) = get(event, "tags") else { return Vec::new() };
    let read = |(name, value): &(Cow<'_, str>, Json<'_>)| {
        let value = clean(scalar_text(value)?.trim(), MAX_TAG_VALUE_BYTES);
        TagKey::parse(name).filter(|_| !value.is_empty()).map(|key| (key, value))
    };
    tags.iter().filter_map(read).collect()
}

/// Returns the attributes of a canonical event with this description and number of tags, from a robot or not.
pub(super) fn read_attributes(
    event: &Members<'_>,
    description: &ErrorDescription,
    tags: usize,
    is_robot: bool,
) -> Attributes {
    let mut attributes = Attributes::default();
    for attribute in Attribute::ALL {
        let value = read_attribute(event, description, is_robot, attribute);
        attributes.set(attribute, value.map(|value| clean(&value, most_bytes(attribute))));
    }
    fit_together(&mut attributes, tags.min(MAX_TAG_KEYS) * TagHash::BYTES);
    attributes
}

fn read_attribute<'e>(
    event: &'e Members<'_>,
    description: &'e ErrorDescription,
    is_robot: bool,
    attribute: Attribute,
) -> Option<Cow<'e, str>> {
    let value = match attribute {
        Attribute::Environment => first_text(event, ENVIRONMENT).filter(|name| *name != "None"),
        Attribute::Release => first_text(event, RELEASE),
        Attribute::Level => first_text(event, &[&["level"]]),
        Attribute::Handled => Some(if is_handled(event) { "true" } else { "false" }),
        Attribute::Browser => first_text(event, BROWSER),
        Attribute::Os => first_text(event, OS),
        Attribute::Device => first_text(event, DEVICE),
        Attribute::Country => {
            let code = first_text(event, COUNTRY).filter(|code| is_country_code(code));
            return code.map(|code| Cow::Owned(code.to_ascii_uppercase()));
        }
        Attribute::Platform => first_text(event, &[&["platform"]]),
        Attribute::Transaction => first_text(event, &[&["transaction"]]),
        Attribute::Bot => Some(if is_robot { "true" } else { "false" }),
        Attribute::Url => return first_text(event, URL).and_then(path_template).map(Cow::Owned),
        Attribute::Type => Some(description.error_type.as_str()),
        Attribute::Culprit => Some(description.culprit.as_str()),
        Attribute::User => return user_identity(event).and_then(user_hash).map(Cow::Owned),
    };
    value.map(Cow::Borrowed)
}

/// Returns the number of tags for which a row has capacity in a write unit.
pub fn capacity_for_tags(attributes: &Attributes) -> usize {
    MOST_BYTES_TOGETHER.saturating_sub(bytes_of_texts(attributes)) / TagHash::BYTES
}

/// Cuts the URL to the rest of a write unit.
fn fit_together(attributes: &mut Attributes, tags: usize) {
    let Some(url) = attributes.get(Attribute::Url).map(str::to_owned) else { return };
    let others = bytes_of_texts(attributes) - url.len();
    let left = MOST_BYTES_TOGETHER.saturating_sub(others + tags);
    attributes.set(Attribute::Url, Some(clean(&url, left)));
}

/// Returns the bytes of all texts in a row. If there is a transaction, the culprit equals it, and a
/// row stores both once.
fn bytes_of_texts(attributes: &Attributes) -> usize {
    let has_transaction = attributes.get(Attribute::Transaction).is_some();
    let is_stored = |it: &Attribute| !(has_transaction && *it == Attribute::Culprit);
    let texts = Attribute::texts().filter(is_stored).filter_map(|it| attributes.get(it));
    texts.map(str::len).sum()
}

/// Returns the identity of the user: the id, else the email address, else the IP address that the
/// SDK sent.
fn user_identity<'e>(event: &'e Members<'_>) -> Option<&'e str> {
    USER.iter().find_map(|path| {
        let (name, rest) = path.split_first()?;
        let value = at_path(get(event, name)?, rest).filter(|value| is_text(value))?;
        let identity = scalar_text(value).filter(|identity| !identity.trim().is_empty());
        identity.filter(|identity| *identity != ADDRESS_OF_SENDER)
    })
}

/// Returns the first text of several fields.
fn first_text<'e>(event: &'e Members<'_>, paths: &[&[&str]]) -> Option<&'e str> {
    paths.iter().find_map(|path| {
        let (name, rest) = path.split_first()?;
        let value = at_path(get(event, name)?, rest)?;
        scalar_text(value).map(str::trim).filter(|text| !text.is_empty() && is_text(value))
    })
}

/// `true` for texts and numbers. Old SDKs send some texts as numbers, such as a release.
fn is_text(json: &Json<'_>) -> bool {
    matches!(json, Json::String(_) | Json::Number(_))
}

/// `true` for an ISO 3166-1 alpha-2 code.
fn is_country_code(code: &str) -> bool {
    code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Removes control characters, and cuts between characters.
fn clean(value: &str, most: usize) -> String {
    let mut cleaned: String = value.chars().filter(|c| !c.is_control()).take(most).collect();
    cleaned.truncate(cleaned.floor_char_boundary(most));
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::Fingerprint;
    use crate::grouping::occurrence::{Exception, Occurrence};

    fn attribute(text: &str, attribute: Attribute) -> Option<String> {
        let Ok(Json::Object(event)) = Json::parse(text, 16) else { panic!("{text}") };
        read(&event).get(attribute).map(str::to_owned)
    }

    fn read(event: &Members<'_>) -> Attributes {
        let transaction = first_text(event, &[&["transaction"]]).unwrap_or_default();
        let exceptions = vec![Exception { error_type: "E", ..Exception::default() }];
        let occurrence = Occurrence { exceptions, ..Occurrence::default() };
        let description = ErrorDescription::of(&occurrence, transaction, Fingerprint([7; 16]));
        read_attributes(event, &description, 0, false)
    }

    #[test]
    fn reads_each_attribute() {
        let text = r#"{"environment":"staging","release":"shop@1","level":"info","platform":"node",
            "transaction":"GET /","request":{"url":"https://h/a/1?b=2"},"user":{"geo":{"country_code":"de"}},
            "contexts":{"browser":{"name":"Firefox","version":"1"},"os":{"name":"Debian"},
            "device":{"family":"Pixel"}}}"#;
        let expected = [
            "staging",
            "shop@1",
            "info",
            "true",
            "Firefox",
            "Debian",
            "Pixel",
            "DE",
            "node",
            "GET /",
            "false",
            "/a/<number>",
            "E",
            "GET /",
        ];
        for (name, value) in Attribute::ALL.into_iter().zip(expected) {
            assert_eq!(attribute(text, name).as_deref(), Some(value));
        }
    }

    #[test]
    fn missing_values_stay_absent() {
        for name in Attribute::ALL.into_iter().filter(|name| !is_always_present(*name)) {
            assert_eq!(attribute("{}", name), None);
            let odd = r#"{"environment":"","release":" ","contexts":{"browser":{"name":{}},"os":"x",
                "device":[]},"user":{"geo":{"country_code":"Germany"}}}"#;
            assert_eq!(attribute(odd, name), None);
        }
        assert_eq!(attribute(r#"{"environment":"None"}"#, Attribute::Environment), None);
    }

    fn is_always_present(attribute: Attribute) -> bool {
        matches!(attribute, Attribute::Handled | Attribute::Bot | Attribute::Type)
    }

    #[test]
    fn users_are_identified_by_the_best_field() {
        let user = |user: &str| {
            let text = format!(r#"{{"user":{user}}}"#);
            let Ok(Json::Object(event)) = Json::parse(&text, 16) else { panic!("{text}") };
            read(&event).get(Attribute::User).map(str::to_owned)
        };
        for (sent, identity) in [
            (r#"{"id":42,"email":"a@b.org","ip_address":"10.0.0.7"}"#, "42"),
            (r#"{"id":"42"}"#, "42"),
            (r#"{"id":" ","email":"a@b.org"}"#, "a@b.org"),
            (r#"{"id":null,"ip_address":"10.0.0.7"}"#, "10.0.0.7"),
            (r#"{"ip_address":"{{auto}}","username":"alice"}"#, ""),
            (r#"{"id":{},"email":[]}"#, ""),
            ("null", ""),
        ] {
            assert_eq!(user(sent), user_hash(identity), "{sent}");
        }
    }

    #[test]
    fn falls_back_to_other_fields() {
        let text = r#"{"tags":{"environment":"qa","release":"2"},
            "contexts":{"client_os":{"name":"iOS"},"device":{"model":"iPhone 15"}}}"#;
        assert_eq!(attribute(text, Attribute::Environment).as_deref(), Some("qa"));
        assert_eq!(attribute(text, Attribute::Release).as_deref(), Some("2"));
        assert_eq!(attribute(text, Attribute::Os).as_deref(), Some("iOS"));
        assert_eq!(attribute(text, Attribute::Device).as_deref(), Some("iPhone 15"));
    }

    #[test]
    fn one_unhandled_exception_makes_the_event_unhandled() {
        let event = |first: &str, second: &str| {
            format!(
                r#"{{"exception":{{"values":[{{"mechanism":{first}}},{{"mechanism":{second}}}]}}}}"#
            )
        };
        for (first, second, handled) in [
            (r#"{"handled":true}"#, r#"{"handled":false}"#, "false"),
            (r#"{"handled":false}"#, r#"{"handled":true}"#, "false"),
            (r#"{"handled":true}"#, r#"{"handled":true}"#, "true"),
            ("null", r#"{"handled":null}"#, "true"),
        ] {
            let value = attribute(&event(first, second), Attribute::Handled);
            assert_eq!(value.as_deref(), Some(handled));
        }
    }

    #[test]
    fn all_values_together_are_limited() {
        let long = "\u{1F600}\u{0007}".repeat(300);
        let text = format!(
            r#"{{"environment":"{long}","release":"{long}","level":"error","platform":"{long}",
            "transaction":"{long}","request":{{"url":"https://h/{long}"}},"contexts":{{"browser":{{"name":"{long}"}},
            "os":{{"name":"{long}"}},"device":{{"family":"{long}"}}}}}}"#
        )
        .replace('\u{7}', "\\u0007");
        let Ok(Json::Object(event)) = Json::parse(&text, 16) else { panic!("{text}") };
        let attributes = read(&event);
        let values = Attribute::ALL.into_iter().filter_map(|name| attributes.get(name));
        assert!(values.clone().all(|value| !value.contains(char::is_control)));
        let twice = attributes.get(Attribute::Culprit).map_or(0, str::len);
        assert_eq!(attributes.get(Attribute::Culprit), attributes.get(Attribute::Transaction));
        assert_eq!(values.map(str::len).sum::<usize>() - twice, MOST_BYTES_TOGETHER);
    }
}

//! What an event can be filtered by.
//!
//! The values are cut to few bytes each, so that a row with all ten stays under 1 KB: one write
//! unit. An attribute that the event does not tell is absent. That holds for `environment` too:
//! official SDKs themselves send `production` where nothing is configured, and Sentry's servers
//! add nothing to an event without one.

use super::exception::is_handled;
use super::member::{Members, at_path, get, scalar_text};
use crate::error_tracking::attribute::{Attribute, Attributes};
use crate::json::Json;

const BROWSER: &[&[&str]] = &[&["contexts", "browser", "name"]];
const OS: &[&[&str]] = &[&["contexts", "os", "name"], &["contexts", "client_os", "name"]];
const DEVICE: &[&[&str]] = &[
    &["contexts", "device", "family"],
    &["contexts", "device", "model"],
    &["contexts", "device", "name"],
];
const COUNTRY: &[&[&str]] = &[&["user", "geo", "country_code"]];
/// Old SDKs tell environment and release by tags only.
const ENVIRONMENT: &[&[&str]] = &[&["environment"], &["tags", "environment"]];
const RELEASE: &[&[&str]] = &[&["release"], &["tags", "release"]];

/// How long a value may be, in bytes of UTF-8.
fn most_bytes(attribute: Attribute) -> usize {
    match attribute {
        Attribute::Release | Attribute::Transaction => 200,
        Attribute::Environment | Attribute::Device => 64,
        Attribute::Browser | Attribute::Os => 48,
        Attribute::Platform => 32,
        Attribute::Level | Attribute::Handled | Attribute::Country => 8,
    }
}

/// The attributes of a canonical event.
pub(super) fn read_attributes(event: &Members<'_>) -> Attributes {
    let mut attributes = Attributes::default();
    for attribute in Attribute::ALL {
        let value = match attribute {
            Attribute::Environment => first_text(event, ENVIRONMENT).filter(|name| *name != "None"),
            Attribute::Release => first_text(event, RELEASE),
            Attribute::Level => first_text(event, &[&["level"]]),
            Attribute::Handled => Some(if is_handled(event) { "true" } else { "false" }),
            Attribute::Browser => first_text(event, BROWSER),
            Attribute::Os => first_text(event, OS),
            Attribute::Device => first_text(event, DEVICE),
            Attribute::Country => first_text(event, COUNTRY).filter(|code| is_country_code(code)),
            Attribute::Platform => first_text(event, &[&["platform"]]),
            Attribute::Transaction => first_text(event, &[&["transaction"]]),
        };
        let value = value.map(|value| clean(value, most_bytes(attribute)));
        attributes.set(
            attribute,
            match attribute {
                Attribute::Country => value.map(|code| code.to_ascii_uppercase()),
                _ => value,
            },
        );
    }
    attributes
}

/// The first of several members that holds text.
fn first_text<'e>(event: &'e Members<'_>, paths: &[&[&str]]) -> Option<&'e str> {
    paths.iter().find_map(|path| {
        let (name, rest) = path.split_first()?;
        let value = at_path(get(event, name)?, rest)?;
        scalar_text(value).map(str::trim).filter(|text| !text.is_empty() && is_text(value))
    })
}

/// Numbers and booleans are texts too where old SDKs send them, as a release may be.
fn is_text(json: &Json<'_>) -> bool {
    matches!(json, Json::String(_) | Json::Number(_))
}

/// ISO 3166-1 alpha-2.
fn is_country_code(code: &str) -> bool {
    code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Without control characters, and cut between characters.
fn clean(value: &str, most: usize) -> String {
    let mut cleaned: String = value.chars().filter(|c| !c.is_control()).take(most).collect();
    cleaned.truncate(cleaned.floor_char_boundary(most));
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(text: &str, attribute: Attribute) -> Option<String> {
        let Ok(Json::Object(event)) = Json::parse(text, 16) else { panic!("{text}") };
        read_attributes(&event).get(attribute).map(str::to_owned)
    }

    #[test]
    fn reads_each_attribute() {
        let text = r#"{"environment":"staging","release":"shop@1","level":"info","platform":"node",
            "transaction":"GET /","user":{"geo":{"country_code":"de"}},
            "contexts":{"browser":{"name":"Firefox","version":"1"},"os":{"name":"Debian"},
            "device":{"family":"Pixel"}}}"#;
        let expected = [
            "staging", "shop@1", "info", "true", "Firefox", "Debian", "Pixel", "DE", "node",
            "GET /",
        ];
        for (name, value) in Attribute::ALL.into_iter().zip(expected) {
            assert_eq!(attribute(text, name).as_deref(), Some(value));
        }
    }

    #[test]
    fn leaves_absent_what_the_event_does_not_tell() {
        for name in Attribute::ALL.into_iter().filter(|name| *name != Attribute::Handled) {
            assert_eq!(attribute("{}", name), None);
            let odd = r#"{"environment":"","release":" ","contexts":{"browser":{"name":{}},"os":"x",
                "device":[]},"user":{"geo":{"country_code":"Germany"}}}"#;
            assert_eq!(attribute(odd, name), None);
        }
        assert_eq!(attribute(r#"{"environment":"None"}"#, Attribute::Environment), None);
    }

    #[test]
    fn falls_back_to_other_places() {
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
    fn all_values_together_are_short() {
        let long = "\u{1F600}\u{0007}".repeat(300);
        let text = format!(
            r#"{{"environment":"{long}","release":"{long}","level":"error","platform":"{long}",
            "transaction":"{long}","contexts":{{"browser":{{"name":"{long}"}},
            "os":{{"name":"{long}"}},"device":{{"family":"{long}"}}}}}}"#
        )
        .replace('\u{7}', "\\u0007");
        let Ok(Json::Object(event)) = Json::parse(&text, 16) else { panic!("{text}") };
        let attributes = read_attributes(&event);
        let values = Attribute::ALL.into_iter().filter_map(|name| attributes.get(name));
        assert!(values.clone().all(|value| !value.contains(char::is_control)));
        assert!(values.map(str::len).sum::<usize>() <= 700);
    }
}

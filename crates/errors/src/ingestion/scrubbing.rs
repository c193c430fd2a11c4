//! Removes secrets that must not be stored, whatever the SDK sends.
//!
//! - `request.cookies` is removed.
//! - The value of each field, header and pair with a secret name is replaced, at any depth. A name
//!   is secret if, ignoring case and punctuation, it contains one of [`SECRET_PARTS`], is one of
//!   [`SECRET_NAMES`] or ends in `token`.
//! - Parameters with a secret name are replaced in query strings, URLs and form bodies. Fields with
//!   one are replaced in JSON bodies that are sent as text.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use shared::json::Json;

use super::member::{Members, get_mut, take};
use super::{json_text, lenient_json};

const FILTERED: &str = "[Filtered]";

const SECRET_PARTS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "csrf",
    "xsrf",
    "sessionid",
    "creditcard",
];
const SECRET_NAMES: [&str; 14] = [
    "auth",
    "pwd",
    "pass",
    "mysqlpwd",
    "session",
    "sid",
    "jwt",
    "bearer",
    "cvv",
    "cvc",
    "cardnumber",
    "pin",
    "ssn",
    "xauth",
];
/// Fields that contain a URL or a query.
const URL_MEMBERS: [&str; 12] = [
    "url",
    "uri",
    "query_string",
    "http.query",
    "http.url",
    "http.target",
    "url.full",
    "url.query",
    "from",
    "to",
    "referer",
    "referrer",
];

/// Fields of an event without secrets. A package in `modules` or `sdk` can have the name `cookie`.
/// `["auth", "cache"]` in `fingerprint` is not a pair.
const MEMBERS_WITHOUT_SECRETS: [&str; 3] = ["modules", "sdk", "fingerprint"];

/// Replaces all secrets of an event.
pub(super) fn scrub(event: &mut Members<'_>) {
    if let Some(Json::Object(request)) = get_mut(event, "request") {
        take(request, "cookies");
        if let Some(Json::String(body)) = get_mut(request, "data")
            && let Some(scrubbed) = scrub_body(body)
        {
            *body = Cow::Owned(scrubbed);
        }
        // `a=1&b=2` is a query without the URL before it.
        if let Some(Json::String(query)) = get_mut(request, "query_string")
            && let Some(scrubbed) = scrub_parameters(query)
        {
            *query = Cow::Owned(scrubbed);
        }
    }
    for (name, value) in event {
        if !MEMBERS_WITHOUT_SECRETS.contains(&name.as_ref()) {
            scrub_member(name, value);
        }
    }
}

fn scrub_value(json: &mut Json<'_>) {
    match json {
        Json::Object(members) => {
            for (name, value) in members {
                scrub_member(name, value);
            }
        }
        Json::Array(items) => match items.as_mut_slice() {
            [Json::String(name), value] => scrub_member(name, value),
            items => items.iter_mut().for_each(scrub_value),
        },
        _ => {}
    }
}

fn scrub_member(name: &str, value: &mut Json<'_>) {
    match value {
        Json::Null | Json::Bool(_) => {}
        value if is_secret_name(name) => *value = Json::String(FILTERED.into()),
        Json::String(text) => {
            if URL_MEMBERS.iter().any(|member| name.eq_ignore_ascii_case(member))
                && let Some(scrubbed) = scrub_url(text)
            {
                *text = Cow::Owned(scrubbed);
            }
        }
        value => scrub_value(value),
    }
}

fn is_secret_name(name: &str) -> bool {
    // No name above is longer. This limit bounds the copy.
    const MAX_BYTES: usize = 256;
    let name = name.as_bytes().iter().take(MAX_BYTES).filter(|byte| byte.is_ascii_alphanumeric());
    let name: String = name.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    SECRET_NAMES.contains(&name.as_str())
        || name.ends_with("token")
        || SECRET_PARTS.iter().any(|part| name.contains(part))
}

fn scrub_url(url: &str) -> Option<String> {
    let (location, query) = url.split_once('?')?;
    let (query, fragment) = match query.split_once('#') {
        Some((query, fragment)) => (query, Some(fragment)),
        None => (query, None),
    };
    let scrubbed = scrub_parameters(query)?;
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    Some(format!("{location}?{scrubbed}{fragment}"))
}

/// Replaces secrets in `a=1&b=2`, also after a `?`. Returns `None` if there are none.
fn scrub_parameters(query: &str) -> Option<String> {
    let mut found = false;
    let pairs = query.split('&').map(|pair| {
        let Some((name, _)) = pair.split_once('=') else { return Cow::Borrowed(pair) };
        if !is_secret_name(&percent_decode_str(name).decode_utf8_lossy()) {
            return Cow::Borrowed(pair);
        }
        found = true;
        Cow::Owned(format!("{name}={FILTERED}"))
    });
    let scrubbed = pairs.collect::<Vec<_>>().join("&");
    found.then_some(scrubbed)
}

/// Replaces secrets in a body that was sent as text: JSON, or a form.
fn scrub_body(body: &str) -> Option<String> {
    if !body.trim_start().starts_with(['{', '[']) {
        return scrub_parameters(body);
    }
    let repaired = lenient_json::repair(body.as_bytes());
    match lenient_json::parse(&repaired) {
        Ok(mut json) => {
            let before = json.clone();
            scrub_value(&mut json);
            (json != before).then(|| json_text::to_string(&json))
        }
        // SDKs cut long bodies. A cut body that might contain a secret is not kept.
        Err(_) => is_secret_text(body).then(|| FILTERED.to_owned()),
    }
}

fn is_secret_text(text: &str) -> bool {
    text.split('"').any(is_secret_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(text: &str) -> String {
        let Ok(Json::Object(mut event)) = Json::parse(text, 16) else { panic!("{text}") };
        scrub(&mut event);
        json_text::to_string(&Json::Object(event))
    }

    #[test]
    fn replaces_values_with_secret_names_anywhere() {
        for name in [
            "password",
            "userPassword",
            "DB_PASSWD",
            "client-secret",
            "X-Api-Key",
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "Set-Cookie",
            "access_token",
            "X-CSRFToken",
            "auth",
            "session",
        ] {
            let text = format!(r#"{{"extra":{{"a":[{{"{name}":"hunter2"}}]}}}}"#);
            assert!(!scrubbed(&text).contains("hunter2"), "{name}");
            let text =
                format!(r#"{{"request":{{"headers":[["{name}","hunter2"],["Host","h"]]}}}}"#);
            let expected =
                format!(r#"{{"request":{{"headers":[["{name}","[Filtered]"],["Host","h"]]}}}}"#);
            assert_eq!(scrubbed(&text), expected);
        }
        for name in ["author", "max_tokens", "spin", "passenger", "key", "token_count"] {
            let text = format!(r#"{{"extra":{{"{name}":"7"}}}}"#);
            assert_eq!(scrubbed(&text), text);
        }
    }

    #[test]
    fn replaces_whole_structures_but_not_null() {
        let text = r#"{"extra":{"credentials":{"a":"hunter2"},"password":null,"secret":[1]}}"#;
        let expected =
            r#"{"extra":{"credentials":"[Filtered]","password":null,"secret":"[Filtered]"}}"#;
        assert_eq!(scrubbed(text), expected);
    }

    #[test]
    fn removes_cookies_and_scrubs_queries_and_bodies() {
        let text = r#"{"request":{"cookies":{"a":"hunter2"},"query_string":"a=1&api%5Fkey=hunter2",
            "url":"https://h/p?token=hunter2&b=2#f","data":"user=x&password=hunter2"}}"#;
        let expected = r#"{"request":{"query_string":"a=1&api%5Fkey=[Filtered]","url":"https://h/p?token=[Filtered]&b=2#f","data":"user=x&password=[Filtered]"}}"#;
        assert_eq!(scrubbed(text), expected);
        for body in [
            r#"{\"user\":{\"password\":\"hunter2\"},\"a\":1}"#,
            r#"{\"user\":{\"password\":\"hunter2\"},\"a\":"#,
        ] {
            let text = format!(r#"{{"request":{{"data":"{body}"}}}}"#);
            assert!(!scrubbed(&text).contains("hunter2"), "{body}");
        }
        let breadcrumb =
            r#"{"breadcrumbs":{"values":[{"data":{"url":"/x?access_token=hunter2"}}]}}"#;
        assert!(scrubbed(breadcrumb).contains("access_token=[Filtered]"));
    }

    #[test]
    fn fingerprints_stay_unchanged() {
        let text = r#"{"fingerprint":["auth","cache"]}"#;
        assert_eq!(scrubbed(text), text);
    }

    #[test]
    fn other_text_stays_unchanged() {
        let text = r#"{"request":{"query_string":"a=%20&b","url":"https://h/?a=b=c","data":"{ \"a\": 1 }"}}"#;
        assert_eq!(scrubbed(text), text);
    }
}

//! URL paths without parts that differ between requests (`docs/semantics/error-tracking.md`,
//! "Categories").

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::message_template::{cut_bytes, message_template};

/// Maximum bytes of a URL that are read.
const MAX_BYTES: usize = 2_048;
/// Minimum length of a token. Shorter texts of letters and digits are as likely a name.
const LEAST_TOKEN_LENGTH: usize = 16;
/// Minimum digits inside a token. Names have a number only at their end.
const LEAST_DIGITS_INSIDE: usize = 2;

/// Returns the path of a URL, or of a text that begins with a path, without query and fragment.
/// Returns `None` for a URL without a path, such as `about:blank`.
///
/// Each segment becomes a message template. Versions (`v1`) stay, and long tokens of letters and
/// digits become `<hash>`.
pub fn path_template(url: &str) -> Option<String> {
    let path = path_of(cut_bytes(url.trim(), MAX_BYTES))?;
    let path = path.split(['?', '#']).next().filter(|path| !path.is_empty()).unwrap_or("/");
    Some(path.split('/').map(segment_template).collect::<Vec<_>>().join("/"))
}

/// Returns the text after the host.
fn path_of(url: &str) -> Option<&str> {
    let after_scheme = match url.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        _ => match url.strip_prefix("//") {
            Some(rest) => rest,
            None => return url.starts_with('/').then_some(url),
        },
    };
    let start = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    after_scheme.get(start..)
}

fn segment_template(segment: &str) -> Cow<'_, str> {
    if is_version(segment) {
        return Cow::Borrowed(segment);
    }
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    if decoded.split(['-', '_', '.', '~']).any(is_token) || is_token(&decoded) {
        return Cow::Borrowed("<hash>");
    }
    Cow::Owned(message_template(&decoded))
}

/// `true` for `v1` and `v2.1`, which identify an interface and not a request.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix(['v', 'V']).unwrap_or_default();
    let is_short = |part: &str| matches!(part.len(), 1..=3);
    number.split('.').all(|part| is_short(part) && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `true` for a random identifier of letters and digits. Hexadecimal ones are left to the template.
fn is_token(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inside = bytes.iter().rev().skip_while(|byte| byte.is_ascii_digit());
    bytes.len() >= LEAST_TOKEN_LENGTH
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && !bytes.iter().all(u8::is_ascii_hexdigit)
        && inside.filter(|byte| byte.is_ascii_digit()).count() >= LEAST_DIGITS_INSIDE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replaces_variable_parts_of_paths() {
        for (url, path) in [
            ("https://shop.example.com/cart?id=1#top", "/cart"),
            ("https://shop.example.com", "/"),
            ("https://shop.example.com?x=1", "/"),
            ("http://localhost:3000/orders/4711/items/2", "/orders/<number>/items/<number>"),
            ("/users/ac012cad-f588-491b-b76d-a90129e33c41/", "/users/<uuid>/"),
            ("//cdn.example.com/assets/index-BxK3f9a0.js", "/assets/index-<hash>.js"),
            ("https://h/commit/8f14e45fceea167a5a36dedd4bea2543", "/commit/<number>"),
            ("https://h/api/v1/users/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/api/v1/users/<hash>"),
            ("https://h/invite/a.b%40example.com", "/invite/<email>"),
            ("https://h/caf%C3%A9/r%C3%B4le", "/café/rôle"),
            ("https://h/2026-11-22/report-12", "/<date>/report-<number>"),
            ("https://h/internationalization2/checkout", "/internationalization2/checkout"),
            ("app:///index.android.bundle", "/index.android.bundle"),
        ] {
            assert_eq!(path_template(url).as_deref(), Some(path), "{url}");
        }
    }

    #[test]
    fn other_texts_have_no_path() {
        for text in ["", "about:blank", "data:text/html,<p>/x", "blob:https", "cart", "a b://c"] {
            assert_eq!(path_template(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(url in "\\PC{0,40}(://)?\\PC{0,80}") {
            path_template(&url);
        }

        #[test]
        fn ids_do_not_matter(a in any::<u128>(), b in any::<u128>()) {
            let url = |id: u128| {
                let uuid = uuid::Uuid::from_u128(id);
                format!("https://h/a/{uuid}/{:032x}/{}?q={id}", id | 1 << 127, id % 10_000)
            };
            prop_assert_eq!(path_template(&url(a)), path_template(&url(b)));
        }
    }
}

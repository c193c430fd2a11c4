//! Routes: paths of pages, without the parts that differ between records.

use super::cut;

/// Most characters of a route.
const MAX_ROUTE: usize = 90;
/// The name of a changing part.
const CHANGING: &str = ":id";
/// Minimum length of an identifier of letters and digits. Shorter texts can be names.
const MIN_TOKEN: usize = 8;

/// Returns the route of an address: its path with `:id` for numbers, UUIDs, hashes and tokens.
/// Returns `None` for an address without a path, such as `about:blank`.
pub fn route(url: &str) -> Option<String> {
    let path = path_of(url.trim())?.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<String> = path.split('/').map(segment_of_route).collect();
    let route = parts.join("/");
    let route = if route.is_empty() { "/".to_owned() } else { route };
    let is_plain = |it: &char| !it.is_control() && !it.is_whitespace();
    Some(cut(route.chars().filter(is_plain).take(MAX_ROUTE).collect(), MAX_ROUTE))
}

/// Returns the text after the host.
fn path_of(url: &str) -> Option<&str> {
    let after_host = |rest: &'_ str| rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if let Some((scheme, rest)) = url.split_once("://")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return rest.get(after_host(rest)..);
    }
    match url.strip_prefix("//") {
        Some(rest) => rest.get(after_host(rest)..),
        None => url.starts_with('/').then_some(url),
    }
}

fn segment_of_route(segment: &str) -> String {
    if segment.contains('@') || segment.to_ascii_lowercase().contains("%40") || is_uuid(segment) {
        return CHANGING.to_owned();
    }
    let separators = ['-', '_', '.', '~', ':', ','];
    let parts: Vec<&str> = segment.split(separators).filter(|part| !part.is_empty()).collect();
    if !parts.is_empty() && parts.iter().all(|part| is_changing(part)) {
        return CHANGING.to_owned();
    }
    let mut route = String::new();
    let mut rest = segment;
    while !rest.is_empty() {
        let end = rest.find(separators).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        route.push_str(if is_changing(part) { CHANGING } else { part });
        let separator = after.chars().next();
        route.extend(separator);
        rest = after.get(separator.map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    route
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// `true` for numbers, hashes and tokens.
pub(super) fn is_changing(part: &str) -> bool {
    let bytes = part.as_bytes();
    if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    bytes.iter().all(u8::is_ascii_digit)
        || (bytes.len() >= MIN_TOKEN && has_digit && bytes.iter().all(u8::is_ascii_hexdigit))
        || (bytes.len() >= MIN_TOKEN && has_digit_inside(part))
}

/// `true` if a digit precedes a letter. Names have a number only at their end.
pub(super) fn has_digit_inside(text: &str) -> bool {
    let pairs = text.as_bytes().windows(2);
    pairs.into_iter().any(|pair| {
        matches!(pair, [digit, letter] if digit.is_ascii_digit() && letter.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_parts_of_routes_are_replaced() {
        for (url, expected) in [
            ("https://shop.example.com/orders/123?a=1#b", "/orders/:id"),
            ("https://shop.example.com", "/"),
            ("https://shop.example.com?x=/y", "/"),
            ("http://localhost:3000/orders/4711/items/2/", "/orders/:id/items/:id/"),
            ("/users/ac012cad-f588-491b-b76d-a90129e33c41/", "/users/:id/"),
            ("/commit/8f14e45fceea167a5a36dedd4bea2543", "/commit/:id"),
            ("/users/01ARZ3NDEKTSV4RRFFQ69G5FAV/edit", "/users/:id/edit"),
            ("/invite/a.b%40example.com", "/invite/:id"),
            ("/2026-11-22/report-12", "/:id/report-:id"),
            ("/assets/index-BxK3f9a0.js", "/assets/index-:id.js"),
            ("/api/v1/step2/checkout", "/api/v1/step2/checkout"),
            ("/internationalization2/decade", "/internationalization2/decade"),
            ("//cdn.example.com/a", "/a"),
            ("file:///tmp/page.html", "/tmp/page.html"),
            ("/a\nb c", "/abc"),
        ] {
            assert_eq!(route(url).as_deref(), Some(expected), "{url}");
        }
        for url in ["about:blank", "", "x", "data:text/html,a"] {
            assert_eq!(route(url), None, "{url}");
        }
    }

    #[test]
    fn routes_are_short() {
        let long = route(&format!("/{}", "ä/".repeat(500))).unwrap();
        assert_eq!(long.chars().count(), MAX_ROUTE);
    }
}

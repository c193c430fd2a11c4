//! What lasts of JavaScript that was built: bundlers and minifiers name functions and files anew in
//! every build (`docs/semantics/error-tracking.md`, "Built code").

use std::borrow::Cow;

use super::asset_name;
use super::message_template::message_template;

/// Minifiers choose names of up to three letters: four are needed from 220,000 names on.
const LEAST_LASTING_LENGTH: usize = 4;
/// How long the hashes are that bundlers put into names of files, but for hexadecimal ones.
const HASH_LENGTH: usize = 8;
/// Where a message names a property. Properties keep their names.
const PROPERTIES: [&str; 4] = ["(reading '", "(setting '", "property '", "property \""];
/// What every bundle has, whoever wrote it.
const OF_BUNDLERS: [&str; 4] = ["anonymous", "eval", "__webpack_require__", "__webpack_exec__"];

/// The function's own name, if it lasts: without the object that it was called on, whose class has a
/// new name in each build, and without the number that tells it from others of the bundle.
pub(super) fn lasting_name(function: &str) -> Option<&str> {
    let name = function.split(" [as ").next().unwrap_or(function);
    let name = name.split(" (").next().unwrap_or(name).trim();
    // Firefox writes `total/<` for a function within `total`.
    let is_inner = name.ends_with('<') || name.ends_with("<computed>");
    let last = name.rsplit(['.', '/', ' ']).next().unwrap_or(name);
    let last = last.trim_start_matches('#').trim_end_matches(|c: char| c.is_ascii_digit());
    let last = last.trim_end_matches('$');
    let is_name = last.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
    let lasts = is_name && last.chars().count() >= LEAST_LASTING_LENGTH;
    (lasts && !is_inner && !OF_BUNDLERS.contains(&last)).then_some(last)
}

/// The name of a built file, without what differs from one build to the next: hashes, versions, and
/// numbers of chunks.
pub(super) fn lasting_file(file: &str) -> String {
    let path = file.split(['?', '#']).next().unwrap_or(file);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = asset_name::without_hash(name);
    let stem = name.trim_end_matches(".js").trim_end_matches(".mjs").trim_end_matches(".min");
    let stem = match stem.len().checked_sub(HASH_LENGTH).and_then(|at| stem.split_at_checked(at)) {
        Some((rest, hash)) if rest.ends_with(['-', '.']) && is_hash(hash) => {
            Cow::Owned(format!("{rest}<hash>"))
        }
        _ => Cow::Borrowed(stem),
    };
    let mut lasting = String::new();
    for c in stem.chars() {
        match c {
            '0'..='9' if lasting.ends_with('0') => {}
            '0'..='9' => lasting.push('0'),
            c => lasting.push(c),
        }
    }
    lasting
}

/// Whether so many letters are no word: words have no digits, and no capital but the first letter.
fn is_hash(text: &str) -> bool {
    let is_of_hashes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_word = text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    text.bytes().all(is_of_hashes) && !is_word
}

/// The template of a message, in which properties stay and names of variables do not.
pub(super) fn lasting_template(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((start, opening)) = first_property(rest) {
        let (before, after) = rest.split_at(start + opening.len());
        let quote = opening.chars().next_back().unwrap_or('\'');
        let Some((property, after)) = after.split_once(quote) else { break };
        kept.push_str(before.trim_end_matches(quote));
        kept.push_str(property);
        rest = after;
    }
    kept.push_str(rest);
    let words = kept.split(' ').enumerate();
    let words = words.map(|(index, word)| without_variable(word, index == 0));
    message_template(&words.collect::<Vec<_>>().join(" "))
}

fn first_property(text: &str) -> Option<(usize, &'static str)> {
    let found = PROPERTIES.iter().filter_map(|opening| Some((text.find(opening)?, *opening)));
    found.min_by_key(|(start, _)| *start)
}

/// `e.cart.items` as `_.cart.items`: a name of up to three letters is a variable's where a property
/// follows it, and so is the first word of a message, as in `e is not iterable`.
fn without_variable(word: &str, is_first: bool) -> Cow<'_, str> {
    let start = word.find(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'));
    let Some((before, rest)) = start.and_then(|start| word.split_at_checked(start)) else {
        return Cow::Borrowed(word);
    };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')));
    let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
    let has_property = after.starts_with(['.', '(']) && after.len() > 1;
    let is_variable = has_property || (is_first && after.is_empty());
    let is_short = name.chars().count() < LEAST_LASTING_LENGTH;
    if is_variable && is_short && !name.starts_with(|c: char| c.is_ascii_digit()) {
        Cow::Owned(format!("{before}_{after}"))
    } else {
        Cow::Borrowed(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_somebody_chose_last() {
        for (function, name) in [
            ("submitOrder", Some("submitOrder")),
            ("t.total", Some("total")),
            ("Cart.total [as sum]", Some("total")),
            ("async Promise.refresh (index 0)", Some("refresh")),
            ("validateAddress2", Some("validateAddress")),
            ("load$1", Some("load")),
            ("new CartError", Some("CartError")),
            ("#refresh", Some("refresh")),
            ("?", None),
            ("<anonymous>", None),
            ("Object.<anonymous>", None),
            ("Object.g [as cart]", None),
            ("run4", None),
            ("a$1", None),
            ("lr", None),
            ("total/<", None),
            ("o.<computed>", None),
            ("Object.4711", None),
            ("__webpack_require__", None),
            ("", None),
        ] {
            assert_eq!(lasting_name(function), name, "{function}");
        }
    }

    #[test]
    fn names_of_files_lose_what_a_build_gave_them() {
        for (file, lasting) in [
            ("https://h/assets/main-C-h--39K.js", "main-<hash>"),
            ("https://h/assets/main-DORQCSFD.js?v=3", "main-<hash>"),
            ("https://h/main.23896bd464f029ca6c67.js", "main.<hash>"),
            ("https://h/checkout-CugqOG6a.js", "checkout-<hash>"),
            ("https://h/user-settings.js", "user-settings"),
            ("https://h/user-Settings.js", "user-Settings"),
            ("https://h/512.js", "0"),
            ("https://h/app-3.14.1.min.js", "app-0.0.0"),
            ("", ""),
        ] {
            assert_eq!(lasting_file(file), lasting, "{file}");
        }
    }

    #[test]
    fn messages_keep_properties_and_lose_variables() {
        for (message, template) in [
            (
                "Cannot read properties of undefined (reading 'amount')",
                "Cannot read properties of undefined (reading amount)",
            ),
            ("e.handler is not a function", "_.handler is not a function"),
            ("(0 , r.load) is not a function", "(<number> , _.load) is not a function"),
            ("t is not iterable", "_ is not iterable"),
            (
                "can't access property \"price\", e.cart is undefined",
                "can't access property price, _.cart is undefined",
            ),
            (
                "Cannot access 'e' before initialization",
                "Cannot access <quoted> before initialization",
            ),
            ("Order 4711 is not there", "Order <number> is not there"),
            ("a category has no name", "_ category has no name"),
            ("(reading 'x", "(reading 'x"),
            ("", ""),
        ] {
            assert_eq!(lasting_template(message), template, "{message}");
        }
    }
}

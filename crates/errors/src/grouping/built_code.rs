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
const PROPERTIES: [&str; 5] = ["(reading '", "(setting '", "property '", "property \"", EVALUATING];
/// Where Safari names the path to it.
const EVALUATING: &str = "(evaluating '";
/// What every bundle has, whoever wrote it.
const OF_BUNDLERS: [&str; 4] = ["anonymous", "eval", "__webpack_require__", "__webpack_exec__"];
/// What Safari calls code outside of functions.
const OUTSIDE_OF_FUNCTIONS: [&str; 3] = ["global code", "module code", "eval code"];
/// Where engines say that a function of their own is, which only some of them list.
const OF_ENGINES: [&str; 3] = ["<anonymous>", "[native code]", "native"];
/// How many digits bundlers put behind a name that stands several times in a bundle: from 2 on, in names of
/// functions that people number from 1 on. What has more is named so: `sha256`.
const MOST_DIGITS: usize = 2;
/// How short hexadecimal hashes may be set.
const LEAST_HEXADECIMAL: usize = 6;

/// Whether a file is none: the function is one of the engine's own, as `JSON.parse`.
pub(super) fn is_of_engine(file: &str) -> bool {
    OF_ENGINES.contains(&file.trim())
}

/// The function's own name, if it lasts: without the object that it was called on, whose class has a
/// new name in each build, and without the number that tells it from others of the bundle.
pub(super) fn lasting_name(function: &str) -> Option<&str> {
    let name = function.split(" [as ").next().unwrap_or(function);
    let name = name.split(" (").next().unwrap_or(name).trim();
    // Firefox writes `total/<` for a function within `total`.
    let is_inner = name.ends_with('<') || name.ends_with("<computed>");
    let last = name.rsplit(['.', '/', ' ']).next().unwrap_or(name);
    let last = without_number(last.trim_start_matches('#'));
    let lasts = last.chars().all(is_of_name) && last.chars().count() >= LEAST_LASTING_LENGTH;
    let is_nobodys = OF_BUNDLERS.contains(&last) || OUTSIDE_OF_FUNCTIONS.contains(&name);
    (lasts && !is_inner && !is_nobodys).then_some(last)
}

/// `load` of `load2` and `load$1`, which bundlers number; not of `step1` and `sha256`, which people do.
fn without_number(name: &str) -> &str {
    let rest = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some(rest) = rest.strip_suffix('$') {
        return rest.trim_end_matches('$');
    }
    let number = name.get(rest.len()..).unwrap_or_default();
    let is_of_bundler = number.len() <= MOST_DIGITS && !matches!(number, "0" | "1");
    if is_of_bundler || rest.is_empty() { rest } else { name }
}

/// The name of a built file, without what differs from one build to the next: hashes, versions, and
/// numbers of chunks. Nothing of a page, which a script within it has for its file: pages with the script differ.
pub(super) fn lasting_file(file: &str) -> String {
    let path = file.split(['?', '#']).next().unwrap_or(file);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    if path.contains("://") && !name.contains('.') {
        return String::new();
    }
    let name = asset_name::without_hash(name);
    let stem = name.trim_end_matches(".js").trim_end_matches(".mjs").trim_end_matches(".min");
    let before_hash = |length: usize| {
        let (rest, end) = stem.split_at_checked(stem.len().checked_sub(length)?)?;
        (rest.ends_with(['-', '.']) && is_hash(end)).then_some(rest)
    };
    let stem = match (LEAST_HEXADECIMAL..=HASH_LENGTH).find_map(before_hash) {
        Some(rest) => Cow::Owned(format!("{rest}<hash>")),
        None => Cow::Borrowed(stem),
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

/// Whether the end of a name is no word: words have no digits, and no capital but the first letter. What is shorter
/// than hashes are must be hexadecimal.
fn is_hash(end: &str) -> bool {
    let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_of_hashes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if end.len() < HASH_LENGTH {
        return end.bytes().all(is_hexadecimal) && end.bytes().any(|byte| byte.is_ascii_digit());
    }
    let is_word = end.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    end.bytes().all(is_of_hashes) && !is_word
}

/// The template of a message, in which properties stay and names of variables do not.
pub(super) fn lasting_template(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(Property { before, name, after, .. }) = first_property(rest) {
        kept.push_str(before);
        kept.push_str(name);
        rest = after;
    }
    kept.push_str(rest);
    // What is not defined is no variable of the bundle's, and has the name that everybody knows it by.
    let is_known = kept.ends_with(" is not defined");
    let words = kept.split(' ').enumerate();
    let words = words.map(|(index, word)| without_variable(word, index == 0 && !is_known));
    message_template(&words.collect::<Vec<_>>().join(" "))
}

/// The property, or the name that is not defined, of which an engine says that it is missing or no function:
/// browsers say so in words of their own. Nothing of what the application says.
pub(super) fn missing_name(message: &str) -> Option<&str> {
    let message = message.trim();
    if let Some(name) = message.strip_prefix("Can't find variable: ") {
        return Some(name);
    }
    if let Some(name) = message.strip_suffix(" is not defined") {
        return is_path(name).then_some(name);
    }
    let path = match first_property(message) {
        Some(property) if property.opening != EVALUATING => return Some(property.name),
        Some(evaluated) => evaluated.name,
        None => message.split_once(" is not a function")?.0,
    };
    let (_, name) = path.rsplit_once('.').filter(|_| is_path(path))?;
    Some(name)
}

/// `e.cart.items`.
fn is_path(text: &str) -> bool {
    text.chars().all(|c| is_of_name(c) || c == '.')
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// A property in a message, or a path to one, with what stands around its quotes.
struct Property<'m> {
    opening: &'static str,
    before: &'m str,
    name: &'m str,
    after: &'m str,
}

fn first_property(text: &str) -> Option<Property<'_>> {
    let found = PROPERTIES.iter().filter_map(|opening| Some((text.find(opening)?, *opening)));
    let (start, opening) = found.min_by_key(|(start, _)| *start)?;
    let quote = opening.chars().next_back()?;
    let (before, rest) = text.split_at_checked(start + opening.len())?;
    let (name, after) = rest.split_once(quote)?;
    Some(Property { opening, before: before.trim_end_matches(quote), name, after })
}

/// `e.cart.items` as `_.cart.items`: a name of up to three letters is a variable's where a property
/// follows it, and so is the first word of a message, as in `e is not iterable`.
fn without_variable(word: &str, is_first: bool) -> Cow<'_, str> {
    let start = word.find(is_of_name);
    let Some((before, rest)) = start.and_then(|start| word.split_at_checked(start)) else {
        return Cow::Borrowed(word);
    };
    let end = rest.find(|c| !is_of_name(c));
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
            ("load2", Some("load")),
            ("submitStep1", Some("submitStep1")),
            ("sha256", Some("sha256")),
            ("global code", None),
            ("module code", None),
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
            ("https://h/main.3bcde1.js", "main.<hash>"),
            ("https://h/cart-facade.js", "cart-facade"),
            ("https://h/orders/8f14e45f-ceea-467a-9af5-2f3b1c0d9e11", ""),
            ("https://h/", ""),
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
            ("fbq is not defined", "fbq is not defined"),
            (
                "null is not an object (evaluating 'e.cart.items')",
                "null is not an object (evaluating _.cart.items)",
            ),
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

    #[test]
    fn browsers_name_what_is_missing_in_words_of_their_own() {
        for (message, name) in [
            ("Cannot read properties of undefined (reading 'amount')", Some("amount")),
            ("Cannot read property 'amount' of undefined", Some("amount")),
            ("undefined is not an object (evaluating 'e.cart.amount')", Some("amount")),
            ("can't access property \"amount\", e.cart is undefined", Some("amount")),
            ("t.handler is not a function", Some("handler")),
            (
                "e.handler is not a function. (In 'e.handler()', 'e.handler' is undefined)",
                Some("handler"),
            ),
            ("fbq is not defined", Some("fbq")),
            ("Can't find variable: fbq", Some("fbq")),
            ("t is not a function", None),
            ("undefined is not an object (evaluating 'e[0]')", None),
            ("e.cart is undefined", None),
            ("The plan gold is not defined", None),
            ("card declined", None),
            ("", None),
        ] {
            assert_eq!(missing_name(message), name, "{message}");
        }
    }
}

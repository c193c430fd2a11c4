//! Stable parts of built JavaScript. Bundlers and minifiers rename functions and files in every
//! build (`docs/semantics/error-tracking.md`, "Built code").

use std::borrow::Cow;

use super::asset_name;
use super::message_template::message_template;

/// Minimum length of a stable name. Minifiers need four letters only from 220,000 names on.
const LEAST_LASTING_LENGTH: usize = 4;
/// Length of content hashes in file names, except hexadecimal ones.
const HASH_LENGTH: usize = 8;
/// Texts before the name of a property in a message. Properties keep their names.
const PROPERTIES: [&str; 5] = ["(reading '", "(setting '", "property '", "property \"", EVALUATING];
/// Text before the path to a property, in Safari.
const EVALUATING: &str = "(evaluating '";
/// Function names that every bundle contains.
const OF_BUNDLERS: [&str; 4] = ["anonymous", "eval", "__webpack_require__", "__webpack_exec__"];
/// Names of code outside functions, in Safari.
const OUTSIDE_OF_FUNCTIONS: [&str; 3] = ["global code", "module code", "eval code"];
/// File names of the engine's own functions. Only some engines list these functions.
const OF_ENGINES: [&str; 3] = ["<anonymous>", "[native code]", "native"];
/// Maximum digits that bundlers append to a repeated name, starting with 2. Developers number
/// functions from 1, and choose longer numbers themselves: `sha256`.
const MOST_DIGITS: usize = 2;
/// Minimum length of hexadecimal hashes in file names.
const LEAST_HEXADECIMAL: usize = 6;

/// `true` if the file stands for the engine, as for `JSON.parse`.
pub(super) fn is_of_engine(file: &str) -> bool {
    OF_ENGINES.contains(&file.trim())
}

/// Returns the function's own name if it is stable. Drops the object that it was called on, whose
/// class is renamed in each build, and the bundler's number.
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

/// Drops a bundler's number: `load` for `load2` and `load$1`. Keeps a developer's number: `step1`,
/// `sha256`.
fn without_number(name: &str) -> &str {
    let rest = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some(rest) = rest.strip_suffix('$') {
        return rest.trim_end_matches('$');
    }
    let number = name.get(rest.len()..).unwrap_or_default();
    let is_of_bundler = number.len() <= MOST_DIGITS && !matches!(number, "0" | "1");
    if is_of_bundler || rest.is_empty() { rest } else { name }
}

/// Returns the name of a built file without its hash, version and chunk number. Returns `""` for a
/// page, which is the file of its inline scripts: several pages can have the script.
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

/// `true` if the end of a name is a hash. Words have no digits, and no capital except the first
/// letter. A short hash must be hexadecimal.
fn is_hash(end: &str) -> bool {
    let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_of_hashes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if end.len() < HASH_LENGTH {
        return end.bytes().all(is_hexadecimal) && end.bytes().any(|byte| byte.is_ascii_digit());
    }
    let is_word = end.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    end.bytes().all(is_of_hashes) && !is_word
}

/// Returns the template of a message, with properties but without names of variables.
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
    // A name that is not defined is global, so the bundler did not rename it.
    let is_known = kept.ends_with(" is not defined");
    let words = kept.split(' ').enumerate();
    let words = words.map(|(index, word)| without_variable(word, index == 0 && !is_known));
    message_template(&words.collect::<Vec<_>>().join(" "))
}

/// Returns the name in an engine's message about a missing property, an undefined name or a missing
/// function. Each browser words it differently. Returns `None` for the application's own messages.
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

/// `true` for a path such as `e.cart.items`.
fn is_path(text: &str) -> bool {
    text.chars().all(|c| is_of_name(c) || c == '.')
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// A property in a message, or the path to one, with the text around its quotes.
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

/// Replaces the variable of `e.cart.items`: `_.cart.items`. A name of up to three letters is a
/// variable if a property follows it. It is also one as the first word of a message:
/// `e is not iterable`.
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
    fn chosen_function_names_last() {
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
    fn file_names_lose_parts_of_the_build() {
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
    fn missing_names_are_found_for_each_browser() {
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

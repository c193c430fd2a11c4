//! Names of built files, whose content hash changes with every build.

use std::borrow::Cow;

/// Minimum hexadecimal digits of an identifier. Fewer are as likely a word.
const LEAST_HEX_DIGITS: usize = 8;
/// Minimum hexadecimal letters of an identifier without digits. Fewer can be a word.
const LEAST_HEX_LETTERS: usize = 16;

const LEAST_HASH_LENGTH: usize = 8;
const MAX_HASH_LENGTH: usize = 64;
/// Extensions of files that bundlers name with a content hash.
const BUILT_EXTENSIONS: [&str; 11] =
    ["js", "mjs", "cjs", "css", "map", "wasm", "html", "json", "woff2", "png", "svg"];

/// Returns the name with `<hash>` for each content hash: `app.8f14e45f.js`, `index-BxK3f9a0.css`,
/// `8f14e45fceea167a.chunk.js`. Hexadecimal hashes count anywhere. Other hashes count only right
/// before the extension of a built file.
pub(super) fn without_hash(name: &str) -> Cow<'_, str> {
    let Some(first) = parts(name).position(|part| is_hash(name, part)) else {
        return Cow::Borrowed(name);
    };
    let mut out = String::with_capacity(name.len());
    for (index, part) in parts(name).enumerate() {
        if index >= first && is_hash(name, part) {
            out.push_str("<hash>");
        } else {
            out.push_str(part);
        }
    }
    Cow::Owned(out)
}

/// Returns the name's parts, split at `.`, `-` and `~`. Each separator is a part of its own.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let separators: &[char] = &['.', '-', '~'];
    name.split_inclusive(separators).flat_map(move |part| {
        let bare = part.trim_end_matches(separators);
        let separator = part.get(bare.len()..).unwrap_or_default();
        [bare, separator].into_iter().filter(|part| !part.is_empty())
    })
}

fn is_hash(name: &str, part: &str) -> bool {
    if !(LEAST_HASH_LENGTH..=MAX_HASH_LENGTH).contains(&part.len()) {
        return false;
    }
    let Some(extension) = built_extension(name) else { return false };
    is_hexadecimal(part) || (is_before_extension(name, part, extension) && looks_random(part))
}

fn built_extension(name: &str) -> Option<&str> {
    let (_, extension) = name.rsplit_once('.')?;
    BUILT_EXTENSIONS.contains(&extension).then_some(extension)
}

fn is_before_extension(name: &str, part: &str, extension: &str) -> bool {
    name.strip_suffix(extension)
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|stem| stem.len() > part.len() && stem.ends_with(part))
}

/// `true` for Base64url or base36 instead of a word: letters and digits alternate, or the case
/// does.
fn looks_random(part: &str) -> bool {
    let bytes = part.as_bytes();
    let has_letter = bytes.iter().any(u8::is_ascii_alphabetic);
    let digits_inside = bytes.iter().rev().skip_while(|byte| byte.is_ascii_digit());
    let has_digit_inside = digits_inside.filter(|byte| byte.is_ascii_digit()).count() > 0;
    let capitals = bytes.windows(2).filter(|pair| {
        matches!(pair, [before, after] if before.is_ascii_uppercase() && after.is_ascii_uppercase())
    });
    let is_mixed_case = bytes.iter().any(u8::is_ascii_lowercase) && capitals.count() > 0;
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && has_letter
        && (has_digit_inside || is_mixed_case)
}

/// `true` if letters and digits are a hash or an id instead of a word.
pub(super) fn is_hexadecimal(atom: &str) -> bool {
    atom.len() >= LEAST_HEX_DIGITS
        && atom.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (atom.len() >= LEAST_HEX_LETTERS || atom.bytes().any(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_content_hashes() {
        for (name, without) in [
            ("app.8f14e45f.js", "app.<hash>.js"),
            ("main-8f14e45fceea167a5a36dedd4bea2543.css", "main-<hash>.css"),
            ("8f14e45fceea167a.chunk.js", "<hash>.chunk.js"),
            ("index-BxK3f9a0.js", "index-<hash>.js"),
            ("index-DkXYpqRs.js", "index-<hash>.js"),
            ("vendors~app.8f14e45f.js.map", "vendors~app.<hash>.js.map"),
            ("framework-1a2b3c4d-5e6f7a8b.js", "framework-<hash>-<hash>.js"),
        ] {
            assert_eq!(without_hash(name), without, "{name}");
        }
    }

    #[test]
    fn leaves_other_names_alone() {
        for name in [
            "app.js",
            "user-profile.js",
            "my-component.js",
            "run_main_module",
            "jquery-3.7.1.min.js",
            "checkout2.js",
            "OrderService.java",
            "userProfile.js",
            "template1.html",
            "",
            "...",
            "-.js",
        ] {
            assert_eq!(without_hash(name), name);
        }
    }
}

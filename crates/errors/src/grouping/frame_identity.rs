//! The part of a fingerprint from a frame (`docs/semantics/error-tracking.md`, "Frames"): the
//! frame's place, but never its line.

use std::borrow::Cow;

use super::asset_name;
use super::occurrence::Frame;

const EXTENSION_SCHEMES: [&str; 6] = [
    "chrome-extension://",
    "moz-extension://",
    "safari-extension://",
    "safari-web-extension://",
    "ms-browser-extension://",
    "webkit-masked-url://",
];

/// Place and function of a frame, and the source line if the function has no stable name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrameIdentity<'e> {
    /// The module, else the file name.
    pub place: Cow<'e, str>,
    /// The function, or `""`.
    pub function: &'e str,
    /// The source line, only if there is no function.
    pub context_line: &'e str,
}

impl<'e> FrameIdentity<'e> {
    pub(super) fn of(frame: &Frame<'e>) -> Self {
        let place = if frame.module.is_empty() { basename(frame.file) } else { frame.module };
        let (function, context_line) = match lasting_function(frame.function) {
            "" => ("", frame.context_line.trim()),
            function => (function, ""),
        };
        Self { place: asset_name::without_hash(place), function, context_line }
    }
}

/// `true` if a frame belongs to a browser extension.
pub(super) fn is_browser_extension(frame: &Frame<'_>) -> bool {
    EXTENSION_SCHEMES.iter().any(|scheme| frame.file.starts_with(scheme))
}

/// Returns the file name without directories. For a URL, also drops query and fragment.
fn basename(file: &str) -> &str {
    let path =
        if file.contains("://") { file.split(['?', '#']).next().unwrap_or(file) } else { file };
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the function's name, or `""` for an anonymous or minified one: `?`, `<anonymous>` or one
/// letter, also as a method (`Object.<anonymous>`).
fn lasting_function(function: &str) -> &str {
    let name = function.trim().trim_start_matches("async ").trim_start_matches("new ");
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_anonymous = matches!(last, "" | "?" | "<anonymous>" | "{anonymous}" | "(anonymous)");
    let is_minified = name.chars().nth(1).is_none();
    // Rust mangles a build hash into each name: `shop::cart::add::h0123456789abcdef`.
    let demangled = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16);
    if is_anonymous || is_minified { "" } else { demangled.map_or(name, |(path, _)| path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'e>(module: &'e str, file: &'e str, function: &'e str) -> Frame<'e> {
        Frame { module, file, function, context_line: "  return f(x);", in_app: true }
    }

    #[test]
    fn place_is_the_module_or_file_name() {
        for (module, file, place) in [
            ("shop.cart", "/srv/a/cart.py", "shop.cart"),
            ("", "/srv/release-41/cart.py", "cart.py"),
            ("", "C:\\build\\cart.cs", "cart.cs"),
            ("", "https://cdn.example.com/static/app.8f14e45f.js?v=1#x", "app.<hash>.js"),
            ("", "cart#1.py", "cart#1.py"),
        ] {
            assert_eq!(FrameIdentity::of(&frame(module, file, "add")).place, place);
        }
    }

    #[test]
    fn source_line_replaces_an_unstable_function_name() {
        for function in
            ["", "?", "<anonymous>", "Object.<anonymous>", "Object.?", "new <anonymous>", "e"]
        {
            let frame = frame("m", "", function);
            let identity = FrameIdentity::of(&frame);
            assert_eq!(
                (identity.function, identity.context_line),
                ("", "return f(x);"),
                "{function}"
            );
        }
        for (function, name) in [
            ("add", "add"),
            ("Cart.add", "Cart.add"),
            ("<module>", "<module>"),
            ("async load", "load"),
            ("shop::add::h0123456789abcdef", "shop::add"),
        ] {
            let frame = frame("m", "", function);
            let identity = FrameIdentity::of(&frame);
            assert_eq!((identity.function, identity.context_line), (name, ""), "{function}");
        }
    }
}

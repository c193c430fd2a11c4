//! Names of sources and scripts (`docs/semantics/source-maps.md`, "Paths").

/// Maximum characters of a source's name.
const MAX_CHARS: usize = 500;
/// Folders of code that the application did not write.
const LIBRARY_FOLDERS: [&str; 2] = ["node_modules", "bower_components"];
/// First segments of code that bundlers generate.
const GENERATED: [&str; 4] = ["webpack", "(webpack)", "vite", "rollup"];

/// Returns the relative name of a source: without scheme, host, drive, query, `.` and `..`.
///
/// ```text
/// webpack://shop/./src/cart.js?ab12   src/cart.js
/// C:\build\src\cart.ts                build/src/cart.ts
/// ```
pub fn clean_path(source: &str) -> String {
    let plain: String = source.chars().filter(|c| !c.is_control()).collect();
    let source = plain.trim();
    if source.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:")) {
        return "<data>".to_owned();
    }
    let source = source.split('?').next().unwrap_or(source);
    let (path, is_url) = without_scheme(source);
    let segments = path.split(['/', '\\']).enumerate().map(|(index, segment)| match segment {
        "~" if is_url || index > 0 => "node_modules",
        drive if index == 0 && drive.len() == 2 && drive.ends_with(':') => "",
        segment => segment,
    });
    let name: String = normalized(segments).chars().take(MAX_CHARS).collect();
    if name.is_empty() { "<unknown>".to_owned() } else { name }
}

/// Returns `true` unless a clean path belongs to a library or to generated code.
pub fn is_in_app(path: &str) -> bool {
    let is_generated = path.starts_with('<')
        || path.split_once('/').is_some_and(|(first, _)| GENERATED.contains(&first));
    !is_generated && !path.split('/').any(|segment| LIBRARY_FOLDERS.contains(&segment))
}

/// Returns the path of a script's URL, which starts with `/`, without host, query and fragment.
/// `~` stands for any host. Returns `None` if the text is no URL, no such path and no file path.
pub fn url_path(url: &str) -> Option<String> {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.get(rest.find('/')?..)?,
        None => url.strip_prefix('~').unwrap_or(url),
    };
    let path = path.strip_prefix('/')?;
    let path = normalized(path.split('/'));
    (!path.is_empty()).then(|| format!("/{path}"))
}

/// Joins the segments of a path, without `.`, `..` and empty ones.
fn normalized<'p>(segments: impl Iterator<Item = &'p str>) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in segments {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    kept.join("/")
}

/// Returns the path after scheme and authority, and `true` if there was a scheme.
fn without_scheme(source: &str) -> (&str, bool) {
    let Some((scheme, rest)) = source.split_once(':') else { return (source, false) };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    if scheme.len() < 2 || !scheme.chars().all(is_of_scheme) {
        return (source, false);
    }
    // `file:///C:/a` and `webpack:///./a` have no authority.
    let path = rest.strip_prefix("//").map(|rest| rest.split_once('/').map_or(rest, |it| it.1));
    (path.unwrap_or(rest), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sources_become_relative_names() {
        for (source, name) in [
            ("webpack://shop/./src/cart.js", "src/cart.js"),
            ("webpack:///./src/cart.js?ab12", "src/cart.js"),
            ("webpack:///src/cart.js", "src/cart.js"),
            ("webpack-internal:///./src/cart.js", "src/cart.js"),
            ("webpack:///~/lodash/map.js", "node_modules/lodash/map.js"),
            ("webpack://shop/webpack/bootstrap", "webpack/bootstrap"),
            ("./src/../src/cart.ts", "src/cart.ts"),
            ("../../src/cart.ts", "src/cart.ts"),
            ("/home/ci/shop/src/cart.ts", "home/ci/shop/src/cart.ts"),
            ("C:\\build\\src\\cart.ts", "build/src/cart.ts"),
            ("file:///C:/build/cart.ts", "build/cart.ts"),
            ("file:///srv/cart.ts", "srv/cart.ts"),
            ("https://cdn.example.com/src/cart.ts?v=1", "src/cart.ts"),
            ("data:text/javascript;base64,AAAA", "<data>"),
            ("\0commonjsHelpers.js", "commonjsHelpers.js"),
            ("src/a\u{7}b\nc.js", "src/abc.js"),
            ("", "<unknown>"),
            ("..", "<unknown>"),
            ("src/routes/[id].svelte", "src/routes/[id].svelte"),
        ] {
            assert_eq!(clean_path(source), name, "{source}");
        }
    }

    #[test]
    fn libraries_and_generated_code_are_not_in_app() {
        for path in ["src/cart.js", "webpack.js", "src/webpack/a.js", "cart.js"] {
            assert!(is_in_app(path), "{path}");
        }
        for path in
            ["node_modules/a/b.js", "packages/a/node_modules/b.js", "webpack/bootstrap", "<data>"]
        {
            assert!(!is_in_app(path), "{path}");
        }
    }

    #[test]
    fn urls_lose_host_and_query() {
        for (url, path) in [
            ("~/static/app.js", Some("/static/app.js")),
            ("https://shop.example.com/static/app.js?v=1#x", Some("/static/app.js")),
            ("app:///static/./app.js", Some("/static/app.js")),
            ("/static/app.js", Some("/static/app.js")),
            ("~/a/../../app.js", Some("/app.js")),
            ("https://shop.example.com", None),
            ("https://shop.example.com/", None),
            ("app.js", None),
            ("<anonymous>", None),
            ("", None),
        ] {
            assert_eq!(url_path(url).as_deref(), path, "{url}");
        }
    }

    proptest! {
        #[test]
        fn names_stay_relative(source in "[a-c.:/\\\\~?\\x00 é]{0,30}") {
            let name = clean_path(&source);
            prop_assert!(!name.is_empty() && !name.starts_with('/') && !name.contains('\\'));
            prop_assert!(!name.split('/').any(|it| it == ".."));
        }
    }
}

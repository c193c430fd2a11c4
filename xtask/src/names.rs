//! Converts function names between naming styles.

/// Converts `create-feature-flag` to the template's resource name `CreateFeatureFlag`.
pub(crate) fn pascal_case(kebab_case: &str) -> String {
    kebab_case.split('-').map(capitalized).collect()
}

/// Converts `purge-event-markers` to the metric id `purgeEventMarkers`.
pub(crate) fn camel_case(kebab_case: &str) -> String {
    match kebab_case.split_once('-') {
        Some((first, rest)) => first.to_owned() + &pascal_case(rest),
        None => kebab_case.to_owned(),
    }
}

/// Converts `create-feature-flag` to the Rust crate name `create_feature_flag`.
pub(crate) fn snake_case(kebab_case: &str) -> String {
    kebab_case.replace('-', "_")
}

/// Capitalizes the first letter and lowercases the others.
pub(crate) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_to_each_style() {
        assert_eq!(pascal_case("create-feature-flag"), "CreateFeatureFlag");
        assert_eq!(camel_case("purge-event-markers"), "purgeEventMarkers");
        assert_eq!(camel_case("purge"), "purge");
        assert_eq!(snake_case("get-error"), "get_error");
        assert_eq!(capitalized("DELETE"), "Delete");
        assert_eq!(capitalized(""), "");
    }
}

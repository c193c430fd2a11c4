//! The name of a function in the forms that files want.

/// `create-feature-flag` as a resource of the template: `CreateFeatureFlag`.
pub(crate) fn pascal_case(kebab_case: &str) -> String {
    kebab_case.split('-').map(capitalized).collect()
}

/// `purge-event-markers` as the id of a metric: `purgeEventMarkers`.
pub(crate) fn camel_case(kebab_case: &str) -> String {
    match kebab_case.split_once('-') {
        Some((first, rest)) => first.to_owned() + &pascal_case(rest),
        None => kebab_case.to_owned(),
    }
}

/// `create-feature-flag` as a crate in Rust: `create_feature_flag`.
pub(crate) fn snake_case(kebab_case: &str) -> String {
    kebab_case.replace('-', "_")
}

/// A word with a capital at its beginning and none after it.
pub(crate) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_form_that_each_file_wants() {
        assert_eq!(pascal_case("create-feature-flag"), "CreateFeatureFlag");
        assert_eq!(camel_case("purge-event-markers"), "purgeEventMarkers");
        assert_eq!(camel_case("purge"), "purge");
        assert_eq!(snake_case("get-error"), "get_error");
        assert_eq!(capitalized("DELETE"), "Delete");
        assert_eq!(capitalized(""), "");
    }
}

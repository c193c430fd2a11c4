//! Lists whose items must differ.

use std::collections::HashSet;

use super::{Json, JsonPath, ViolationCode, Violations};

/// Records a violation for every item with the identity of an earlier item of the array. The
/// violation is at the field `member`, or at the item.
///
/// Works on the JSON, so that items with other violations count too. Skips an array of more than
/// `max` items, which already has a violation.
pub fn note_duplicates(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    max: usize,
    member: Option<&str>,
    identity: impl Fn(&Json<'_>) -> Option<String>,
    violations: &mut Violations,
) {
    let Json::Array(items) = json else { return };
    if items.len() > max {
        return;
    }
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        if identity(item).is_some_and(|identity| !seen.insert(identity)) {
            let item_place = path.item(index);
            let message = "repeats an earlier item of the list; remove one";
            match member {
                Some(name) => {
                    violations.note(&item_place.member(name), ViolationCode::Duplicate, message);
                }
                None => violations.note(&item_place, ViolationCode::Duplicate, message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicates(text: &str, max: usize, member: Option<&str>) -> Vec<String> {
        let json = Json::parse(text, 8).unwrap();
        let mut violations = Violations::default();
        let identity = |item: &Json<'_>| item.member_text("id").map(str::to_owned);
        note_duplicates(&json, &JsonPath::Root, max, member, identity, &mut violations);
        assert!(violations.listed().iter().all(|v| v.code == ViolationCode::Duplicate));
        violations.listed().iter().map(|v| v.pointer.clone()).collect()
    }

    #[test]
    fn all_items_but_the_first_are_duplicates() {
        let text = r#"[{"id":"a"},{"id":"b"},{"id":"a","x":1},{},{},{"id":1},{"id":1},{"id":"a"}]"#;
        assert_eq!(duplicates(text, 8, Some("id")), ["/2/id", "/7/id"]);
        assert_eq!(duplicates(text, 8, None), ["/2", "/7"]);
    }

    #[test]
    fn overlong_arrays_and_objects_are_skipped() {
        assert_eq!(duplicates(r#"[{"id":"a"},{"id":"a"}]"#, 1, None), [""; 0]);
        assert_eq!(duplicates(r#"{"id":"a"}"#, 1, None), [""; 0]);
    }
}

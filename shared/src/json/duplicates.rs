//! Lists whose items must differ.

use std::collections::HashSet;

use super::{Json, JsonPath, ViolationCode, Violations};

/// Notes every item whose identity an earlier item of the same array has, at the `member` that
/// makes it up, or at the item. Works on the JSON, so that items with other faults count too; an
/// array of more than `max` items has been noted as a whole.
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
            let message = "an earlier item of this list is the same; keep one";
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
    fn notes_every_item_but_the_first_of_its_kind() {
        let text = r#"[{"id":"a"},{"id":"b"},{"id":"a","x":1},{},{},{"id":1},{"id":1},{"id":"a"}]"#;
        assert_eq!(duplicates(text, 8, Some("id")), ["/2/id", "/7/id"]);
        assert_eq!(duplicates(text, 8, None), ["/2", "/7"]);
    }

    #[test]
    fn leaves_alone_what_is_noted_as_a_whole() {
        assert_eq!(duplicates(r#"[{"id":"a"},{"id":"a"}]"#, 1, None), [""; 0]);
        assert_eq!(duplicates(r#"{"id":"a"}"#, 1, None), [""; 0]);
    }
}

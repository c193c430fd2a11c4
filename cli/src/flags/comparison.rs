//! Compares two versions of a flag or segment, field by field.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use flags::{FeatureFlag, Segment};

use super::document::FlagSpec;

/// Fields of a flag that can change, in output order. Lists have the field that identifies an item.
const FIELDS: [(&str, Option<&str>); 10] = [
    ("name", None),
    ("description", None),
    ("enabled", None),
    ("archived", None),
    ("variants", Some("key")),
    ("offVariant", None),
    ("fallthrough", None),
    ("rules", Some("id")),
    ("targets", Some("value")),
    ("prerequisites", Some("flagKey")),
];

/// Fields of a segment that can change.
const SEGMENT_FIELDS: [(&str, Option<&str>); 2] = [("name", None), ("conditions", None)];

/// A field with different values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FieldChange {
    field: &'static str,
    before: Value,
    after: Value,
    #[serde(skip)]
    id_field: Option<&'static str>,
}

/// Returns the fields that differ.
pub(super) fn compare(before: &FeatureFlag, after: &FeatureFlag) -> Vec<FieldChange> {
    field_changes(&FIELDS, &FlagSpec::of(before), &FlagSpec::of(after))
}

/// Returns the fields of a segment that differ.
pub(super) fn compare_segments(before: &Segment, after: &Segment) -> Vec<FieldChange> {
    field_changes(&SEGMENT_FIELDS, before, after)
}

fn field_changes<T: Serialize>(
    fields: &[(&'static str, Option<&'static str>)],
    before: &T,
    after: &T,
) -> Vec<FieldChange> {
    let (mut before, mut after) = (fields_of(before), fields_of(after));
    let mut change = |field, id_field| {
        let (before, after) = (before.remove(field)?, after.remove(field)?);
        (before != after).then_some(FieldChange { field, before, after, id_field })
    };
    fields.iter().filter_map(|(field, id_field)| change(*field, *id_field)).collect()
}

fn fields_of(value: &impl Serialize) -> Map<String, Value> {
    // Flags and segments can always be serialized.
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, before, after, id_field } = self;
        match (before, after, id_field) {
            (Value::Array(before), Value::Array(after), Some(id_field)) => {
                write!(formatter, "{field}:")?;
                write_items(formatter, before, after, id_field)
            }
            _ => write!(formatter, "{field}: {before} → {after}"),
        }
    }
}

/// Writes removed items, added items, and the order of the remaining ones if it changes.
fn write_items(
    formatter: &mut fmt::Formatter<'_>,
    before: &[Value],
    after: &[Value],
    id_field: &str,
) -> fmt::Result {
    for removed in before.iter().filter(|item| !after.contains(item)) {
        write!(formatter, "\n  - {removed}")?;
    }
    for added in after.iter().filter(|item| !before.contains(item)) {
        write!(formatter, "\n  + {added}")?;
    }
    let names = |items: &[Value]| items.iter().map(|item| item[id_field].clone()).collect();
    let (before, after): (Vec<Value>, Vec<Value>) = (names(before), names(after));
    let staying = |items: &[Value], others: &[Value]| -> Vec<Value> {
        items.iter().filter(|item| others.contains(item)).cloned().collect()
    };
    if staying(&before, &after) == staying(&after, &before) {
        return Ok(());
    }
    write!(formatter, "\n  in the order {}", Value::Array(after))
}

#[cfg(test)]
mod tests {
    use flags::draft::FlagDraft;
    use serde_json::json;
    use shared::json::Json;
    use shared::projects::project::ProjectId;
    use shared::timestamp::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn flag(fields: &Value) -> FeatureFlag {
        let mut body = json!({"key": "f", "name": "F", "type": "boolean"});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let text = body.to_string();
        let draft = FlagDraft::read(&Json::parse(&text, 10).unwrap()).unwrap();
        let project = ProjectId::new(Uuid::nil());
        draft.into_flag(project, Timestamp::from_millis(0), Uuid::nil).unwrap()
    }

    fn shown(before: &Value, after: &Value) -> Vec<String> {
        compare(&flag(before), &flag(after)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_differing_fields_are_shown() {
        let before = json!({"name": "Old \"name\"", "offVariant": "off"});
        let after = json!({"name": "New", "enabled": true, "offVariant": null});
        let expected = [
            r#"name: "Old \"name\"" → "New""#,
            "enabled: false → true",
            r#"offVariant: "off" → null"#,
        ];
        assert_eq!(shown(&before, &after), expected);
        assert_eq!(shown(&before, &before), [""; 0]);
        let mut archived = flag(&json!({}));
        archived.archived_at = Some(Timestamp::from_millis(5));
        archived.version = 7;
        let changes = compare(&flag(&json!({})), &archived);
        assert_eq!(
            changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["archived: false → true"]
        );
    }

    #[test]
    fn differing_list_items_are_shown() {
        let rule = |id: &str, serve: &str| json!({"id": id, "serve": {"variant": serve}});
        let before = json!({"rules": [rule("a", "on"), rule("b", "on"), rule("c", "on")]});
        let after = json!({"rules": [rule("c", "on"), rule("b", "off"), rule("d", "on")]});
        let item = |id: &str, serve: &str| {
            let serve = format!(r#""serve":{{"rollout":[],"variant":"{serve}"}}"#);
            format!(r#"{{"conditions":[],"id":"{id}","name":"",{serve}}}"#)
        };
        let expected = format!(
            "rules:\n  - {}\n  - {}\n  + {}\n  + {}\n  in the order [\"c\",\"b\",\"d\"]",
            item("a", "on"),
            item("b", "on"),
            item("b", "off"),
            item("d", "on"),
        );
        assert_eq!(shown(&before, &after), [expected]);
    }
}

//! Values that schemas allow, and values at the edge of a bound and one step beyond.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use super::patterns::{matching, neighbours};
use super::schemas::{Bound, OPEN_NAME, Schema, Spot, field_schemas, flat, is_valid, item_schemas};

/// Unknown fields.
const UNKNOWN: &str = "unbekannt/größe";

/// Generates values. Texts are unique if possible.
#[derive(Default)]
pub(super) struct Values {
    generated: Cell<u32>,
}

/// The values for a bound: values at the place, and the name of the invalid field below it, if
/// there is one.
pub(super) struct Tries {
    pub edge: Vec<Value>,
    pub beyond: Vec<(Value, Option<String>)>,
}

impl Values {
    /// Returns a small value that all schemas allow, with the place and its conditions.
    pub(super) fn make(&self, all: &[Schema], spot: &Spot) -> Option<Value> {
        self.make_at(all, spot, 0)
    }

    /// Returns the part of [`Self::make`] that is `depth` steps down.
    fn make_at(&self, all: &[Schema], spot: &Spot, depth: usize) -> Option<Value> {
        let mut all = all.to_vec();
        all.extend(spot.conditions.iter().filter(|it| it.0 == depth).map(|it| it.1));
        let flat = flat(&all);
        let undecided = flat.iter().filter_map(|schema| schema["oneOf"].as_array());
        let is_chosen = |branch: &Schema| flat.iter().any(|it| std::ptr::eq(*it, *branch));
        let undecided =
            undecided.map(|it| it.iter().collect::<Vec<_>>()).find(|it| !it.iter().any(is_chosen));
        if let Some(branches) = undecided {
            return branches.into_iter().find_map(|branch| {
                self.make_at(&[all.clone(), vec![branch]].concat(), &deeper(spot, depth), depth)
            });
        }
        let value = match kind(&flat)? {
            "object" => self.object(&flat, spot, depth)?,
            "array" => self.array(&flat, spot, depth)?,
            "string" => self.text(&flat)?,
            "number" | "integer" => number(&flat)?,
            "boolean" => json!(!is_valid(&flat, &json!(false))),
            _ => Value::Null,
        };
        let implied =
            flat.iter().filter(|it| it.get("if").is_some_and(|it| is_valid(&[it], &value)));
        let implied: Vec<Schema> = implied.filter_map(|it| it.get("then")).collect();
        let missing =
            implied.into_iter().find(|it| !all.iter().any(|known| std::ptr::eq(*known, *it)));
        if let Some(then) = missing {
            return self.make_at(&[all, vec![then]].concat(), &deeper(spot, depth), depth);
        }
        is_valid(&all, &value).then_some(value)
    }

    fn object(&self, flat: &[Schema], spot: &Spot, depth: usize) -> Option<Value> {
        let on_the_way = spot.path.get(depth).map(String::as_str);
        let required = flat.iter().filter_map(|it| it["required"].as_array()).flatten();
        let mut names: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        names.extend(on_the_way);
        let mut fields = Map::new();
        for name in names {
            let schemas = field_schemas(flat, name);
            let value = if Some(name) == on_the_way {
                self.make_at(&schemas, spot, depth + 1)
            } else {
                self.make(&schemas, &Spot::default())
            };
            fields.insert(name.to_owned(), value?);
        }
        Some(fields.into())
    }

    fn array(&self, flat: &[Schema], spot: &Spot, depth: usize) -> Option<Value> {
        let schemas = item_schemas(flat);
        let least = flat.iter().filter_map(|it| it["minItems"].as_u64()).max().unwrap_or(0);
        let mut items = Vec::new();
        if spot.path.len() > depth {
            items.push(self.make_at(&schemas, spot, depth + 1)?);
        }
        while (items.len() as u64) < least {
            items.push(self.make(&schemas, &Spot::default())?);
        }
        Some(items.into())
    }

    fn text(&self, flat: &[Schema]) -> Option<Value> {
        self.generated.set(self.generated.get() + 1);
        let number = self.generated.get();
        let listed = flat.iter().flat_map(|it| [&it["enum"], &it["examples"]]);
        let listed = listed.filter_map(Value::as_array).flatten();
        let listed = listed.chain(flat.iter().filter_map(|it| it.get("const"))).cloned();
        let plain = [
            format!("größe {number}"),
            format!("v{number}"),
            number.to_string(),
            format!("01902f3c-0000-7000-8000-{number:012x}"),
            "2026-11-21T04:16:00Z".to_owned(),
        ];
        let patterns = flat.iter().filter_map(|it| it["pattern"].as_str());
        let texts = plain.into_iter().chain(patterns.flat_map(matching)).map(Value::from);
        listed.chain(texts).find(|text| text.is_string() && is_valid(flat, text))
    }

    /// Returns a list with `length` items that begins like another.
    fn list(&self, items: &[Schema], start: &Value, length: u64) -> Option<Value> {
        let length = usize::try_from(length).expect("lists are short");
        let mut list = start.as_array().cloned().unwrap_or_default();
        list.truncate(length);
        if items.is_empty() && list.len() < length {
            return None;
        }
        while list.len() < length {
            list.push(self.make(items, &Spot::default())?);
        }
        Some(list.into())
    }

    /// Returns an object with `count` fields that begins like another.
    fn fields(&self, flat: &[Schema], start: &Value, count: u64) -> Option<Value> {
        let known = flat.iter().filter_map(|it| it["properties"].as_object()).flatten();
        let mut names: Vec<String> = known.map(|(name, _)| name.clone()).collect();
        names.extend((0..=count).map(|number| format!("{OPEN_NAME}{number}")));
        let mut fields = start.as_object().cloned().unwrap_or_default();
        for name in names {
            if fields.len() as u64 >= count {
                break;
            }
            let schemas = field_schemas(flat, &name);
            if !schemas.is_empty() && !fields.contains_key(&name) {
                let value = self.make(&schemas, &Spot::default())?;
                fields.insert(name, value);
            }
        }
        Some(fields.into_iter().take(usize::try_from(count).ok()?).collect::<Map<_, _>>().into())
    }

    /// Returns an object with all fields that its schemas name.
    fn whole(&self, flat: &[Schema], start: &Value) -> Option<Value> {
        let mut whole = start.as_object()?.clone();
        for (name, _) in flat.iter().filter_map(|it| it["properties"].as_object()).flatten() {
            if !whole.contains_key(name) {
                whole
                    .insert(name.clone(), self.make(&field_schemas(flat, name), &Spot::default())?);
            }
        }
        Some(whole.into())
    }

    /// Returns lists or objects with `count` entries, and those with one too many or too few.
    fn counted(&self, keyword: &str, flat: &[Schema], value: &Value, count: u64) -> Tries {
        let other = if keyword.starts_with("min") { count.checked_sub(1) } else { Some(count + 1) };
        let (edge, other) = if keyword.ends_with("Items") {
            let items = item_schemas(flat);
            let list = |length| self.list(&items, value, length);
            (list(count), other.and_then(list))
        } else {
            let fields = |count| self.fields(flat, value, count);
            (fields(count), other.and_then(fields))
        };
        let fields = other.as_ref().and_then(Value::as_object);
        let nulls = fields.map(|it| it.keys().map(|name| (name.clone(), Value::Null)).collect());
        let beyond = other.clone().into_iter().chain(nulls.map(Value::Object)).collect();
        plain(edge.into_iter().collect(), beyond)
    }

    /// Returns the values to test at a place with a value and schemas.
    pub(super) fn tries(&self, bound: &Bound, flat: &[Schema], value: &Value) -> Tries {
        let limit = bound.limit;
        let count = limit.as_u64().unwrap_or_default();
        match bound.keyword {
            "minLength" => texts_of(flat, count, count.checked_sub(1)),
            "maxLength" => texts_of(flat, count, Some(count + 1)),
            "x-maxBytes" => bytes_of(count),
            "x-minLengthTrimmed" => trimmed(count, count - 1),
            "x-maxLengthTrimmed" => trimmed(count, count + 1),
            "pattern" => {
                let edge = matching(limit.as_str().expect("the limit is a pattern"));
                let mut beyond: Vec<String> =
                    edge.iter().take(3).flat_map(|text| not_allowed(flat, text)).collect();
                beyond.sort();
                beyond.dedup();
                plain(strings(edge), strings(beyond))
            }
            "format" => match limit.as_str().expect("the format is text") {
                "uuid" => {
                    let text = "0b24dd5a-0000-4000-8000-00000000000f";
                    plain(strings([text, &text.to_uppercase()]), strings(not_allowed(flat, text)))
                }
                "date-time" => plain(strings(TIMES), strings(NO_TIMES)),
                "int64" => plain(
                    vec![json!(i64::MIN), json!(i64::MAX)],
                    strings([i64::MIN, i64::MAX].map(|it| (i128::from(it) * 2).to_string())),
                ),
                other => panic!("untested format {other}"),
            },
            "enum" | "const" => {
                let edge = limit.as_array().cloned().unwrap_or_else(|| vec![limit.clone()]);
                let texts = edge.iter().filter_map(Value::as_str);
                let mut beyond: Vec<String> = texts.flat_map(misspelled).collect();
                beyond.push(String::new());
                plain(edge, strings(beyond))
            }
            "minimum" => steps(flat, limit, [0, 1], -1),
            "maximum" => steps(flat, limit, [0, -1], 1),
            "exclusiveMinimum" => steps(flat, limit, [1, 2], 0),
            "exclusiveMaximum" => steps(flat, limit, [-1, -2], 0),
            "multipleOf" => {
                let unit = limit.as_f64().expect("the limit is a number");
                plain(vec![number_of(unit), number_of(3.0 * unit)], vec![number_of(1.5 * unit)])
            }
            "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                self.counted(bound.keyword, flat, value, count)
            }
            "uniqueItems" => {
                let edge = self.list(&item_schemas(flat), value, 2);
                let mut beyond = edge.clone().unwrap_or_default();
                beyond[1] = beyond[0].clone();
                Tries {
                    edge: edge.into_iter().collect(),
                    beyond: vec![(beyond, Some("1".to_owned()))],
                }
            }
            "required" => {
                let names = limit.as_array().into_iter().flatten().filter_map(Value::as_str);
                let without = |name: &str| {
                    let mut value = value.clone();
                    value.as_object_mut()?.remove(name);
                    Some((value, Some(name.to_owned())))
                };
                let beyond = names.filter_map(without).collect();
                let edge = self.make(flat, &Spot::default());
                Tries { edge: edge.into_iter().chain([value.clone()]).collect(), beyond }
            }
            "additionalProperties" => {
                let mut beyond = value.clone();
                beyond[UNKNOWN] = json!(true);
                let edge = self.whole(flat, value).into_iter().chain([value.clone()]).collect();
                Tries { edge, beyond: vec![(beyond, Some(UNKNOWN.to_owned()))] }
            }
            "type" => {
                let all = [
                    json!(null),
                    json!(true),
                    json!(17),
                    json!(1.5),
                    json!("größe"),
                    json!([]),
                    json!({}),
                ];
                let (edge, beyond): (Vec<Value>, Vec<Value>) =
                    all.into_iter().partition(|it| has_type(it, limit));
                plain(edge.into_iter().chain([value.clone()]).collect(), beyond)
            }
            other => panic!("untested keyword {other}"),
        }
    }
}

/// Returns the conditions of a place that are deeper than `depth`; those at `depth` hold.
fn deeper(spot: &Spot, depth: usize) -> Spot {
    let conditions = spot.conditions.iter().filter(|it| it.0 != depth).copied().collect();
    Spot { conditions, ..spot.clone() }
}

const TIMES: [&str; 6] = [
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2024-02-29t23:59:59z",
    "2026-11-21T04:16:00+23:59",
    "2026-11-21T04:16:00-23:59",
    "2026-11-21T04:16:00.1Z",
];

const NO_TIMES: [&str; 12] = [
    "",
    "2026-11-21",
    "2026-11-21T04:16:00",
    "2026-11-21T04:16Z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T04:60:00Z",
    "2026-11-21T04:16:60Z",
    "2026-11-21T04:16:00+24:00",
    "2026-11-21T04:16:00.Z",
    "2026-13-01T04:16:00Z",
    "2025-02-29T04:16:00Z",
    "10000-01-01T00:00:00Z",
];

/// Returns the JSON type of all schemas; not `null` if there is a choice.
fn kind(flat: &[Schema]) -> Option<&'static str> {
    const KINDS: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
    let allows = |schema: &Schema, kind: &str| match &schema["type"] {
        Value::String(only) => only == kind || (only == "number" && kind == "integer"),
        Value::Array(several) => several.iter().any(|it| it == kind),
        _ => match kind {
            "object" => ["properties", "required"].iter().any(|it| schema.get(it).is_some()),
            _ => true,
        },
    };
    // Schemas without a type fit any, but `properties` implies an object.
    let typed = |schema: &&Schema| {
        ["type", "properties", "required"].iter().any(|it| schema.get(it).is_some())
    };
    let typed: Vec<Schema> = flat.iter().filter(typed).copied().collect();
    let values = flat.iter().filter_map(|it| it["enum"].as_array()).flatten();
    if typed.is_empty() && values.into_iter().all(Value::is_string) {
        return Some("string");
    }
    KINDS.into_iter().find(|kind| typed.iter().all(|schema| allows(schema, kind)))
}

fn number(flat: &[Schema]) -> Option<Value> {
    let limits = ["minimum", "maximum", "multipleOf"];
    let limits = flat.iter().flat_map(|it| limits.map(|limit| &it[limit])).cloned();
    [json!(1)].into_iter().chain(limits).find(|number| number.is_number() && is_valid(flat, number))
}

fn number_of(number: f64) -> Value {
    let whole = Number::from_f64(number.round()).filter(|_| number.fract() == 0.0);
    match whole.and_then(|it| it.to_string().trim_end_matches(".0").parse::<i64>().ok()) {
        Some(whole) => json!(whole),
        None => json!(number),
    }
}

/// Returns numbers that differ from a limit by some of the smallest steps.
fn steps(flat: &[Schema], limit: &Value, edge: [i32; 2], beyond: i32) -> Tries {
    let is_whole = kind(flat) == Some("integer") || flat.iter().any(|it| it["multipleOf"] == 1);
    let step = if is_whole { 1.0 } else { 0.001 };
    let at = |steps: i32| {
        number_of(limit.as_f64().expect("the limit is a number") + f64::from(steps) * step)
    };
    plain(edge.map(at).to_vec(), vec![at(beyond)])
}

/// Returns texts with two lengths, of the widest character that the place allows. In UTF-8 and
/// UTF-16 they are longer than their number of characters.
fn texts_of(flat: &[Schema], edge: u64, beyond: Option<u64>) -> Tries {
    let repeat = |text: &str, count: u64| {
        json!(text.repeat(usize::try_from(count).expect("the count is small")))
    };
    let characters = ["😀", "ß", "a"];
    let fits = characters.iter().find(|it| is_valid(flat, &repeat(it, edge)));
    let character = fits.unwrap_or(&"a");
    plain(
        vec![repeat(character, edge)],
        beyond.into_iter().map(|count| repeat(character, count)).collect(),
    )
}

/// Returns texts with two lengths, with and without surrounding white space.
fn trimmed(edge: u64, beyond: u64) -> Tries {
    let both = |length: u64| {
        let text = "😀".repeat(usize::try_from(length).expect("the length is small"));
        vec![json!(text), json!(format!(" \t{text}\n "))]
    };
    plain(both(edge), both(beyond))
}

/// Returns texts with `count` bytes, and with one more.
fn bytes_of(count: u64) -> Tries {
    let count = usize::try_from(count).expect("the count is small");
    let wide = |bytes: usize| "a".repeat(bytes % 4) + &"😀".repeat(bytes / 4);
    let (narrow, wide) = (|bytes: usize| json!("a".repeat(bytes)), |bytes| json!(wide(bytes)));
    plain(vec![narrow(count), wide(count)], vec![narrow(count + 1), wide(count + 1)])
}

/// Returns similar texts that no schema allows.
fn not_allowed(flat: &[Schema], text: &str) -> Vec<String> {
    neighbours(text, |text| is_valid(flat, &json!(text)))
}

/// `true` if a value has a type, or one of several.
fn has_type(value: &Value, types: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("the type is text") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    types.as_array().map_or_else(|| is(types), |several| several.iter().any(is))
}

/// Returns texts that are nearly a name.
fn misspelled(name: &str) -> Vec<String> {
    let short: String = name.chars().skip(1).collect();
    vec![name.to_uppercase(), format!("{name} "), format!("{name}s"), short]
}

fn strings<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Vec<Value> {
    texts.into_iter().map(|text| Value::String(text.into())).collect()
}

fn plain(edge: Vec<Value>, beyond: Vec<Value>) -> Tries {
    Tries { edge, beyond: beyond.into_iter().map(|value| (value, None)).collect() }
}

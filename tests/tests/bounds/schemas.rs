//! The bounds of requests in `openapi.yaml`, and validation of values.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Keyword, Registry, RegistryBuilder, ValidationError, Validator};
use serde_json::{Value, json};
use tests::contract::{OPENAPI, resolve};

/// Field name used where a schema allows any name.
pub(super) const OPEN_NAME: &str = "größe";

/// A schema of `openapi.yaml`, or one composed of its parts.
pub(super) type Schema = &'static Value;

/// Keywords without a bound.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "contentMediaType",
    "if",
    "x-required-scope",
    "x-function",
];

/// Keywords with a bound.
const BOUNDS: [&str; 22] = [
    "additionalProperties",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
    "x-maxBytes",
    "x-maxLengthTrimmed",
    "x-minLengthTrimmed",
];

/// A keyword that limits the values of one place.
#[derive(Clone)]
pub(super) struct Bound {
    /// Location of the keyword, from the root of `openapi.yaml` or of the operation.
    pub source: String,
    /// The keyword.
    pub keyword: &'static str,
    /// The keyword's value.
    pub limit: Schema,
    /// The limited place. Tests use the first item of lists, and any open field.
    pub spot: Spot,
}

/// A place in a body, with conditions under which a schema applies.
#[derive(Clone, Default)]
pub(super) struct Spot {
    /// The names on the path; `0` for any item.
    pub path: Vec<String>,
    /// Conditions of the bound, each with the depth of its place.
    pub conditions: Vec<(usize, Schema)>,
    /// Additional possible conditions, one at a time.
    pub alternatives: Vec<(usize, Schema)>,
    /// `true` if the names of the fields are limited, not their values.
    pub of_names: bool,
}

impl Spot {
    fn field(&self, name: &str) -> Self {
        let mut spot = self.clone();
        spot.path.push(name.to_owned());
        spot
    }

    fn under(&self, condition: Schema) -> Self {
        self.when((self.path.len(), condition))
    }

    /// Adds a condition to the place.
    pub(super) fn when(&self, condition: (usize, Schema)) -> Self {
        let mut spot = self.clone();
        spot.conditions.push(condition);
        spot
    }
}

/// Returns the JSON Pointer of a place.
pub(super) fn pointer(path: &[String]) -> String {
    let escaped = path.iter().map(|name| name.replace('~', "~0").replace('/', "~1"));
    escaped.fold(String::new(), |pointer, name| pointer + "/" + &name)
}

/// Returns all bounds below a schema.
pub(super) fn bounds(schema: Schema, source: &str) -> Vec<Bound> {
    let mut found = Vec::new();
    walk(schema, source, &Spot::default(), &mut found);
    found
}

fn walk(schema: Schema, source: &str, spot: &Spot, found: &mut Vec<Bound>) {
    let mut spot = spot.clone();
    let branches = schema["oneOf"].as_array().into_iter().flatten();
    spot.alternatives.extend(branches.map(|branch| (spot.path.len(), branch)));
    let spot = &spot;
    for (keyword, limit) in schema.as_object().into_iter().flatten() {
        let here = format!("{source}/{keyword}");
        match keyword.as_str() {
            "$ref" => {
                let named = limit.as_str().expect("the keyword is text");
                walk(resolve(schema), named.trim_start_matches('#'), spot, found);
            }
            "allOf" => each(limit, |at, part| walk(part, &format!("{here}/{at}"), spot, found)),
            "oneOf" => each(limit, |at, part| {
                walk(part, &format!("{here}/{at}"), &spot.under(part), found);
            }),
            "then" => {
                for case in cases(&schema["if"]) {
                    walk(limit, &here, &spot.under(case), found);
                }
            }
            "properties" => {
                for (name, part) in limit.as_object().into_iter().flatten() {
                    walk(part, &format!("{here}/{name}"), &spot.field(name), found);
                }
            }
            "items" => walk(limit, &here, &spot.field("0"), found),
            // A list with one item contains what that item is.
            "contains" => walk(limit, &here, &spot.under(&Value::Bool(true)).field("0"), found),
            "propertyNames" => {
                walk(limit, &here, &Spot { of_names: true, ..spot.clone() }, found);
            }
            "additionalProperties" if limit.is_object() => {
                walk(limit, &here, &spot.field(OPEN_NAME), found);
            }
            name if ANNOTATIONS.contains(&name) => {}
            name => {
                let keyword = BOUNDS.into_iter().find(|bound| *bound == name);
                let keyword =
                    keyword.unwrap_or_else(|| panic!("untested keyword {name} in {source}"));
                found.push(Bound { source: here, keyword, limit, spot: spot.clone() });
            }
        }
    }
}

fn each(list: Schema, mut see: impl FnMut(usize, Schema)) {
    list.as_array()
        .expect("the value is a list")
        .iter()
        .enumerate()
        .for_each(|(at, it)| see(at, it));
}

/// Returns a schema for each case in which an `if` with lists of allowed values holds.
fn cases(condition: Schema) -> Vec<Schema> {
    let mut cases = vec![condition.clone()];
    for (name, part) in condition["properties"].as_object().into_iter().flatten() {
        let Some(allowed) = part["enum"].as_array() else { continue };
        let choose = |case: &Value, value: &Value| {
            let mut case = case.clone();
            case["properties"][name] = json!({ "const": value });
            case
        };
        let chosen = cases.iter().flat_map(|case| allowed.iter().map(|value| choose(case, value)));
        cases = chosen.collect();
    }
    cases.into_iter().map(|case| &*Box::leak(Box::new(case))).collect()
}

/// Returns the schemas with everything that `$ref` and `allOf` add.
pub(super) fn flat(all: &[Schema]) -> Vec<Schema> {
    let mut flat = Vec::new();
    for schema in all {
        flat.push(*schema);
        if schema["$ref"].is_string() {
            flat.extend(self::flat(&[resolve(schema)]));
        }
        let parts: Vec<Schema> = schema["allOf"].as_array().into_iter().flatten().collect();
        flat.extend(self::flat(&parts));
    }
    flat
}

/// Returns the schemas of a field.
pub(super) fn field_schemas(flat: &[Schema], name: &str) -> Vec<Schema> {
    let of = |schema: &Schema| match schema["properties"].get(name) {
        Some(part) => Some(part),
        None => schema.get("additionalProperties").filter(|part| part.is_object()),
    };
    flat.iter().filter_map(of).collect()
}

/// Returns the schemas of all items.
pub(super) fn item_schemas(flat: &[Schema]) -> Vec<Schema> {
    flat.iter().flat_map(|it| [it.get("items"), it.get("contains")]).flatten().collect()
}

/// `true` if a value is valid under all schemas, including formats.
pub(super) fn is_valid(all: &[Schema], value: &Value) -> bool {
    static VALIDATORS: LazyLock<Mutex<HashMap<usize, Arc<Validator>>>> =
        LazyLock::new(Mutex::default);
    let is_valid = |schema: &Schema| {
        let address = std::ptr::from_ref::<Value>(schema).addr();
        let mut validators = VALIDATORS.lock().expect("not poisoned");
        let cached = validators.entry(address).or_insert_with(|| Arc::new(validator(schema)));
        let validator = Arc::clone(cached);
        drop(validators);
        validator.is_valid(value)
    };
    all.iter().all(is_valid)
}

/// Returns the validator of a schema with `$ref`s to the description.
fn validator(schema: &Value) -> Validator {
    const DESCRIPTION: &str = "waymark:/openapi";
    static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
        let schemas = json!({ "components": { "schemas": OPENAPI["components"]["schemas"] } });
        let registry = Registry::new().draft(Draft::Draft202012).add(DESCRIPTION, schemas);
        registry.and_then(RegistryBuilder::prepare).expect("the schemas are valid")
    });
    let absolute =
        schema.to_string().replace("\"$ref\":\"#", &format!("\"$ref\":\"{DESCRIPTION}#"));
    let schema: Value = serde_json::from_str(&absolute).expect("the schema is still JSON");
    let trimmed = |text: &str| text.trim().chars().count();
    let options = jsonschema::options()
        .should_validate_formats(true)
        .with_draft(Draft::Draft202012)
        .with_registry(&REGISTRY)
        .with_keyword("x-maxBytes", |_, most, _| Ok(length(most, false, str::len)))
        .with_keyword("x-minLengthTrimmed", move |_, least, _| Ok(length(least, true, trimmed)))
        .with_keyword("x-maxLengthTrimmed", move |_, most, _| Ok(length(most, false, trimmed)));
    options.build(&schema).expect("the schema is valid")
}

/// Returns all schemas that apply to the value at a path in a value.
pub(super) fn schemas_at(schema: Schema, value: &Value, path: &[String]) -> Vec<Schema> {
    let mut all = vec![schema];
    let mut value = value;
    let mut left = path.iter();
    loop {
        let mut flat = flat(&all);
        let mut at = 0;
        while let Some(schema) = flat.get(at).copied() {
            let implied = schema.get("if").filter(|condition| is_valid(&[condition], value));
            let implied = implied.and_then(|_| schema.get("then"));
            let branches = schema["oneOf"].as_array().into_iter().flatten();
            let branch = branches.filter(|branch| is_valid(&[branch], value));
            flat.extend(branch.chain(implied).flat_map(|it| self::flat(&[it])));
            at += 1;
        }
        let Some(name) = left.next() else { return flat };
        let is_list = value.is_array();
        value = if is_list { &value[0] } else { &value[name] };
        all = if is_list { item_schemas(&flat) } else { field_schemas(&flat, name) };
    }
}

/// A bound of text without a keyword in JSON Schema.
struct Length {
    limit: u64,
    is_least: bool,
    measure: fn(&str) -> usize,
}

fn length(
    limit: &Value,
    is_least: bool,
    measure: fn(&str) -> usize,
) -> Box<dyn for<'i> Keyword<'i>> {
    Box::new(Length { limit: limit.as_u64().expect("the limit is a number"), is_least, measure })
}

impl<'i> Keyword<'i> for Length {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        let error = || ValidationError::custom("too short or too long");
        if self.is_valid(value) { Ok(()) } else { Err(error()) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let Some(text) = value.as_str() else { return true };
        let length = (self.measure)(text) as u64;
        if self.is_least { length >= self.limit } else { length <= self.limit }
    }
}

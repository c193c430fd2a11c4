//! `GrowthBook`'s cases.

use std::slice;

use serde_json::{Map, Value, json};

use flags::condition::Operator;
use flags::{FeatureFlag, FlagKey, Prerequisite, Serve};
use shared::timestamp::Timestamp;

use super::{
    Alternatives, Exclusion, Mapped, Tally, always, both, condition, escaped, evaluate, flag,
    items, rules, suite, text, variant_key,
};

const INTERNAL: [&str; 4] = ["$and", "$or", "$not", "$nor"];

/// Returns a value as the text of a condition. Only scalars are compared.
fn literal(value: &Value) -> Mapped<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(Exclusion::WholeValues),
    }
}

fn literals(values: &Value) -> Mapped<Vec<String>> {
    values.as_array().ok_or(Exclusion::UnknownOperator)?.iter().map(literal).collect()
}

fn one(attribute: &str, operator: Operator, values: &[String]) -> Alternatives {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    vec![vec![condition(attribute, operator, &values)]]
}

fn joined(all: Vec<Alternatives>) -> Alternatives {
    all.into_iter().flatten().collect()
}

fn crossed(all: &[Alternatives]) -> Alternatives {
    all.iter().fold(always(), |sum, next| both(&sum, next))
}

/// Returns case-insensitive patterns for the texts.
fn in_any_case(values: &[String]) -> Vec<String> {
    values.iter().map(|value| format!("(?i)^{}$", escaped(value))).collect()
}

/// The input of a condition: the attributes and the lists that it can name.
#[derive(Clone, Copy)]
pub(crate) struct RecordedRequest<'c> {
    pub(crate) attributes: &'c Value,
    pub(crate) groups: &'c Value,
}

impl<'c> RecordedRequest<'c> {
    fn attribute(self, path: &str) -> &'c Value {
        path.split('.').fold(self.attributes, |value, name| &value[name])
    }

    /// Returns the alternatives of a condition or of its negation.
    fn alternatives(self, condition: &Value, negated: bool) -> Mapped<Alternatives> {
        let members = condition.as_object().ok_or(Exclusion::WholeValues)?;
        let each: Vec<Alternatives> = members
            .iter()
            .map(|(name, value)| {
                if INTERNAL.contains(&name.as_str()) {
                    self.combined(name, value, negated)
                } else {
                    self.of_attribute(name, value, negated)
                }
            })
            .collect::<Mapped<_>>()?;
        Ok(if negated { joined(each) } else { crossed(&each) })
    }

    fn combined(self, operator: &str, value: &Value, negated: bool) -> Mapped<Alternatives> {
        if operator == "$not" {
            return self.alternatives(value, !negated);
        }
        let negated = negated != (operator == "$nor");
        let each: Vec<Alternatives> = items(value)
            .iter()
            .map(|condition| self.alternatives(condition, negated))
            .collect::<Mapped<_>>()?;
        let is_any = (operator != "$and") != negated;
        // An empty list of conditions holds there.
        if each.is_empty() {
            Ok(always())
        } else if is_any {
            Ok(joined(each))
        } else {
            Ok(crossed(&each))
        }
    }

    fn of_attribute(self, name: &str, value: &Value, negated: bool) -> Mapped<Alternatives> {
        let has_operators =
            |members: &Map<String, Value>| members.keys().any(|member| member.starts_with('$'));
        match value {
            Value::Object(operators) if has_operators(operators) => {
                let each: Vec<Alternatives> = operators
                    .iter()
                    .map(|(operator, value)| self.leaf(name, operator, value, negated))
                    .collect::<Mapped<_>>()?;
                Ok(if negated { joined(each) } else { crossed(&each) })
            }
            plain => self.leaf(name, "$eq", plain, negated),
        }
    }

    fn leaf(
        self,
        name: &str,
        operator: &str,
        value: &Value,
        negated: bool,
    ) -> Mapped<Alternatives> {
        use Operator as O;
        let pick = |positive, negative| {
            if !negated {
                return Ok(positive);
            }
            let missing = self.attribute(name).is_null();
            if missing { Err(Exclusion::MissingNegated) } else { Ok(negative) }
        };
        let opposite = |operator| self.leaf(name, operator, value, !negated);
        let number = |positive, negative| {
            let is_number = |value: &Value| value.is_number() || text(value).parse::<f64>().is_ok();
            if !is_number(value) {
                return Err(Exclusion::TextOrder);
            }
            Ok(one(name, pick(positive, negative)?, &[literal(value)?]))
        };
        let version = |positive, negative| {
            let sent = self.attribute(name);
            if !(is_version(text(value)) && is_version(text(sent))) {
                return Err(Exclusion::LenientVersion);
            }
            Ok(one(name, pick(positive, negative)?, &[literal(value)?]))
        };
        match operator {
            "$eq" if value.is_null() => {
                Ok(one(name, if negated { O::Exists } else { O::NotExists }, &[]))
            }
            "$eq" => Ok(one(name, pick(O::Equals, O::NotEquals)?, &[literal(value)?])),
            "$in" => Ok(one(name, pick(O::In, O::NotIn)?, &self.untyped(name, value)?)),
            "$inGroup" => {
                let none = json!([]);
                let group = self.groups.get(text(value)).unwrap_or(&none);
                Ok(one(name, pick(O::In, O::NotIn)?, &self.untyped(name, group)?))
            }
            "$ini" => {
                let patterns = in_any_case(&literals(value)?);
                Ok(one(name, pick(O::Matches, O::NotMatches)?, &patterns))
            }
            "$all" if !negated => {
                let values = literals(value)?;
                let each = values.iter().map(|value| one(name, O::Equals, slice::from_ref(value)));
                Ok(crossed(&each.collect::<Vec<_>>()))
            }
            "$alli" if !negated => {
                let patterns = in_any_case(&literals(value)?);
                let each =
                    patterns.iter().map(|value| one(name, O::Matches, slice::from_ref(value)));
                Ok(crossed(&each.collect::<Vec<_>>()))
            }
            "$ne" => opposite("$eq"),
            "$nin" => opposite("$in"),
            "$nini" => opposite("$ini"),
            "$notInGroup" => opposite("$inGroup"),
            "$not" => self.of_attribute(name, value, !negated),
            "$elemMatch" => self.element(name, value, negated),
            "$regex" => Ok(one(name, pick(O::Matches, O::NotMatches)?, &[literal(value)?])),
            "$regexi" => {
                let pattern = format!("(?i){}", literal(value)?);
                Ok(one(name, pick(O::Matches, O::NotMatches)?, &[pattern]))
            }
            "$exists" => {
                let exists = (*value == true) != negated;
                Ok(one(name, if exists { O::Exists } else { O::NotExists }, &[]))
            }
            "$gt" => number(O::GreaterThan, O::LessThanOrEqual),
            "$gte" => number(O::GreaterThanOrEqual, O::LessThan),
            "$lt" => number(O::LessThan, O::GreaterThanOrEqual),
            "$lte" => number(O::LessThanOrEqual, O::GreaterThan),
            "$vgt" => version(O::SemverGreaterThan, O::SemverLessThanOrEqual),
            "$vgte" => version(O::SemverGreaterThanOrEqual, O::SemverLessThan),
            "$vlt" => version(O::SemverLessThan, O::SemverGreaterThanOrEqual),
            "$vlte" => version(O::SemverLessThanOrEqual, O::SemverGreaterThan),
            "$veq" if !negated => version(O::SemverEquals, O::SemverEquals),
            "$vne" if !negated => Ok(joined(vec![
                version(O::SemverLessThan, O::SemverLessThan)?,
                version(O::SemverGreaterThan, O::SemverGreaterThan)?,
            ])),
            "$size" | "$type" => Err(Exclusion::ArrayShape),
            _ => Err(Exclusion::UnknownOperator),
        }
    }

    /// Maps a condition for the elements of an array to a condition for the array, as used here.
    fn element(self, name: &str, value: &Value, negated: bool) -> Mapped<Alternatives> {
        let is_array = self.attribute(name).is_array();
        match value.as_object().map(Map::len) {
            Some(1)
                if is_array && value.as_object().unwrap().keys().all(|k| k.starts_with('$')) =>
            {
                self.of_attribute(name, value, negated)
            }
            _ => Err(Exclusion::ArrayShape),
        }
    }

    /// Returns values as texts, unless a text must differ from an equal number.
    fn untyped(self, name: &str, values: &Value) -> Mapped<Vec<String>> {
        let sent = self.attribute(name);
        let same_text = |value: &&Value| literal(value).ok() == literal(sent).ok();
        let mut alike = values.as_array().into_iter().flatten().filter(same_text);
        match alike.next() {
            Some(value) if value != sent && !sent.is_array() => Err(Exclusion::Untyped),
            _ => literals(values),
        }
    }
}

/// `true` if a text is a version with exactly three numbers, perhaps with a suffix.
fn is_version(text: &str) -> bool {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    core.split('.').count() == 3 && core.split('.').all(is_number)
}

fn run_condition(case: &Value) -> Mapped<Result<(), String>> {
    let request = RecordedRequest { attributes: &case[2], groups: &case[4] };
    let alternatives = request.alternatives(&case[1], false)?;
    let mut flag = flag("f", &[("on", "on"), ("off", "off")], Some("off"))?;
    flag.rules = rules("r", alternatives, &Serve::Variant(variant_key("on")));
    let found = evaluate(vec![flag], "f", request.attributes, Timestamp::from_millis(0)).variant;
    let is_on = found.as_deref() == Some("on");
    Ok(if case[3] == is_on { Ok(()) } else { Err(format!("found {found:?}")) })
}

// ---------------------------------------------------------------------------- whole features

/// Returns the distinct values of a feature.
fn values(feature: &Value) -> Vec<&Value> {
    let forced = items(&feature["rules"]).iter().map(|rule| &rule["force"]);
    let mut values = Vec::new();
    for value in [&feature["defaultValue"]].into_iter().chain(forced) {
        if !value.is_null() && !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn variant_of(values: &[&Value], value: &Value) -> Option<String> {
    values.iter().position(|known| *known == value).map(|index| format!("v{index}"))
}

fn serve(values: &[&Value], value: &Value) -> Serve {
    variant_of(values, value).map_or(Serve::CodeDefault, |key| Serve::Variant(variant_key(&key)))
}

/// `true` if a rule chooses by a hash.
fn is_hashed(rule: &Value) -> bool {
    ["variations", "contextualVariations", "coverage", "range", "filters", "hashVersion"]
        .iter()
        .any(|member| !rule[*member].is_null())
}

fn feature_flag(key: &str, context: &Value) -> Mapped<FeatureFlag> {
    let feature = &context["features"][key];
    let values = values(feature);
    let texts: Vec<(String, String)> = values
        .iter()
        .enumerate()
        .map(|(index, value)| (format!("v{index}"), value.to_string()))
        .collect();
    let variants: Vec<(&str, &str)> =
        texts.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut flag = flag(key, &variants, None)?;
    flag.fallthrough = serve(&values, &feature["defaultValue"]);
    for (index, rule) in items(&feature["rules"]).iter().enumerate() {
        if is_hashed(rule) {
            return Err(Exclusion::Hash);
        }
        let parents = items(&rule["parentConditions"]);
        if rule["force"].is_null() {
            for parent in parents {
                flag.prerequisites.push(prerequisite(parent, context)?);
            }
            continue;
        }
        if !parents.is_empty() {
            return Err(Exclusion::RulePrerequisite);
        }
        let request =
            RecordedRequest { attributes: &context["attributes"], groups: &context["savedGroups"] };
        let none = json!({});
        let condition = if rule["condition"].is_null() { &none } else { &rule["condition"] };
        let alternatives = request.alternatives(condition, false)?;
        let id = rule["id"].as_str().map_or(format!("rule-{index}"), str::to_owned);
        flag.rules.extend(rules(&id, alternatives, &serve(&values, &rule["force"])));
    }
    Ok(flag)
}

/// Returns the variant of the parent that a gate accepts. There must be exactly one.
fn prerequisite(parent: &Value, context: &Value) -> Mapped<Prerequisite> {
    let key = text(&parent["id"]);
    let values = values(&context["features"][key]);
    let wanted = &parent["condition"]["value"];
    let passes = |value: &&&Value| match wanted {
        Value::Object(operators) => {
            operators.iter().all(|(operator, operand)| match operator.as_str() {
                "$gt" => value.as_f64() > operand.as_f64(),
                "$ne" => **value != operand,
                other => panic!("the operator {other} of a gate is not mapped"),
            })
        }
        plain => **value == plain,
    };
    let mut passing = values.iter().filter(passes);
    let variant = match (passing.next(), passing.next()) {
        (None, _) => "none".to_owned(),
        (Some(value), None) => variant_of(&values, value).unwrap(),
        (Some(_), Some(_)) => return Err(Exclusion::RulePrerequisite),
    };
    Ok(Prerequisite {
        flag_key: FlagKey::parse(key).map_err(|_| Exclusion::FlagKey)?,
        variant: variant_key(&variant),
    })
}

fn run_feature(case: &Value) -> Mapped<Result<(), String>> {
    let (context, request, expected) = (&case[1], text(&case[2]), &case[3]);
    let none = Map::new();
    let features = context["features"].as_object().unwrap_or(&none);
    let flags: Vec<FeatureFlag> =
        features.keys().map(|key| feature_flag(key, context)).collect::<Mapped<_>>()?;
    let attributes = context["attributes"].as_object().unwrap_or(&none).clone();
    let found = evaluate(flags, request, &attributes.into(), Timestamp::from_millis(0));
    let value = found.value.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
    let rule_id = found.rule_id.filter(|id| !id.starts_with("rule-")).unwrap_or_default();
    let is_expected = value == expected["value"] && rule_id == text(&expected["ruleId"]);
    Ok(if is_expected { Ok(()) } else { Err(format!("found {value} by {rule_id:?}")) })
}

#[test]
fn growthbook_cases_pass() {
    let suite = suite("growthbook/cases.json");
    let (mut ran, mut failures) = (0, Vec::new());
    for (section, run) in [
        ("evalCondition", run_condition as fn(&Value) -> Mapped<Result<(), String>>),
        ("feature", run_feature),
    ] {
        let mut tally = Tally::default();
        for case in items(&suite[section]) {
            tally.count(text(&case[0]), run(case));
        }
        tally.print(&format!("cases.json, {section}"));
        ran += tally.ran;
        failures.append(&mut tally.failures);
    }
    println!("GrowthBook: {} of {ran} cases passed", ran - failures.len());
    assert_eq!(failures, [""; 0]);
    // Fewer cases would mean that the mapping excludes too many.
    assert!(ran >= 200, "only {ran} cases ran");
}

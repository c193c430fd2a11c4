//! Other systems' conformance suites against the evaluation of flags: Unleash's client
//! specification (Apache-2.0) and `GrowthBook`'s cases (MIT).
//!
//! Their flags are mapped onto ours where the meaning is the same; a case whose meaning differs on
//! purpose is excluded, by name and with the reason. Writing is bypassed: some cases are about flags
//! that could not be stored. The suites lie beside the checkout, in `../shared/conformance`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use shared::flags::{Context, Flags, LoadedFlag};
use shared::json::{Json, MAX_BODY_DEPTH};
use shared::models::feature_flag::condition::{Condition, NOW, Operator};
use shared::models::feature_flag::draft::FlagDraft;
use shared::models::feature_flag::{
    FeatureFlag, FlagKey, Prerequisite, Rule, RuleId, Serve, Target, TargetKind, Variant,
    VariantKey,
};
use shared::models::project::ProjectId;
use shared::models::timestamp::Timestamp;

/// Why a case is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exclusion {
    Hash,
    MissingNegated,
    UnknownOperator,
    Untyped,
    FlagKey,
    OffPrerequisite,
    TransitivePrerequisite,
    RulePrerequisite,
    InvalidAmongValid,
    WholeValues,
    TextOrder,
    ArrayShape,
    LenientVersion,
    DeltaProtocol,
}

impl Exclusion {
    fn reason(self) -> &'static str {
        match self {
            Self::Hash => "individuals are bucketed by another hash, in other units",
            Self::MissingNegated => {
                "a negated condition on a missing attribute holds there; here it fails closed"
            }
            Self::UnknownOperator => {
                "an operator unknown to us, or with values of no use to it, is refused on writing"
            }
            Self::Untyped => "our values are texts, equal to a text and to a number alike",
            Self::FlagKey => "our flag keys are ASCII, so that no client has to encode them",
            Self::OffPrerequisite => {
                "a disabled prerequisite is never met here, whichever variant is wanted"
            }
            Self::TransitivePrerequisite => {
                "prerequisites of prerequisites are forbidden there, and allowed here"
            }
            Self::RulePrerequisite => "prerequisites belong to a flag here, not to a rule",
            Self::InvalidAmongValid => {
                "an invalid value among valid ones is ignored there, and refused on writing here"
            }
            Self::WholeValues => "whole arrays and objects are not compared here",
            Self::TextOrder => "texts that are no numbers have no order here",
            Self::ArrayShape => "size, type and inner members of an array cannot be asked for here",
            Self::LenientVersion => {
                "a version with a leading v, or of another form than semver's, is none here"
            }
            Self::DeltaProtocol => "the case is about the SDKs' own protocol, not about evaluation",
        }
    }
}

type Mapped<T> = Result<T, Exclusion>;

/// What became of the cases of one file.
#[derive(Default)]
struct Tally {
    ran: usize,
    excluded: BTreeMap<Exclusion, usize>,
    failures: Vec<String>,
}

impl Tally {
    /// Counts a case: whether it came out as expected, what is expected and what was found.
    fn note(&mut self, name: &str, outcome: Mapped<Result<(), String>>) {
        match outcome {
            Err(exclusion) => *self.excluded.entry(exclusion).or_default() += 1,
            Ok(result) => {
                self.ran += 1;
                self.failures.extend(result.err().map(|found| format!("{name}: {found}")));
            }
        }
    }

    fn print(&self, file: &str) {
        let excluded: usize = self.excluded.values().sum();
        let passed = self.ran - self.failures.len();
        println!("{file}: {passed} of {} cases passed, {excluded} excluded", self.ran);
        for (exclusion, count) in &self.excluded {
            println!("    {count:3} {exclusion:?}: {}", exclusion.reason());
        }
    }
}

/// The text of a suite's file; nothing where the suites are not beside the checkout.
fn suite(path: &str) -> Option<Value> {
    let suites = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    if !suites.is_dir() {
        println!("NOT RUN: there is no folder {}", suites.display());
        return None;
    }
    let text = fs::read_to_string(suites.join(path)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

// ------------------------------------------------------------------------------------- our side

/// An alternative of conditions that must all hold.
type Alternatives = Vec<Vec<Condition>>;

fn condition(attribute: &str, operator: Operator, values: &[&str]) -> Condition {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Condition { attribute: attribute.to_owned(), operator, values }
}

/// One of these together with one of the others.
fn both(these: &Alternatives, others: &Alternatives) -> Alternatives {
    let with = |one: &Vec<Condition>| {
        let one = one.clone();
        others.iter().map(move |other| [one.as_slice(), other].concat())
    };
    these.iter().flat_map(with).collect()
}

fn always() -> Alternatives {
    vec![Vec::new()]
}

fn never() -> Alternatives {
    Vec::new()
}

fn project() -> ProjectId {
    ProjectId::parse("00000000-0000-0000-0000-00000000000a").unwrap()
}

fn variant_key(text: &str) -> VariantKey {
    VariantKey::parse(text).unwrap()
}

/// An enabled flag of texts that serves `fallthrough`, with a variant for each key and value.
fn flag(key: &str, variants: &[(&str, &str)], fallthrough: Option<&str>) -> Mapped<FeatureFlag> {
    let body = json!({"key": "f", "name": "F", "type": "string", "enabled": true}).to_string();
    let draft = FlagDraft::read(&Json::parse(&body, MAX_BODY_DEPTH).unwrap()).unwrap();
    let flag = draft.into_flag(project(), Timestamp::from_millis(0), Default::default).unwrap();
    let variant = |(key, value): &(&str, &str)| Variant {
        key: variant_key(key),
        name: String::new(),
        value: (*value).to_owned(),
    };
    Ok(FeatureFlag {
        key: FlagKey::parse(key).map_err(|_| Exclusion::FlagKey)?,
        variants: variants.iter().map(variant).collect(),
        fallthrough: fallthrough.map_or(Serve::CodeDefault, |key| Serve::Variant(variant_key(key))),
        ..flag
    })
}

/// A rule for each alternative.
fn rules(id: &str, alternatives: Alternatives, serve: &Serve) -> Vec<Rule> {
    let rule = |(index, conditions)| {
        let id = if index == 0 { id.to_owned() } else { format!("{id}.{index}") };
        Rule {
            id: RuleId::parse(&id).unwrap(),
            name: String::new(),
            conditions,
            serve: serve.clone(),
        }
    };
    alternatives.into_iter().enumerate().map(rule).collect()
}

/// What a flag gives.
struct Found {
    variant: Option<String>,
    value: Option<String>,
    rule_id: Option<String>,
}

/// Evaluates a flag as a client would use it: an error is the caller's own default.
fn evaluate(flags: Vec<FeatureFlag>, key: &str, context: &Value, now: Timestamp) -> Found {
    let flags = Flags::new(project(), flags.into_iter().map(LoadedFlag::new).map(Arc::new));
    let text = context.to_string();
    let context = Context::read(Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    let evaluation = flags.evaluate(key, &context, now).ok();
    Found {
        variant: evaluation.and_then(|it| it.variant()).map(ToString::to_string),
        value: evaluation
            .and_then(|it| it.value())
            .map(|value| serde_json::from_str(value.get()).unwrap()),
        rule_id: evaluation.and_then(|it| it.metadata().rule_id).map(ToString::to_string),
    }
}

fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => vec![character],
        other => vec!['\\', other],
    };
    text.chars().flat_map(escape).collect()
}

// -------------------------------------------------------------------------------------- Unleash

const ON: &str = "on";
const OFF: &str = "off";

mod unleash {
    use super::*;

    /// The context as attributes, and the time that it tells.
    pub(crate) fn context(sent: &Value) -> (Value, Timestamp) {
        let mut attributes = Map::new();
        for (name, value) in sent.as_object().unwrap() {
            match (name.as_str(), value) {
                ("properties", Value::Object(properties)) => attributes.extend(properties.clone()),
                ("currentTime", _) => {}
                ("userId", _) => {
                    attributes.insert("targetingKey".to_owned(), value.clone());
                    attributes.insert(name.clone(), value.clone());
                }
                _ => {
                    attributes.insert(name.clone(), value.clone());
                }
            }
        }
        let now = Timestamp::parse_rfc3339(text(&sent["currentTime"]));
        (attributes.into(), now.unwrap_or(Timestamp::from_millis(0)))
    }

    /// The constraints of a strategy and of its segments; none if a segment does not exist.
    pub(crate) fn constraints<'s>(strategy: &'s Value, state: &'s Value) -> Option<Vec<&'s Value>> {
        let mut constraints: Vec<&Value> = items(&strategy["constraints"]).iter().collect();
        for id in items(&strategy["segments"]) {
            let segment = items(&state["segments"]).iter().find(|segment| segment["id"] == *id)?;
            constraints.extend(items(&segment["constraints"]));
        }
        Some(constraints)
    }

    pub(crate) fn is_negated(constraint: &Value) -> bool {
        (constraint["operator"] == "NOT_IN") != (constraint["inverted"] == true)
    }

    fn alternatives(constraint: &Value) -> Mapped<Alternatives> {
        use Operator as O;
        let attribute = match text(&constraint["contextName"]) {
            "currentTime" => NOW,
            name => name,
        };
        let mut values: Vec<&str> = items(&constraint["values"]).iter().map(text).collect();
        if values.is_empty() {
            values.extend(constraint["value"].as_str());
        }
        let negated = is_negated(constraint);
        let pick = |positive, negative| if negated { negative } else { positive };
        let single = |operator| Ok(vec![vec![condition(attribute, operator, &values)]]);
        let pattern = |before: &str, after: &str| {
            let pattern = |value: &&str| format!("(?i){before}{}{after}", escaped(value));
            let patterns: Vec<String> = values.iter().map(pattern).collect();
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            Ok(vec![vec![condition(attribute, pick(O::Matches, O::NotMatches), &patterns)]])
        };
        let ignores_case = constraint["caseInsensitive"] == true;
        match text(&constraint["operator"]) {
            "IN" | "NOT_IN" => single(pick(O::In, O::NotIn)),
            "STR_STARTS_WITH" if ignores_case => pattern("^", ""),
            "STR_ENDS_WITH" if ignores_case => pattern("", "$"),
            "STR_CONTAINS" if ignores_case => pattern("", ""),
            "STR_STARTS_WITH" => single(pick(O::StartsWith, O::NotStartsWith)),
            "STR_ENDS_WITH" => single(pick(O::EndsWith, O::NotEndsWith)),
            "STR_CONTAINS" => single(pick(O::Contains, O::NotContains)),
            "REGEX" if ignores_case => {
                let pattern = format!("(?i){}", values.concat());
                let operator = pick(O::Matches, O::NotMatches);
                Ok(vec![vec![condition(attribute, operator, &[&pattern])]])
            }
            "REGEX" => single(pick(O::Matches, O::NotMatches)),
            // The contexts' numbers are texts, which are equal as texts only.
            "NUM_EQ" if negated => Ok(vec![
                vec![condition(attribute, O::LessThan, &values)],
                vec![condition(attribute, O::GreaterThan, &values)],
            ]),
            "NUM_EQ" => Ok(vec![vec![
                condition(attribute, O::GreaterThanOrEqual, &values),
                condition(attribute, O::LessThanOrEqual, &values),
            ]]),
            _ if negated => Err(Exclusion::UnknownOperator),
            "NUM_GT" => single(O::GreaterThan),
            "NUM_GTE" => single(O::GreaterThanOrEqual),
            "NUM_LT" => single(O::LessThan),
            "NUM_LTE" => single(O::LessThanOrEqual),
            "DATE_AFTER" => single(O::After),
            "DATE_BEFORE" => single(O::Before),
            "SEMVER_EQ" => single(O::SemverEquals),
            "SEMVER_GT" => single(O::SemverGreaterThan),
            "SEMVER_GTE" => single(O::SemverGreaterThanOrEqual),
            "SEMVER_LT" => single(O::SemverLessThan),
            "SEMVER_LTE" => single(O::SemverLessThanOrEqual),
            "IN_CIDR" => {
                let valid = |value: &&str| {
                    let address = value.split_once('/').map_or(*value, |(address, _)| address);
                    address.parse::<IpAddr>().is_ok()
                };
                let count = values.iter().filter(|value| valid(value)).count();
                let mixed = 0 < count && count < values.len();
                if mixed { Err(Exclusion::InvalidAmongValid) } else { single(O::InCidr) }
            }
            _ => Err(Exclusion::UnknownOperator),
        }
    }

    /// Whom a strategy is for, its constraints aside.
    fn audience(strategy: &Value) -> Mapped<Alternatives> {
        use Operator as O;
        let parameters = &strategy["parameters"];
        let list =
            |name: &str| text(&parameters[name]).split(',').map(str::trim).collect::<Vec<_>>();
        let present = |attribute: &str| vec![vec![condition(attribute, O::Exists, &[])]];
        let share = parameters["percentage"].as_str().or(parameters["rollout"].as_str());
        let everyone = match text(&strategy["name"]) {
            "default" => return Ok(always()),
            "userWithId" => {
                return Ok(vec![vec![condition("userId", O::In, &list("userIds"))]]);
            }
            "remoteAddress" => {
                return Ok(vec![vec![condition("remoteAddress", O::In, &list("IPs"))]]);
            }
            "gradualRolloutUserId" => present("userId"),
            "gradualRolloutSessionId" => present("sessionId"),
            "gradualRolloutRandom" => always(),
            "flexibleRollout" => match text(&parameters["stickiness"]) {
                "" | "default" | "random" => always(),
                attribute => present(attribute),
            },
            _ => return Err(Exclusion::UnknownOperator),
        };
        match share {
            Some("0") => Ok(never()),
            Some("100") => Ok(everyone),
            _ => Err(Exclusion::Hash),
        }
    }

    /// The variants with a share: of the strategy, else of the feature.
    fn variants<'s>(feature: &'s Value, strategy: &'s Value) -> &'s [Value] {
        let own = items(&strategy["variants"]);
        if own.is_empty() { items(&feature["variants"]) } else { own }
    }

    /// The variant that is served to whoever is meant; `on` where there are none.
    fn served(variants: &[Value]) -> Mapped<&str> {
        match variants {
            [] => Ok(ON),
            [only] => Ok(text(&only["name"])),
            _ => Err(Exclusion::Hash),
        }
    }

    fn feature_flag(feature: &Value, state: &Value, variants_matter: bool) -> Mapped<FeatureFlag> {
        let none = [json!({})];
        let strategies = match items(&feature["strategies"]) {
            [] => &none,
            strategies => strategies,
        };
        let mut keys = BTreeMap::from([(ON, "on"), (OFF, "off")]);
        for strategy in strategies {
            let named = variants(feature, strategy).iter();
            keys.extend(named.map(|v| (text(&v["name"]), text(&v["payload"]["value"]))));
        }
        let variants_of: Vec<(&str, &str)> = keys.into_iter().collect();
        let mut flag = flag(text(&feature["name"]), &variants_of, Some(OFF))?;
        flag.enabled = feature["enabled"] == true;
        flag.off_variant = Some(variant_key(OFF));
        for (index, strategy) in strategies.iter().enumerate() {
            let served = match served(variants(feature, strategy)) {
                // Whether a feature is enabled does not depend on which of its variants it is.
                Err(_) if !variants_matter => ON,
                served => served?,
            };
            let serve = Serve::Variant(variant_key(served));
            if strategy["name"] == "userWithId" && items(&strategy["constraints"]).is_empty() {
                let users = text(&strategy["parameters"]["userIds"]).split(',');
                flag.targets.extend(users.map(|user| Target {
                    kind: TargetKind::Identifier,
                    value: user.trim().to_owned(),
                    variant: variant_key(served),
                }));
                continue;
            }
            let Some(constraints) = constraints(strategy, state) else { continue };
            let mut whole = if strategy["name"].is_null() { always() } else { audience(strategy)? };
            for constraint in constraints {
                whole = both(&whole, &alternatives(constraint)?);
            }
            flag.rules.extend(rules(&format!("strategy-{index}"), whole, &serve));
        }
        for dependency in items(&feature["dependencies"]) {
            flag.prerequisites.push(prerequisite(dependency, state)?);
        }
        Ok(flag)
    }

    fn prerequisite(dependency: &Value, state: &Value) -> Mapped<Prerequisite> {
        let parent = text(&dependency["feature"]);
        let found = items(&state["features"]).iter().find(|feature| feature["name"] == parent);
        let strategy = found.map_or(&Value::Null, |feature| &feature["strategies"][0]);
        let wanted: Vec<&str> = items(&dependency["variants"]).iter().map(text).collect();
        let own = found.map_or(Ok(ON), |feature| served(variants(feature, strategy)))?;
        let variant = if dependency["enabled"] == false {
            OFF
        } else if wanted.is_empty()
            || wanted.contains(&own)
            || (own == ON && wanted == ["disabled"])
        {
            own
        } else {
            wanted[0]
        };
        Ok(Prerequisite {
            flag_key: FlagKey::parse(parent).map_err(|_| Exclusion::FlagKey)?,
            variant: variant_key(variant),
        })
    }

    /// The exclusion that a case falls under, if any, by what it expects.
    fn excluded(feature: &Value, case: &Value, state: &Value, expects_on: bool) -> Mapped<()> {
        let (context, _) = context(&case["context"]);
        let is_missing = |constraint: &Value| {
            context.get(text(&constraint["contextName"])).is_none_or(Value::is_null)
        };
        let constraints = items(&feature["strategies"])
            .iter()
            .flat_map(|strategy| constraints(strategy, state).unwrap_or_default());
        let mut negated = constraints.filter(|constraint| is_negated(constraint));
        if expects_on && negated.any(is_missing) {
            return Err(Exclusion::MissingNegated);
        }
        let dependencies = items(&feature["dependencies"]);
        if expects_on && dependencies.iter().any(|dependency| dependency["enabled"] == false) {
            return Err(Exclusion::OffPrerequisite);
        }
        let depends = |name: &Value| {
            let found = items(&state["features"]).iter().find(|feature| feature["name"] == *name);
            found.is_some_and(|feature| !items(&feature["dependencies"]).is_empty())
        };
        let is_cycle = text(&feature["name"]).contains("cycle");
        if dependencies.iter().any(|dependency| depends(&dependency["feature"])) && !is_cycle {
            return Err(Exclusion::TransitivePrerequisite);
        }
        Ok(())
    }

    /// What the case gives.
    fn run(suite: &Value, case: &Value, expects_on: bool, variants_matter: bool) -> Mapped<Found> {
        let state = &suite["state"];
        let Some(features) = state["features"].as_array() else {
            return Err(Exclusion::DeltaProtocol);
        };
        let asked = &case["toggleName"];
        let (context, now) = context(&case["context"]);
        let mut flags = Vec::new();
        for feature in features {
            let is_asked = feature["name"] == *asked;
            if is_asked {
                excluded(feature, case, state, expects_on)?;
            }
            match feature_flag(feature, state, variants_matter && is_asked) {
                Ok(flag) => flags.push(flag),
                Err(exclusion) if is_asked => return Err(exclusion),
                // Other flags of the file do not matter, unless they are prerequisites.
                Err(_) => {}
            }
        }
        Ok(evaluate(flags, text(asked), &context, now))
    }

    pub(crate) fn run_test(suite: &Value, case: &Value) -> Mapped<Result<(), String>> {
        let expected = case["expectedResult"] == true;
        let found = run(suite, case, expected, false)?.variant;
        let is_on = found.as_deref().is_some_and(|variant| variant != OFF);
        Ok(if is_on == expected { Ok(()) } else { Err(format!("found {found:?}")) })
    }

    pub(crate) fn run_variant_test(suite: &Value, case: &Value) -> Mapped<Result<(), String>> {
        let expected = &case["expectedResult"];
        let is_on = expected["feature_enabled"] == true;
        let found = run(suite, case, is_on, true)?;
        let (variant, value) = match (is_on, expected["enabled"] == true) {
            (true, true) => (text(&expected["name"]), text(&expected["payload"]["value"])),
            (true, false) => (ON, "on"),
            (false, _) => (OFF, "off"),
        };
        // A feature that is not there is the caller's default.
        let is_expected = found.variant.as_deref().unwrap_or(OFF) == variant
            && found.value.as_deref().unwrap_or("off") == value;
        Ok(if is_expected { Ok(()) } else { Err(format!("found {:?}", found.variant)) })
    }
}

#[test]
fn flags_are_evaluated_as_unleash_specifies() {
    let Some(index) = suite("unleash/index.json") else { return };
    let (mut ran, mut failures) = (0, Vec::new());
    for file in items(&index) {
        let Some(suite) = suite(&format!("unleash/{}", text(file))) else { return };
        let mut tally = Tally::default();
        for case in items(&suite["tests"]) {
            tally.note(text(&case["description"]), unleash::run_test(&suite, case));
        }
        for case in items(&suite["variantTests"]) {
            tally.note(text(&case["description"]), unleash::run_variant_test(&suite, case));
        }
        tally.print(text(file));
        ran += tally.ran;
        failures.append(&mut tally.failures);
    }
    println!("Unleash: {} of {ran} cases passed", ran - failures.len());
    assert_eq!(failures, [""; 0]);
    // Otherwise the mapping has lost cases.
    assert!(ran >= 200, "only {ran} cases ran");
}

// ------------------------------------------------------------------------------------ GrowthBook

mod growthbook {
    use super::*;

    const INTERNAL: [&str; 4] = ["$and", "$or", "$not", "$nor"];

    /// A value as the text of a condition; only scalars are compared.
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

    /// The texts in any case, as patterns.
    fn in_any_case(values: &[String]) -> Vec<String> {
        values.iter().map(|value| format!("(?i)^{}$", escaped(value))).collect()
    }

    /// What a condition is asked about: the attributes, and the lists that it may name.
    #[derive(Clone, Copy)]
    pub(crate) struct Asked<'c> {
        pub(crate) attributes: &'c Value,
        pub(crate) groups: &'c Value,
    }

    impl<'c> Asked<'c> {
        fn attribute(self, path: &str) -> &'c Value {
            path.split('.').fold(self.attributes, |value, name| &value[name])
        }

        /// The alternatives of a condition, or of its opposite.
        pub(crate) fn alternatives(self, condition: &Value, negated: bool) -> Mapped<Alternatives> {
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
            // There, no condition to choose from is none at all.
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
                let is_number =
                    |value: &Value| value.is_number() || text(value).parse::<f64>().is_ok();
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
                    let each =
                        values.iter().map(|value| one(name, O::Equals, slice::from_ref(value)));
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

        /// A condition that an element of an array must meet; here, a condition on an array is.
        fn element(self, name: &str, value: &Value, negated: bool) -> Mapped<Alternatives> {
            let is_array = self.attribute(name).is_array();
            match value.as_object().map(Map::len) {
                Some(1)
                    if is_array
                        && value.as_object().unwrap().keys().all(|k| k.starts_with('$')) =>
                {
                    self.of_attribute(name, value, negated)
                }
                _ => Err(Exclusion::ArrayShape),
            }
        }

        /// Values as texts, unless a text stands for a number or the other way round.
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

    /// Whether a text is a version of exactly three numbers, perhaps with a suffix.
    fn is_version(text: &str) -> bool {
        let core = text.split(['-', '+']).next().unwrap_or_default();
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        core.split('.').count() == 3 && core.split('.').all(is_number)
    }

    pub(crate) fn run_condition(case: &Value) -> Mapped<Result<(), String>> {
        let asked = Asked { attributes: &case[2], groups: &case[4] };
        let alternatives = asked.alternatives(&case[1], false)?;
        let mut flag = flag("f", &[("on", "on"), ("off", "off")], Some("off"))?;
        flag.rules = rules("r", alternatives, &Serve::Variant(variant_key("on")));
        let found = evaluate(vec![flag], "f", asked.attributes, Timestamp::from_millis(0)).variant;
        let is_on = found.as_deref() == Some("on");
        Ok(if case[3] == is_on { Ok(()) } else { Err(format!("found {found:?}")) })
    }

    // ---------------------------------------------------------------------------- whole features

    /// The values that a feature can have, each once.
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
        variant_of(values, value)
            .map_or(Serve::CodeDefault, |key| Serve::Variant(variant_key(&key)))
    }

    /// The member of a rule that chooses by a hash, if there is one.
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
            let asked =
                Asked { attributes: &context["attributes"], groups: &context["savedGroups"] };
            let none = json!({});
            let condition = if rule["condition"].is_null() { &none } else { &rule["condition"] };
            let alternatives = asked.alternatives(condition, false)?;
            let id = rule["id"].as_str().map_or(format!("rule-{index}"), str::to_owned);
            flag.rules.extend(rules(&id, alternatives, &serve(&values, &rule["force"])));
        }
        Ok(flag)
    }

    /// The variant of the parent that a gate lets through, which must be one.
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

    pub(crate) fn run_feature(case: &Value) -> Mapped<Result<(), String>> {
        let (context, asked, expected) = (&case[1], text(&case[2]), &case[3]);
        let none = Map::new();
        let features = context["features"].as_object().unwrap_or(&none);
        let flags: Vec<FeatureFlag> =
            features.keys().map(|key| feature_flag(key, context)).collect::<Mapped<_>>()?;
        let attributes = context["attributes"].as_object().unwrap_or(&none).clone();
        let found = evaluate(flags, asked, &attributes.into(), Timestamp::from_millis(0));
        let value = found.value.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
        let rule_id = found.rule_id.filter(|id| !id.starts_with("rule-")).unwrap_or_default();
        let is_expected = value == expected["value"] && rule_id == text(&expected["ruleId"]);
        Ok(if is_expected { Ok(()) } else { Err(format!("found {value} by {rule_id:?}")) })
    }
}

#[test]
fn flags_are_evaluated_as_growthbook_does() {
    let Some(suite) = suite("growthbook/cases.json") else { return };
    let (mut ran, mut failures) = (0, Vec::new());
    for (section, run) in [
        ("evalCondition", growthbook::run_condition as fn(&Value) -> Mapped<Result<(), String>>),
        ("feature", growthbook::run_feature),
    ] {
        let mut tally = Tally::default();
        for case in items(&suite[section]) {
            tally.note(text(&case[0]), run(case));
        }
        tally.print(&format!("cases.json, {section}"));
        ran += tally.ran;
        failures.append(&mut tally.failures);
    }
    println!("GrowthBook: {} of {ran} cases passed", ran - failures.len());
    assert_eq!(failures, [""; 0]);
    // Otherwise the mapping has lost cases.
    assert!(ran >= 200, "only {ran} cases ran");
}

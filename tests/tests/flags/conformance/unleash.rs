//! Unleash's client specification.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use flags::condition::{NOW, Operator};
use flags::{FeatureFlag, FlagKey, Prerequisite, Serve, Target, TargetKind};
use shared::timestamp::Timestamp;

use super::{
    Alternatives, Exclusion, Found, Mapped, Tally, always, both, condition, escaped, evaluate,
    flag, items, never, rules, suite, text, variant_key,
};

const ON: &str = "on";
const OFF: &str = "off";

/// Returns the context as attributes, and its time.
fn context(sent: &Value) -> (Value, Timestamp) {
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

/// Returns the constraints of a strategy and of its segments; `None` if a segment does not exist.
fn constraints<'s>(strategy: &'s Value, state: &'s Value) -> Option<Vec<&'s Value>> {
    let mut constraints: Vec<&Value> = items(&strategy["constraints"]).iter().collect();
    for id in items(&strategy["segments"]) {
        let segment = items(&state["segments"]).iter().find(|segment| segment["id"] == *id)?;
        constraints.extend(items(&segment["constraints"]));
    }
    Some(constraints)
}

fn is_negated(constraint: &Value) -> bool {
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
        // Numbers in the contexts are texts, so equality compares texts.
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

/// Returns the audience of a strategy without its constraints.
fn audience(strategy: &Value) -> Mapped<Alternatives> {
    use Operator as O;
    let parameters = &strategy["parameters"];
    let list = |name: &str| text(&parameters[name]).split(',').map(str::trim).collect::<Vec<_>>();
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

/// Returns the variants with a share: those of the strategy, else of the feature.
fn variants<'s>(feature: &'s Value, strategy: &'s Value) -> &'s [Value] {
    let own = items(&strategy["variants"]);
    if own.is_empty() { items(&feature["variants"]) } else { own }
}

/// Returns the variant that the audience is served; `on` if there are none.
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
            // Whether a feature is enabled does not depend on its variants.
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
    } else if wanted.is_empty() || wanted.contains(&own) || (own == ON && wanted == ["disabled"]) {
        own
    } else {
        wanted[0]
    };
    Ok(Prerequisite {
        flag_key: FlagKey::parse(parent).map_err(|_| Exclusion::FlagKey)?,
        variant: variant_key(variant),
    })
}

/// Returns the exclusion of a case, if any, given its expected result.
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

/// Evaluates the case.
fn run(suite: &Value, case: &Value, expects_on: bool, variants_matter: bool) -> Mapped<Found> {
    let state = &suite["state"];
    let Some(features) = state["features"].as_array() else {
        return Err(Exclusion::DeltaProtocol);
    };
    let requested = &case["toggleName"];
    let (context, now) = context(&case["context"]);
    let mut flags = Vec::new();
    for feature in features {
        let is_requested = feature["name"] == *requested;
        if is_requested {
            excluded(feature, case, state, expects_on)?;
        }
        match feature_flag(feature, state, variants_matter && is_requested) {
            Ok(flag) => flags.push(flag),
            Err(exclusion) if is_requested => return Err(exclusion),
            // Other flags in the file matter only as prerequisites.
            Err(_) => {}
        }
    }
    Ok(evaluate(flags, text(requested), &context, now))
}

fn run_test(suite: &Value, case: &Value) -> Mapped<Result<(), String>> {
    let expected = case["expectedResult"] == true;
    let found = run(suite, case, expected, false)?.variant;
    let is_on = found.as_deref().is_some_and(|variant| variant != OFF);
    Ok(if is_on == expected { Ok(()) } else { Err(format!("found {found:?}")) })
}

fn run_variant_test(suite: &Value, case: &Value) -> Mapped<Result<(), String>> {
    let expected = &case["expectedResult"];
    let is_on = expected["feature_enabled"] == true;
    let found = run(suite, case, is_on, true)?;
    let (variant, value) = match (is_on, expected["enabled"] == true) {
        (true, true) => (text(&expected["name"]), text(&expected["payload"]["value"])),
        (true, false) => (ON, "on"),
        (false, _) => (OFF, "off"),
    };
    // A missing feature serves the caller's default.
    let is_expected = found.variant.as_deref().unwrap_or(OFF) == variant
        && found.value.as_deref().unwrap_or("off") == value;
    Ok(if is_expected { Ok(()) } else { Err(format!("found {:?}", found.variant)) })
}

#[test]
fn unleash_cases_pass() {
    let index = suite("unleash/index.json");
    let (mut ran, mut failures) = (0, Vec::new());
    for file in items(&index) {
        let suite = suite(&format!("unleash/{}", text(file)));
        let mut tally = Tally::default();
        for case in items(&suite["tests"]) {
            tally.count(text(&case["description"]), run_test(&suite, case));
        }
        for case in items(&suite["variantTests"]) {
            tally.count(text(&case["description"]), run_variant_test(&suite, case));
        }
        tally.print(text(file));
        ran += tally.ran;
        failures.append(&mut tally.failures);
    }
    println!("Unleash: {} of {ran} cases passed", ran - failures.len());
    assert_eq!(failures, [""; 0]);
    // Fewer cases would mean that the mapping excludes too many.
    assert!(ran >= 200, "only {ran} cases ran");
}

//! Conformance suites of other systems, applied to flag evaluation: Unleash's client specification
//! (Apache-2.0) and `GrowthBook`'s cases (MIT).
//!
//! The suites' flags are mapped to ours if the meaning is equal. A case with an intentionally
//! different meaning is excluded, by name and with the reason. The tests bypass writes, since some
//! cases use flags that could not be stored. `tests/conformance/README.md` names the sources of the
//! suites.

#![allow(clippy::print_stdout)]

mod growthbook;
mod ofrep;
mod unleash;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use flags::condition::{Condition, Operator};
use flags::draft::FlagDraft;
use flags::evaluation::{Compiler, Context, Flags, LoadedFlag};
use flags::{FeatureFlag, FlagKey, Rule, RuleId, Serve, Variant, VariantKey};
use shared::json::{Json, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use tests::workspace;

/// The reason for excluding a case.
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
            Self::Hash => "another hash and other units determine the buckets",
            Self::MissingNegated => {
                "a negated condition on a missing attribute holds there; here it fails closed"
            }
            Self::UnknownOperator => "writes reject unknown operators and unusable values",
            Self::Untyped => "our values are texts, which equal both texts and numbers",
            Self::FlagKey => "our flag keys are ASCII, so that clients need not encode them",
            Self::OffPrerequisite => "a disabled prerequisite is never met here",
            Self::TransitivePrerequisite => {
                "prerequisites of prerequisites are forbidden there, but allowed here"
            }
            Self::RulePrerequisite => "prerequisites belong to a flag here, not to a rule",
            Self::InvalidAmongValid => {
                "an invalid value among valid ones is ignored there, but rejected by writes here"
            }
            Self::WholeValues => "whole arrays and objects are not compared here",
            Self::TextOrder => "non-numeric texts have no order here",
            Self::ArrayShape => "conditions cannot use an array's size, type or inner fields here",
            Self::LenientVersion => {
                "versions with a leading v or not in semver format are invalid here"
            }
            Self::DeltaProtocol => "the case is about the SDKs' own protocol, not about evaluation",
        }
    }
}

type Mapped<T> = Result<T, Exclusion>;

/// Results of the cases of one file.
#[derive(Default)]
struct Tally {
    ran: usize,
    excluded: BTreeMap<Exclusion, usize>,
    failures: Vec<String>,
}

impl Tally {
    /// Counts a case. `outcome` is the difference from the expected result, if any.
    fn count(&mut self, name: &str, outcome: Mapped<Result<(), String>>) {
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

/// Reads a file of a suite.
fn suite(path: &str) -> Value {
    let path = workspace().join("tests/conformance").join(path);
    let text = fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Alternatives, each a list of conditions that must all hold.
type Alternatives = Vec<Vec<Condition>>;

fn condition(attribute: &str, operator: Operator, values: &[&str]) -> Condition {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Condition { attribute: Some(attribute.to_owned()), operator, values }
}

/// Combines each alternative with each of the others.
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

/// Returns an enabled flag of texts that serves `fallthrough`, with a variant for each key and
/// value.
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

/// Returns a rule for each alternative.
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

/// The result of an evaluation.
struct Found {
    variant: Option<String>,
    value: Option<String>,
    rule_id: Option<String>,
}

/// Evaluates a flag as a client does: an error means the caller's default.
fn evaluate(flags: Vec<FeatureFlag>, key: &str, context: &Value, now: Timestamp) -> Found {
    let flags = Flags::new(
        project(),
        flags.into_iter().map(|it| Arc::new(LoadedFlag::new(&it, &mut Compiler::default()))),
    );
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

//! The cases of the suites, run by flagd's own evaluators. Its unmodified cores for JavaScript and
//! Python must serve an export as it is served here.
//!
//! Cases that flagd cannot express or interprets differently on purpose are omitted, with the
//! reason.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use flags::condition::{Condition, NOW, Operator};
use flags::flagd::{FlagdExport, GENERAL_DIFFERENCES, Layout, export};
use flags::{FeatureFlag, RolloutEntry, Serve, Weight};
use shared::timestamp::Timestamp;

use super::{Found, growthbook, project, unleash};
use crate::flagd_export::{Core, served_by_flagd};

thread_local! {
    /// The evaluations that were recorded.
    static VECTORS: RefCell<Vec<Vector>> = const { RefCell::new(Vec::new()) };
}

/// The caller's default, which no case serves.
const DEFAULT: &str = "the caller's";

/// Reasons for other individuals in a core's shares.
const HASHES_CBOR: &str = "Python's core hashes CBOR";
const HASHES_UTF_16: &str = "JavaScript's core hashes UTF-16 code units of non-ASCII keys";

/// An evaluation and its result.
pub(super) struct Vector {
    flags: Vec<FeatureFlag>,
    key: String,
    context: Value,
    now: Timestamp,
    variant: Option<String>,
    value: Option<String>,
}

impl Vector {
    pub(super) fn new(flags: &[FeatureFlag], key: &str, context: &Value, now: Timestamp) -> Self {
        let (flags, key, context) = (flags.to_vec(), key.to_owned(), context.clone());
        Self { flags, key, context, now, variant: None, value: None }
    }

    pub(super) fn record(self, found: &Found) {
        let vector = Self { variant: found.variant.clone(), value: found.value.clone(), ..self };
        VECTORS.with_borrow_mut(|vectors| vectors.push(vector));
    }

    fn flag(&self) -> Option<&FeatureFlag> {
        self.flags.iter().find(|flag| flag.key.as_str() == self.key)
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.flag().into_iter().flat_map(|flag| &flag.rules).flat_map(|rule| &rule.conditions)
    }

    /// Returns the value of a condition's attribute.
    fn attribute(&self, condition: &Condition) -> &Value {
        let name = condition.attribute.as_deref().unwrap_or_default();
        match self.context.get(name) {
            Some(value) => value,
            None => name.split('.').fold(&self.context, |value, name| &value[name]),
        }
    }

    /// Returns the reason why a core of flagd interprets the case differently.
    fn differs(&self, core: Core) -> Option<&'static str> {
        use Operator as O;
        let flag = self.flag()?;
        if !flag.enabled && flag.off_variant.is_some() {
            return Some("flagd serves the caller's default for disabled flags");
        }
        if self.now != Timestamp::from_millis(0)
            && self.conditions().any(|it| it.attribute.as_deref() == Some(NOW))
        {
            return Some("flagd's clock cannot be set");
        }
        if core == Core::Python && serves(flag).any(is_split) {
            return Some(HASHES_CBOR);
        }
        let targeting_key = self.context["targetingKey"].as_str();
        if core == Core::JavaScript
            && serves(flag).any(is_split)
            && targeting_key.is_some_and(|key| !key.is_ascii())
        {
            return Some(HASHES_UTF_16);
        }
        self.conditions().find_map(|condition| {
            let attribute = self.attribute(condition);
            let name = condition.attribute.as_deref().unwrap_or_default();
            let is_comparison = matches!(
                condition.operator,
                O::GreaterThan | O::GreaterThanOrEqual | O::LessThan | O::LessThanOrEqual
            );
            let is_version = matches!(
                condition.operator,
                O::SemverEquals
                    | O::SemverGreaterThan
                    | O::SemverGreaterThanOrEqual
                    | O::SemverLessThan
                    | O::SemverLessThanOrEqual
            );
            let text = attribute.as_str();
            if attribute.is_array() || attribute.is_object() {
                Some("flagd does not check arrays and objects")
            } else if name.contains('.') && self.context.get(name).is_some() {
                Some("flagd finds names with dots only by path")
            } else if is_comparison && text.is_some_and(|text| !is_json_number(text)) {
                Some("flagd compares non-numeric texts")
            } else if is_version
                && text.is_some_and(|text| !text.starts_with(|c: char| c.is_ascii_digit()))
            {
                Some("flagd accepts versions that are invalid here")
            } else {
                None
            }
        })
    }
}

fn is_json_number(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Value::Number(number)) if number.to_string() == text)
}

fn serves(flag: &FeatureFlag) -> impl Iterator<Item = &Serve> {
    flag.rules.iter().map(|rule| &rule.serve).chain([&flag.fallthrough])
}

fn is_split(serve: &Serve) -> bool {
    let Serve::Rollout(entries) = serve else { return false };
    entries.iter().filter(|entry| entry.weight.thousandths() > 0).count() > 1
}

/// Returns the part of a reason that all flags share.
fn kind_of(reason: &str) -> String {
    let known = [
        "flagd cannot compare dates",
        "flagd has no regular expressions",
        "flagd has no address ranges",
        "flagd has no prerequisites",
        "flagd would round an integer of this size",
        "flagd requires at least one variant",
    ];
    known.into_iter().find(|known| reason.contains(known)).unwrap_or(reason).to_owned()
}

/// Compares the results of a core with those here.
fn compare(core: Core, vectors: &[Vector]) -> (usize, BTreeMap<String, usize>, Vec<String>) {
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut requests = Vec::new();
    let mut compared = Vec::new();
    for vector in vectors {
        let FlagdExport { document, differences } =
            export(project(), &vector.flags, &[], Layout::Compact);
        let inexpressible =
            differences.iter().find(|it| it.left_out && it.flag_key.as_str() == vector.key);
        let reason = inexpressible.map(|difference| kind_of(&difference.reason));
        let reason = reason.or_else(|| vector.differs(core).map(str::to_owned));
        if let Some(reason) = reason {
            *left_out.entry(reason).or_default() += 1;
            continue;
        }
        let evaluation = json!({
            "flag": vector.key, "type": "string", "default": DEFAULT, "context": vector.context,
        });
        requests.push(json!({"document": document, "evaluations": [evaluation]}));
        compared.push(vector);
    }
    let results = served_by_flagd(core, &requests);
    assert_eq!(results.len(), compared.len());
    let mut failures = Vec::new();
    for (vector, result) in compared.iter().zip(results) {
        let value = vector.value.as_deref().unwrap_or(DEFAULT);
        if result["value"] != value || result["variant"].as_str() != vector.variant.as_deref() {
            let rules = serde_json::to_string(&vector.flag().map(|flag| &flag.rules)).unwrap();
            failures.push(format!("{value} here, {result} there, for {}: {rules}", vector.context));
        }
    }
    (compared.len(), left_out, failures)
}

fn vectors() -> Vec<Vector> {
    let (of_unleash, of_growthbook) = (unleash::run_all().0, growthbook::run_all().0);
    let vectors = VECTORS.take();
    assert!(vectors.len() >= of_unleash + of_growthbook, "all evaluations are recorded");
    vectors
}

fn check(core: Core, least: usize) {
    let vectors = vectors();
    let (compared, left_out, failures) = compare(core, &vectors);
    println!(
        "{core:?}: {} of {compared} as here, of {} cases",
        compared - failures.len(),
        vectors.len()
    );
    for (reason, count) in &left_out {
        println!("    {count:3} left out: {reason}");
    }
    assert_eq!(failures, [""; 0]);
    assert!(compared >= least, "only {compared} were compared");
}

#[test]
fn javascript_core_passes_the_suites() {
    check(Core::JavaScript, 260);
}

#[test]
fn python_core_passes_the_suites() {
    check(Core::Python, 260);
}

/// Returns the number of individuals for whom a core serves another half than here.
fn served_otherwise(core: Core, targeting_key: impl Fn(usize) -> String) -> usize {
    let half = |variant: &str| RolloutEntry {
        variant: super::variant_key(variant),
        weight: Weight::parse("50").unwrap(),
    };
    let Ok(mut flag) = super::flag("f", &[("a", "A"), ("b", "B")], None) else { panic!("a flag") };
    flag.fallthrough = Serve::Rollout(vec![half("a"), half("b")]);
    let FlagdExport { document, .. } =
        export(project(), std::slice::from_ref(&flag), &[], Layout::Compact);
    let contexts: Vec<Value> =
        (0..INDIVIDUALS).map(|at| json!({"targetingKey": targeting_key(at)})).collect();
    let evaluation = |context: &Value| json!({"flag": "f", "type": "string", "default": DEFAULT, "context": context});
    let evaluations: Vec<Value> = contexts.iter().map(evaluation).collect();
    let there = served_by_flagd(core, &[json!({"document": document, "evaluations": evaluations})]);
    assert_eq!(there.len(), INDIVIDUALS);
    let differs = |(context, there): &(&Value, Value)| {
        let here = super::evaluate(vec![flag.clone()], "f", context, Timestamp::from_millis(0));
        there["variant"].as_str() != here.variant.as_deref()
    };
    contexts.iter().zip(there).filter(differs).count()
}

const INDIVIDUALS: usize = 48;

#[test]
fn export_lists_differences_in_shares() {
    let ascii = |at: usize| format!("user-{at}");
    let beyond = |at: usize| format!("{}-{at}", ["é", "名前", "🙂"][at % 3]);
    assert_eq!(served_otherwise(Core::JavaScript, ascii), 0);
    let is_listed = |core: &str, how: &str| {
        GENERAL_DIFFERENCES.iter().any(|it| it.contains(core) && it.contains(how))
    };
    for (core, differ, listed) in [
        (
            Core::JavaScript,
            served_otherwise(Core::JavaScript, beyond),
            is_listed("JavaScript", "UTF-16"),
        ),
        (Core::Python, served_otherwise(Core::Python, ascii), is_listed("Python", "CBOR")),
        (Core::Python, served_otherwise(Core::Python, beyond), is_listed("Python", "CBOR")),
    ] {
        // About half of the individuals are in the other half.
        assert!((12..=36).contains(&differ) && listed, "{core:?}: {differ}");
    }
}

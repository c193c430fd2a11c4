//! For any input, the filters are valid against the request, and always equal.

use std::time::{Duration, Instant};

use interpreter::{Category, Filter, Kind, Operator, Request, interpret, valid_filters};
use proptest::prelude::*;

fn is_plain_decimal(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    plain(whole) && plain(fraction)
}

/// `true` if a filter can be in a response: unchanged from the request, or valid for its category.
fn is_valid(request: &Request, filter: &Filter) -> bool {
    if request.current_filters.contains(filter) {
        return true;
    }
    let Some(category) =
        request.categories.iter().find(|category| category.id == filter.category_id)
    else {
        return false;
    };
    let closed = category.values.contains(&filter.value);
    let open = category.values.is_empty() && !filter.value.is_empty();
    match (category.kind, filter.operator) {
        (Kind::Boolean, operator) => {
            operator == Operator::Is && matches!(filter.value.as_str(), "true" | "false")
        }
        (
            Kind::Numeric,
            Operator::Contains | Operator::NotContains | Operator::IsSet | Operator::IsNotSet,
        ) => false,
        (Kind::Numeric, _) => is_plain_decimal(&filter.value),
        (_, Operator::IsSet | Operator::IsNotSet) => filter.value.is_empty(),
        (Kind::Text, Operator::Is | Operator::IsNot)
        | (Kind::Array, Operator::Contains | Operator::NotContains) => closed || open,
        (Kind::Text, Operator::Contains | Operator::NotContains) => open,
        _ => false,
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "chrome", "Firefox", "prod", "not", "except", "no", "without", "also", "remove", "all", "any", "both",
            "reset", "clear everything", "between", "5", "10", "1.5k", "more than", "users", "in", "the", "\"", "'x y'",
            ":", "=", "!=", ">=", ",", "and", "or", "sorry", "contains", "message", "is", "handled", "on", "off", "v2.4.1",
            "twelve oh six", "a dozen", "minus 20", "500s", "5xx", "instead of", "replace", "with", "keep", "flip it", "last 24 hours",
            "99999999999999999999999999999", "1e999", "-", "--", "...", "(", "unassigned", "OOMKilled", "us-east-1", "🇩🇪", "ﬁ", "ß",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
        1 => "[a-zA-Z0-9 ._@/-]{0,16}",
        1 => any::<char>().prop_map(|character| character.to_string()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => word(), 1 => prop::collection::vec(word(), 1..4).prop_map(|words| words.join(" ")), 1 => Just(String::new()), 1 => Just("!!!".to_owned()), 1 => "[a-z]{300,400}"]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Text, Kind::Text, Kind::Numeric, Kind::Boolean, Kind::Array])
}

/// Returns a filter's value: often one that some kind of category accepts.
fn value() -> impl Strategy<Value = String> {
    let plausible = prop::sample::select(vec!["true", "false", "5", "-0.5", "1e3", ""]);
    prop_oneof![name(), plausible.prop_map(str::to_owned)]
}

fn filter(ids: Vec<String>) -> impl Strategy<Value = Filter> {
    (prop::sample::select(ids), prop::sample::select(Operator::ALL.to_vec()), value())
        .prop_map(|(category_id, operator, value)| Filter { category_id, operator, value })
}

fn request() -> impl Strategy<Value = Request> {
    let category = (name(), prop::collection::vec(name(), 0..8), kind());
    prop::collection::vec(category, 0..8).prop_flat_map(|facts| {
        let categories: Vec<Category> = facts
            .into_iter()
            .enumerate()
            .map(|(index, (label, values, kind))| Category {
                id: format!("c{index}"),
                label,
                values,
                kind,
            })
            .collect();
        let mut ids: Vec<String> = categories.iter().map(|category| category.id.clone()).collect();
        ids.push("unknown".to_owned());
        (prop::collection::vec(word(), 0..24), prop::collection::vec(filter(ids), 0..5)).prop_map(
            move |(words, current_filters)| {
                let query: String = words.join(" ").chars().take(500).collect();
                Request { query, categories: categories.clone(), current_filters }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn filters_are_valid_and_repeatable(request in request()) {
        let interpretation = interpret(&request);
        for (index, filter) in interpretation.filters.iter().enumerate() {
            prop_assert!(is_valid(&request, filter), "{filter:?}");
            prop_assert!(!interpretation.filters[..index].contains(filter), "twice: {filter:?}");
        }
        for filter in request.current_filters.iter().filter(|filter| filter.category_id == "unknown") {
            prop_assert!(interpretation.filters.contains(filter), "lost: {filter:?}");
        }
        prop_assert_eq!(interpret(&request), interpretation);
    }

    #[test]
    fn only_valid_filters_pass_the_validator(request in request(), extra in prop::collection::vec(filter(vec!["c0".into(), "c1".into(), "c2".into(), "unknown".into()]), 0..12)) {
        let passed = valid_filters(&request, extra);
        for filter in &passed {
            prop_assert!(is_valid(&request, filter), "{filter:?}");
        }
    }

    #[test]
    fn arbitrary_text_is_read_without_panic(query in "\\PC{0,500}", label in "\\PC{0,40}", values in prop::collection::vec("\\PC{0,40}", 0..6)) {
        let categories = vec![
            Category { id: "a".into(), label: label.clone(), values, kind: Kind::Text },
            Category { id: "b".into(), label, values: Vec::new(), kind: Kind::Text },
        ];
        let request = Request { query, categories, current_filters: Vec::new() };
        for filter in interpret(&request).filters {
            prop_assert!(is_valid(&request, &filter));
        }
    }
}

/// Returns the largest request of the contract, as expensive as possible.
fn hostile(value: impl Fn(usize) -> String, query: &str) -> Request {
    let categories = (0..50)
        .map(|category| Category {
            id: format!("c{category}"),
            label: format!("label {category}"),
            values: (0..40).map(|index| value(category * 40 + index)).collect(),
            kind: if category % 2 == 0 { Kind::Text } else { Kind::Array },
        })
        .collect();
    Request {
        query: query.repeat(500).chars().take(500).collect(),
        categories,
        current_filters: Vec::new(),
    }
}

#[test]
fn stays_fast_on_hostile_requests() {
    let requests = [
        hostile(|_| "a a a a a a a a".into(), "a "),
        hostile(|index| format!("alpha beta gamma {index}"), "gamma beta alpha "),
        hostile(|index| format!("abcdefg{index:04}x"), "abcdefh abcdegf "),
        hostile(
            |index| format!("aaaaaaa{}", char::from(b'a' + u8::try_from(index % 26).unwrap())),
            "aaaaaabz ",
        ),
        hostile(|_| "x".repeat(120), "xxxxxxxxxxx "),
        hostile(|index| format!("{index}.{index}.{index}.{index}"), "1.1 2.2.2 not "),
        hostile(
            |index| format!("one{index} two three four five six seven eight nine ten"),
            "two three ten nine ",
        ),
        hostile(|_| String::new(), "\" ' \" "),
        hostile(|_| "not".into(), "not also remove all "),
    ];
    for request in requests {
        interpret(&request);
        let start = Instant::now();
        interpret(&request);
        // Far above the time of an optimized build: this one can be unoptimized, and other programs
        // use the machine. A blow-up takes minutes.
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?} {}",
            start.elapsed(),
            &request.query[..20]
        );
    }
}

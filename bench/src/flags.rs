//! Bodies of flags.

use serde_json::{Value as Json, json};

use crate::request::read;

/// Returns a typical flag: 3 variants, 3 rules with 2 conditions each, a rollout, 2 targets.
pub(crate) fn typical_flag(number: usize) -> Json {
    let mut flag = read(include_str!("../data/flag.json"));
    flag["key"] = json!(format!("checkout-{number:012x}"));
    flag
}

/// Returns a typical flag with ten violations.
pub(crate) fn invalid_flag(_: usize) -> Json {
    let mut flag = typical_flag(0);
    let violations = [
        ("/key", json!("not a key")),
        ("/name", json!("")),
        ("/enabled", json!("yes")),
        ("/description", json!(17)),
        ("/offVariant", json!("missing")),
        ("/fallthrough/rollout/1/weight", json!(-1)),
        ("/rules/0/conditions/0/operator", json!("like")),
        ("/rules/1/conditions/1/values/0", json!("v4")),
        ("/rules/2/conditions/1/values/0", json!("yesterday")),
        ("/targets/1/kind", json!("segment")),
    ];
    for (pointer, invalid) in violations {
        if let Some(value) = flag.pointer_mut(pointer) {
            *value = invalid;
        }
    }
    flag
}

/// Returns a flag just under the size limit, with 100 rules, each with a list of values.
pub(crate) fn largest_flag(number: usize) -> Json {
    let mut flag = typical_flag(number);
    let rule = |rule: usize| {
        let values = (0..90).map(|value| format!("customer-{rule:03}-{value:03}"));
        json!({
            "name": format!("Customers of wave {rule}"),
            "conditions": [
                {"attribute": "customer", "operator": "in", "values": values.collect::<Vec<_>>()},
            ],
            "serve": {"variant": "one-page", "rollout": []},
        })
    };
    flag["rules"] = (0..100).map(rule).collect();
    flag
}

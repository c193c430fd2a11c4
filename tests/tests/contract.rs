//! Checks that facts that tools require in several places agree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::Duration;

use serde_json::Value;

use errors::SENTRY;
use flags::ofrep::OFREP;
use shared::http::{EXPOSED_HEADERS, ProblemCode, Protocol, RATE_LIMITS, preflight};
use tests::contract::OPENAPI;
use tests::operations::{JOBS, OPERATIONS};
use tests::workspace;

/// Time that a function needs for its 503, after the budget of a request.
const RESPONSE: Duration = Duration::from_secs(1);

fn yaml(name: &str) -> yaml_serde::Value {
    yaml_serde::from_str(&fs::read_to_string(workspace().join(name)).unwrap()).unwrap()
}

#[test]
fn operations_are_declared_as_described() {
    let mut described = BTreeSet::new();
    for (path, item) in OPENAPI["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            // Operations with `x-function` are declared by another operation's function.
            if operation["x-function"].is_null() {
                let scope = operation["x-required-scope"].as_str().map(str::to_owned);
                described.insert((id, method.to_uppercase(), path.as_str(), scope));
            }
        }
    }
    let declared = OPERATIONS.iter().map(|it| {
        let scope = it.scope().map(|scope| scope.to_string());
        (it.name, it.method.to_string(), it.path, scope)
    });
    assert_eq!(declared.collect::<BTreeSet<_>>(), described);
}

#[test]
fn jobs_are_functions_with_schedules() {
    let schedules = local::template::read_schedules(&workspace().join("template.yaml")).unwrap();
    let functions: BTreeSet<&str> = schedules.iter().map(|it| it.function.as_str()).collect();
    assert_eq!(JOBS.iter().map(|job| job.name).collect::<BTreeSet<_>>(), functions);
}

#[test]
fn functions_outlive_their_requests() {
    let template = yaml("template.yaml");
    let default = &template["Globals"]["Function"]["Timeout"];
    let functions = template["Resources"].as_mapping().unwrap().values().filter_map(|resource| {
        let zip = resource["Properties"]["CodeUri"].as_str()?;
        let name = zip.strip_prefix("target/package/")?.strip_suffix(".zip")?;
        let own = &resource["Properties"]["Timeout"];
        Some((name, if own.is_null() { default } else { own }.as_u64()?))
    });
    let timeouts: HashMap<&str, u64> = functions.collect();
    for operation in OPERATIONS {
        let needed = operation.time_budget + RESPONSE;
        let timeout = Duration::from_secs(timeouts[operation.name]);
        assert!(timeout >= needed, "{} needs {needed:?}, not {timeout:?}", operation.name);
    }
}

#[test]
fn problem_codes_are_documented() {
    let problem = &OPENAPI["components"]["schemas"]["Problem"];
    let documented = names(&problem["properties"]["code"]["enum"]);
    let codes: BTreeSet<String> =
        ProblemCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(codes, documented);
    let table = problem["description"].as_str().unwrap();
    for &code in ProblemCode::ALL {
        let row = table.lines().find(|line| line.contains(&format!("`{}`", code.as_str())));
        let row = row.unwrap_or_else(|| panic!("{} has no row", code.as_str()));
        assert!(row.contains(&code.status().as_u16().to_string()), "{row}");
        assert!(row.contains(code.title()), "{row}");
    }
}

#[test]
fn violation_codes_are_documented() {
    // The error of `serde` names the known variants.
    let known = serde_json::from_str::<shared::json::ViolationCode>("\"?\"").unwrap_err();
    let known: BTreeSet<String> =
        known.to_string().split('`').skip(3).step_by(2).map(str::to_owned).collect();
    let schema = &OPENAPI["components"]["schemas"]["Violation"]["properties"]["code"]["enum"];
    assert_eq!(known, names(schema));
}

#[test]
fn template_and_functions_have_equal_cors_headers() {
    let template = yaml("template.yaml");
    // `!If [HasCors, …, none]`.
    let cors = &template["Resources"]["Api"]["Properties"]["CorsConfiguration"][1];
    let listed = |property: &str| -> BTreeSet<String> {
        let items = cors[property].as_sequence().unwrap();
        items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let split = |text: &str| -> BTreeSet<String> { text.split(", ").map(str::to_owned).collect() };
    let mut exposed = split(EXPOSED_HEADERS);
    exposed.insert(RATE_LIMITS.to_string());
    assert_eq!(listed("ExposeHeaders"), exposed);
    // API Gateway has one preflight response for all paths, so it combines all protocols.
    let header = |name: &str| -> BTreeSet<String> {
        let protocols = [&Protocol::WAYMARK, &SENTRY, &OFREP];
        let values = protocols.map(|protocol| {
            let headers = preflight(protocol).unwrap().to_stored().headers;
            let found = headers.into_iter().find(|(header, _)| header == name);
            split(&found.expect("the preflight has the header").1)
        });
        values.into_iter().flatten().collect()
    };
    assert_eq!(listed("AllowHeaders"), header("access-control-allow-headers"));
    assert_eq!(listed("AllowMethods"), header("access-control-allow-methods"));
}

fn names(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().expect("the value is a list");
    items.iter().map(|item| item.as_str().expect("the item is text").to_owned()).collect()
}

//! What stands in several places because tools demand it, held together.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use shared::http::{EXPOSED_HEADERS, ProblemCode, Protocol, preflight};
use tests::contract::OPENAPI;
use tests::workspace;

/// Method, path, function.
type Route = (String, String, String);

/// The end of a route of API Gateway that takes every path that begins like it.
const GREEDY: &str = "{proxy+}";

fn yaml(name: &str) -> yaml_serde::Value {
    yaml_serde::from_str(&fs::read_to_string(workspace().join(name)).unwrap()).unwrap()
}

fn openapi_operations() -> Vec<(String, String, &'static Value)> {
    let methods = ["get", "put", "post", "delete", "patch", "options", "head", "trace"];
    let mut operations = Vec::new();
    for (path, item) in OPENAPI["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if methods.contains(&method.as_str()) {
                operations.push((method.to_uppercase(), path.clone(), operation));
            }
        }
    }
    operations
}

fn operation_id(operation: &'static Value) -> &'static str {
    operation["operationId"].as_str().expect("every operation has an id")
}

/// The function of an operation: the one of its name, or where a function has several paths, the
/// one that its other operations name.
fn function(operation: &'static Value) -> &'static str {
    operation["x-function"].as_str().unwrap_or_else(|| operation_id(operation))
}

fn openapi_routes() -> BTreeSet<Route> {
    let operations = openapi_operations().into_iter();
    operations.map(|(method, path, it)| (method, path, function(it).to_owned())).collect()
}

fn template_routes() -> BTreeSet<Route> {
    let template = yaml("template.yaml");
    let mut routes = BTreeSet::new();
    for (name, resource) in template["Resources"].as_mapping().unwrap() {
        if resource["Type"].as_str() != Some("AWS::Serverless::Function") {
            continue;
        }
        let code = resource["Properties"]["CodeUri"].as_str().unwrap();
        let function = code.strip_prefix("target/lambda/").expect("code is built by cargo lambda");
        assert_eq!(pascal_case(function), name.as_str().unwrap(), "resources are named alike");
        let Some(events) = resource["Properties"]["Events"].as_mapping() else { continue };
        for event in events.values().filter(|event| event["Type"].as_str() == Some("HttpApi")) {
            let of = |member: &str| event["Properties"][member].as_str().unwrap().to_owned();
            routes.insert((of("Method"), of("Path"), function.to_owned()));
        }
    }
    routes
}

/// The described routes in the place of each greedy one that takes them.
fn without_greedy(routes: BTreeSet<Route>, described: &BTreeSet<Route>) -> BTreeSet<Route> {
    let mut expanded = BTreeSet::new();
    for (method, path, function) in routes {
        let Some(beginning) = path.strip_suffix(GREEDY) else {
            expanded.insert((method, path, function));
            continue;
        };
        let taken: Vec<&Route> = described
            .iter()
            .filter(|(m, p, f)| *m == method && *f == function && p.starts_with(beginning))
            .collect();
        assert!(!taken.is_empty(), "{path} takes no path that is described");
        expanded.extend(taken.into_iter().cloned());
    }
    expanded
}

fn pascal_case(kebab_case: &str) -> String {
    let capitalize = |word: &str| word[..1].to_uppercase() + &word[1..];
    kebab_case.split('-').map(capitalize).collect()
}

fn watch_routes() -> BTreeSet<Route> {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let declared = &manifest["workspace"]["metadata"]["lambda"]["watch"]["router"];
    let mut routes = BTreeSet::new();
    // The page that describes the others is of the local stack alone.
    for (path, targets) in declared.as_table().unwrap().iter().filter(|(path, _)| *path != "/docs")
    {
        for target in targets.as_array().expect("every route names its methods") {
            let of = |member: &str| target[member].as_str().unwrap().to_owned();
            routes.insert((of("method"), path.clone(), of("function")));
        }
    }
    routes
}

#[test]
fn the_description_the_template_and_the_watch_router_agree_on_every_route() {
    let described = openapi_routes();
    assert!(!described.is_empty());
    let deployed = template_routes();
    for (_, path, _) in &deployed {
        assert!(!path.ends_with('/'), "an HTTP API cannot have the route {path}");
    }
    assert_eq!(without_greedy(deployed, &described), described);
    // API Gateway answers preflight requests itself; under watch, a function does.
    let (preflights, routes): (BTreeSet<Route>, BTreeSet<Route>) =
        watch_routes().into_iter().partition(|(method, ..)| method == "OPTIONS");
    assert_eq!(routes, described);
    let paths = |routes: &BTreeSet<Route>| -> BTreeSet<String> {
        routes.iter().map(|(_, path, _)| path.clone()).collect()
    };
    assert_eq!(paths(&preflights), paths(&described), "every path answers preflight requests");
}

#[test]
fn every_operation_has_its_function_and_every_function_its_operation() {
    let mut operations: BTreeSet<String> =
        openapi_routes().into_iter().map(|(_, _, function)| function).collect();
    // What runs on a schedule is no operation, but has a function all the same.
    let schedules = local::template::read_schedules(&workspace().join("template.yaml")).unwrap();
    operations.extend(schedules.into_iter().map(|schedule| schedule.function));
    let folders: BTreeSet<String> = fs::read_dir(workspace().join("functions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, operations);
    for name in &folders {
        let manifest = workspace().join("functions").join(name).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some(name.as_str()));
    }
}

#[test]
fn every_function_has_one_operation_of_its_name() {
    let operations = openapi_operations();
    let ids: BTreeSet<&str> = operations.iter().map(|(_, _, it)| operation_id(it)).collect();
    assert_eq!(ids.len(), operations.len(), "no two operations have the same id");
    for (_, path, operation) in &operations {
        assert!(ids.contains(function(operation)), "{path}: {}", function(operation));
    }
}

#[test]
fn the_readme_names_every_operation() {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    for (method, path, function) in openapi_routes() {
        assert!(readme.contains(&function), "{function} is missing");
        assert!(readme.contains(&format!("{method} {path}")), "{method} {path} is missing");
    }
}

#[test]
fn every_problem_code_is_documented_with_its_status_and_title() {
    let problem = &OPENAPI["components"]["schemas"]["Problem"];
    let mut documented = names(&problem["properties"]["code"]["enum"]);
    // API Gateway's own.
    assert!(documented.remove("throttled"));
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
fn every_violation_code_is_documented() {
    // `serde` names the variants that it knows in its error.
    let known = serde_json::from_str::<shared::json::ViolationCode>("\"?\"").unwrap_err();
    let known: BTreeSet<String> =
        known.to_string().split('`').skip(3).step_by(2).map(str::to_owned).collect();
    let schema = &OPENAPI["components"]["schemas"]["Violation"]["properties"]["code"]["enum"];
    assert_eq!(known, names(schema));
}

#[test]
fn the_template_allows_and_exposes_the_headers_that_the_functions_do() {
    let template = yaml("template.yaml");
    // `!If [HasCors, …, none]`.
    let cors = &template["Resources"]["Api"]["Properties"]["CorsConfiguration"][1];
    let listed = |member: &str| -> BTreeSet<String> {
        let items = cors[member].as_sequence().unwrap();
        items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let split = |text: &str| -> BTreeSet<String> { text.split(", ").map(str::to_owned).collect() };
    assert_eq!(listed("ExposeHeaders"), split(EXPOSED_HEADERS));
    // API Gateway gives one answer for all paths, so it is that of all protocols together.
    let header = |name: &str| -> BTreeSet<String> {
        let protocols = [Protocol::Waymark, Protocol::Sentry, Protocol::Ofrep];
        let values = protocols.map(|protocol| {
            let headers = preflight(protocol).to_stored().headers;
            let found = headers.into_iter().find(|(header, _)| header == name);
            split(&found.expect("a preflight has it").1)
        });
        values.into_iter().flatten().collect()
    };
    assert_eq!(listed("AllowHeaders"), header("access-control-allow-headers"));
    assert_eq!(listed("AllowMethods"), header("access-control-allow-methods"));
}

fn names(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().expect("it is a list");
    items.iter().map(|item| item.as_str().expect("it is text").to_owned()).collect()
}

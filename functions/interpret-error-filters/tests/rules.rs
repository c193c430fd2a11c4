//! Each rule by its name, with a query that asked for it. Filters are written as
//! `category operator value`, separated by semicolons.
#![allow(missing_docs, clippy::unwrap_used)]

use interpret_error_filters::interpretation::{
    Category, Filter, Kind, Operator, Request, interpret,
};

/// The categories of all rows: id, label, kind, values.
const CATEGORIES: [(&str, &str, Kind, &[&str]); 19] = [
    ("browser", "Browser", Kind::Text, &["Chrome", "Chrome Mobile", "Firefox", "Safari", "Edge"]),
    (
        "os",
        "Operating system",
        Kind::Text,
        &["Windows 10", "Windows 11", "macOS", "iOS", "Android"],
    ),
    ("env", "Environment", Kind::Text, &["production", "staging", "dev-east", "dev-west"]),
    ("release", "Release", Kind::Text, &["app@2.4.1", "app@2.4.0", "app@3.0.0-beta"]),
    ("level", "Level", Kind::Text, &["fatal", "error", "warning"]),
    ("country", "Country", Kind::Text, &["Germany", "United Kingdom", "Norway", "US"]),
    ("owner", "Assignee", Kind::Text, &["alice.wu", "bob.ng", "carla.wu"]),
    ("code", "Status code", Kind::Text, &["200", "404", "429", "500", "503", "1206"]),
    ("method", "Method", Kind::Text, &["GET", "POST", "PUT"]),
    ("area", "Practice area", Kind::Text, &["Intellectual property", "Tax"]),
    ("handled", "Handled", Kind::Boolean, &[]),
    ("licence", "Licence expired", Kind::Boolean, &[]),
    ("updates", "Automatic updates disabled", Kind::Boolean, &[]),
    ("users", "Users affected", Kind::Numeric, &[]),
    ("latency", "Latency (ms)", Kind::Numeric, &[]),
    ("speed", "Wind speed (km/h)", Kind::Numeric, &[]),
    ("tags", "Tags", Kind::Array, &["checkout", "third-party"]),
    ("message", "Message", Kind::Text, &[]),
    ("ticket", "Ticket id", Kind::Text, &[]),
];

/// Rule, query, current filters, expected filters.
const RULES: &[(&str, &str, &str, &str)] = &[
    // Linking.
    ("exact", "firefox", "", "browser is Firefox"),
    ("longest-match", "chrome mobile", "", "browser is Chrome Mobile"),
    ("plural", "warnings", "", "level is warning"),
    ("punctuation", "third party", "", "tags contains third-party"),
    ("synonym", "live environment", "", "env is production"),
    ("demonym", "brits", "", "country is United Kingdom"),
    ("code-in-capitals", "from the US", "", "country is US"),
    (
        "function-word-is-no-code",
        "neither edge nor safari",
        "",
        "browser is_not Edge; browser is_not Safari",
    ),
    ("unique-part", "bob", "", "owner is bob.ng"),
    ("shared-part-names-none", "wu", "", ""),
    ("shared-part-with-both", "both dev environments", "", "env is dev-east; env is dev-west"),
    ("initials", "ip", "", "area is Intellectual property"),
    ("maker-beside-label", "apple's browser", "", "browser is Safari"),
    ("maker-alone", "apple", "", ""),
    ("typo", "firefx", "", "browser is Firefox"),
    ("version", "v2.4.1", "", "release is app@2.4.1"),
    ("version-part", "version 3", "", "release is app@3.0.0-beta"),
    ("http-phrase", "too many requests", "", "code is 429"),
    ("digit-family", "5xx", "", "code is 500; code is 503"),
    ("plural-of-number", "500s", "", "code is 500"),
    ("spoken-digits", "twelve oh six", "", "code is 1206"),
    ("spoken-number-in-name", "windows eleven", "", "os is Windows 11"),
    ("ordinary-verb", "put staging in there", "", "env is staging"),
    ("verb-as-value", "PUT on staging", "", "method is PUT; env is staging"),
    ("thing-searched", "errors on firefox", "", "browser is Firefox"),
    ("thing-searched-as-value", "error level", "", "level is error"),
    ("most-severe", "crashes", "", "level is fatal"),
    ("time-ignored", "firefox in the last 24 hours", "", "browser is Firefox"),
    // Booleans and presence.
    ("boolean", "handled", "", "handled is true"),
    ("boolean-opposite", "unhandled", "", "handled is false"),
    ("boolean-denied", "licence not expired", "", "licence is false"),
    ("boolean-inverse", "automatic updates on", "", "updates is false"),
    ("boolean-or-not", "handled or not", "handled is true", ""),
    ("boolean-key-value", "handled:no", "", "handled is false"),
    ("presence", "with an assignee", "", "owner is_set "),
    ("absence", "no release", "", "release is_not_set "),
    ("absence-after", "ticket id missing on firefox", "", "ticket is_not_set ; browser is Firefox"),
    ("absence-after-but", "firefox but no assignee", "", "browser is Firefox; owner is_not_set "),
    ("absence-word", "unassigned", "", "owner is_not_set "),
    ("absence-of-numeric", "no users", "", "users is 0"),
    // Numbers.
    ("comparator", "users > 100", "", "users gt 100"),
    ("comparator-after", "10 or more users", "", "users gte 10"),
    ("range", "between 5 and 10 users", "", "users gte 5; users lte 10"),
    (
        "range-of-round-numbers",
        "between a dozen and a hundred users",
        "",
        "users gte 12; users lte 100",
    ),
    ("range-dash", "users 5-10", "", "users gte 5; users lte 10"),
    ("two-bounds", "over 5 but under 10 users", "", "users gt 5; users lt 10"),
    ("suffix", "1.5k+ users", "", "users gte 1500"),
    ("number-list", "2, 3 or 4 users", "", "users is 2; users is 3; users is 4"),
    ("unit-conversion", "latency over 2 seconds", "", "latency gt 2000"),
    ("comparative", "slower than 300 ms", "", "latency gt 300"),
    ("comparative-of-speed", "wind faster than 50", "", "speed gt 50"),
    ("not-a-number", "users not 3", "", "users is_not 3"),
    ("bound-changed", "make it 700", "users gt 100", "users gt 700"),
    // Texts.
    (
        "label-operator-text",
        "message contains timeout on firefox",
        "",
        "message contains timeout; browser is Firefox",
    ),
    ("quoted-text", "message is \"Script error.\"", "", "message is Script error."),
    ("text-in-label", "timeout in the message", "", "message contains timeout"),
    ("mentioning", "errors mentioning out of memory", "", "message contains out of memory"),
    ("identifier", "ticket id AB-12", "", "ticket is AB-12"),
    ("text-denied", "message doesn't contain timeout", "", "message not_contains timeout"),
    (
        "text-but-not",
        "message contains timeout but not refused",
        "",
        "message contains timeout; message not_contains refused",
    ),
    // Negation.
    ("negated-list", "not chrome or firefox", "", "browser is_not Chrome; browser is_not Firefox"),
    ("negation-is-narrow", "not chrome on android", "", "browser is_not Chrome; os is Android"),
    (
        "exclusion-is-wide",
        "ignore chrome and staging",
        "",
        "browser is_not Chrome; env is_not staging",
    ),
    ("exclusion-of-place", "anywhere but norway", "", "country is_not Norway"),
    ("denied-after", "chrome excluded", "", "browser is_not Chrome"),
    ("denied-verb", "not loading on firefox", "", "browser is Firefox"),
    ("inability", "can't pay on firefox", "", "browser is Firefox"),
    ("leading-hyphen", "-chrome", "", "browser is_not Chrome"),
    ("only", "nothing but chrome", "", "browser is Chrome"),
    // Edits.
    ("replaces", "firefox", "browser is Chrome; os is iOS", "os is iOS; browser is Firefox"),
    ("adds", "also firefox", "browser is Chrome", "browser is Chrome; browser is Firefox"),
    ("adds-after", "firefox too", "browser is Chrome", "browser is Chrome; browser is Firefox"),
    (
        "add-belongs-to-what-follows",
        "also firefox, staging",
        "browser is Chrome; env is production",
        "browser is Chrome; browser is Firefox; env is staging",
    ),
    ("removes-category", "drop the browser filter", "browser is Chrome; os is iOS", "os is iOS"),
    ("removes-value", "drop chrome", "browser is Chrome; browser is Edge", "browser is Edge"),
    (
        "removes-exclusion",
        "forget the chrome exclusion",
        "browser is_not Chrome; browser is_not Edge",
        "browser is_not Edge",
    ),
    ("phrasal-verb", "take chrome out", "browser is Chrome; browser is Edge", "browser is Edge"),
    ("any", "any browser", "browser is Chrome; os is iOS", "os is iOS"),
    ("any-list", "regardless of browser or os", "browser is Chrome; os is iOS", ""),
    ("any-except", "all browsers except safari", "browser is Chrome", "browser is_not Safari"),
    ("reset", "start over with firefox", "os is iOS; users gt 5", "browser is Firefox"),
    ("reset-but", "clear everything but the os", "os is iOS; users gt 5", "os is iOS"),
    ("keep", "keep chrome, drop edge", "browser is Chrome; browser is Edge", "browser is Chrome"),
    ("rest", "keep the os, lose the rest", "os is iOS; users gt 5", "os is iOS"),
    (
        "replace-with",
        "replace chrome with edge",
        "browser is Chrome; browser is Safari",
        "browser is Safari; browser is Edge",
    ),
    ("instead-of", "edge instead of chrome", "browser is Chrome", "browser is Edge"),
    ("correction", "staging no sorry production", "", "env is production"),
    ("correction-of-number", "under 5 users, actually make that 3", "", "users lt 3"),
    ("flip", "flip it", "browser is Chrome", "browser is_not Chrome"),
    ("unknown-category-is-kept", "firefox", "stranger gt x", "stranger gt x; browser is Firefox"),
    ("nothing-usable", "lovely weather, isn't it", "os is iOS", "os is iOS"),
    // Categories.
    ("label-decides", "code 200", "", "code is 200"),
    ("key-value-list", "browser:chrome,edge", "", "browser is Chrome; browser is Edge"),
];

fn filters(text: &str) -> Vec<Filter> {
    let filter = |text: &str| {
        let mut fields = text.splitn(3, ' ');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (category_id, operator, value) = (field(), field(), field());
        Filter { category_id, operator: Operator::parse(&operator).unwrap(), value }
    };
    text.split("; ").filter(|text| !text.is_empty()).map(filter).collect()
}

fn categories() -> Vec<Category> {
    let category = |&(id, label, kind, values): &(&str, &str, Kind, &[&str])| Category {
        id: id.to_owned(),
        label: label.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        kind,
    };
    CATEGORIES.iter().map(category).collect()
}

#[test]
fn each_rule_answers_its_query() {
    let mut wrong = Vec::new();
    for &(rule, query, current, expected) in RULES {
        let request = Request {
            query: query.to_owned(),
            categories: categories(),
            current_filters: filters(current),
        };
        let answer = interpret(&request).filters;
        let expected = filters(expected);
        if answer.len() != expected.len() || !answer.iter().all(|filter| expected.contains(filter))
        {
            wrong.push(format!("{rule}: {query:?} gave {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn current_filters_come_first_and_keep_their_order() {
    let request = Request {
        query: "staging".to_owned(),
        categories: categories(),
        current_filters: filters("os is iOS; browser is Chrome; env is production; users gt 5"),
    };
    assert_eq!(
        interpret(&request).filters,
        filters("os is iOS; browser is Chrome; users gt 5; env is staging")
    );
}

#[test]
fn words_without_a_meaning_are_reported() {
    let request = Request {
        query: "firefox frobnicating zorblax".to_owned(),
        categories: categories(),
        current_filters: Vec::new(),
    };
    assert_eq!(interpret(&request).unexplained, ["frobnicating", "zorblax"]);
    let explained = Request { query: "firefox on staging please".to_owned(), ..request };
    assert!(interpret(&explained).unexplained.is_empty());
}

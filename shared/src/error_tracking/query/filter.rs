//! Filters on the attributes of events (`docs/semantics/error-tracking.md`, "Filters").

use super::case_folding::Folded;
use crate::error_tracking::attribute::{Attribute, Attributes, Category, UserHash};
use crate::json::{Fault, Fields, Json, JsonPath, ViolationCode, Violations, array, text};

/// The most filters of a query.
const MAX_FILTERS: usize = 20;

/// A condition on one category of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Condition);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Attribute(Attribute, Test),
    User(UserTest),
}

/// What a filter asks of its attribute's value. An event that lacks the attribute passes the
/// negative tests and fails the others.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    /// The same bytes.
    Is(String),
    IsNot(String),
    /// A part of the value, in either case.
    Contains(Folded),
    NotContains(Folded),
    IsSet,
    IsNotSet,
}

/// What a filter asks of the user. An event without one passes the negative tests and fails the
/// others. Nobody has an empty identity, whose hash is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserTest {
    Is(Option<UserHash>),
    IsNot(Option<UserHash>),
    IsSet,
    IsNotSet,
}

impl Test {
    fn matches(&self, value: Option<&str>) -> bool {
        let contains = |part: &Folded| value.is_some_and(|value| Folded::new(value).contains(part));
        match self {
            Self::Is(wanted) => value == Some(wanted),
            Self::IsNot(unwanted) => value != Some(unwanted),
            Self::Contains(part) => contains(part),
            Self::NotContains(part) => !contains(part),
            Self::IsSet => value.is_some(),
            Self::IsNotSet => value.is_none(),
        }
    }
}

impl UserTest {
    fn matches(self, user: Option<UserHash>) -> bool {
        match self {
            Self::Is(wanted) => user.is_some() && user == wanted,
            Self::IsNot(unwanted) => user.is_none() || user != unwanted,
            Self::IsSet => user.is_some(),
            Self::IsNotSet => user.is_none(),
        }
    }
}

impl Filter {
    /// Passes events whose `attribute` has exactly this value.
    pub fn is(attribute: Attribute, value: &str) -> Self {
        Self(Condition::Attribute(attribute, Test::Is(value.to_owned())))
    }

    /// Passes events whose `attribute` has another value or none.
    pub fn is_not(attribute: Attribute, value: &str) -> Self {
        Self(Condition::Attribute(attribute, Test::IsNot(value.to_owned())))
    }

    /// Passes events that have the attribute.
    pub fn is_set(attribute: Attribute) -> Self {
        Self(Condition::Attribute(attribute, Test::IsSet))
    }

    /// Passes events that lack the attribute.
    pub fn is_not_set(attribute: Attribute) -> Self {
        Self(Condition::Attribute(attribute, Test::IsNotSet))
    }

    fn category(&self) -> Category {
        match &self.0 {
            Condition::Attribute(attribute, _) => Category::Attribute(*attribute),
            Condition::User(_) => Category::User,
        }
    }

    /// Whether an event with that value of the filter's attribute passes.
    pub fn matches(&self, value: Option<&str>) -> bool {
        matches!(&self.0, Condition::Attribute(_, test) if test.matches(value))
    }

    fn matches_user(&self, user: Option<UserHash>) -> bool {
        matches!(&self.0, Condition::User(test) if test.matches(user))
    }

    /// Whether several such filters on one category mean that any of them may pass an event.
    fn is_alternative(&self) -> bool {
        matches!(
            self.0,
            Condition::Attribute(_, Test::Is(_) | Test::Contains(_))
                | Condition::User(UserTest::Is(_))
        )
    }
}

/// The names of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    Contains,
    NotContains,
    IsSet,
    IsNotSet,
}

impl Operator {
    const NAMES: [(&str, Self); 6] = [
        ("is", Self::Is),
        ("is_not", Self::IsNot),
        ("contains", Self::Contains),
        ("not_contains", Self::NotContains),
        ("is_set", Self::IsSet),
        ("is_not_set", Self::IsNotSet),
    ];
    /// Operators that compare numbers. No category is a number.
    const NUMERIC: [&str; 4] = ["gt", "gte", "lt", "lte"];

    /// Reads the operator of a filter on `category`, if that is known.
    fn parse(name: &str, category: Option<Category>) -> Result<Self, Fault> {
        let is_user = category == Some(Category::User);
        let is_allowed =
            |operator| !(is_user && matches!(operator, Self::Contains | Self::NotContains));
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, it)| *it);
        if let Some(operator) = found.filter(|operator| is_allowed(*operator)) {
            return Ok(operator);
        }
        let allowed = Self::NAMES.into_iter().filter(|(_, operator)| is_allowed(*operator));
        let allowed = allowed.map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let message = if found.is_some() {
            format!("`user` is kept as a hash, which has no parts; use {allowed}")
        } else if Self::NUMERIC.contains(&name) {
            format!("`{name}` compares numbers, and every category here is text; use {allowed}")
        } else {
            format!("must be one of {allowed}")
        };
        Err(Fault::new(ViolationCode::InvalidValue, message))
    }

    fn with_value(self, category: Option<Category>, value: &str) -> Result<Option<Filter>, Fault> {
        if matches!(self, Self::IsSet | Self::IsNotSet) && !value.is_empty() {
            let message = "`is_set` and `is_not_set` take the value \"\"";
            return Err(Fault::new(ViolationCode::InvalidValue, message));
        }
        Ok(match category {
            Some(Category::Attribute(attribute)) => {
                Some(Filter(Condition::Attribute(attribute, self.test(value))))
            }
            Some(Category::User) => self.user_test(value).map(|test| Filter(Condition::User(test))),
            None => None,
        })
    }

    fn test(self, value: &str) -> Test {
        match self {
            Self::Is => Test::Is(value.to_owned()),
            Self::IsNot => Test::IsNot(value.to_owned()),
            Self::Contains => Test::Contains(Folded::new(value)),
            Self::NotContains => Test::NotContains(Folded::new(value)),
            Self::IsSet => Test::IsSet,
            Self::IsNotSet => Test::IsNotSet,
        }
    }

    fn user_test(self, identity: &str) -> Option<UserTest> {
        match self {
            Self::Is => Some(UserTest::Is(UserHash::of(identity))),
            Self::IsNot => Some(UserTest::IsNot(UserHash::of(identity))),
            Self::Contains | Self::NotContains => None,
            Self::IsSet => Some(UserTest::IsSet),
            Self::IsNotSet => Some(UserTest::IsNotSet),
        }
    }
}

fn read_filter(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Filter> {
    Fields::read(json, path, violations, |fields, violations| {
        let category = fields.required("categoryId", violations, text(parse_category));
        let parse_operator = |name: &str| Operator::parse(name, category);
        let operator = fields.required("operator", violations, text(parse_operator));
        match operator {
            Some(operator) => {
                let filter = |value: &str| operator.with_value(category, value);
                fields.required("value", violations, text(filter)).flatten()
            }
            // Its own faults are still worth telling.
            None => fields.required("value", violations, text(|_| Ok(()))).and(None),
        }
    })
}

fn parse_category(name: &str) -> Result<Category, Fault> {
    Category::parse(name).ok_or_else(|| {
        let names = Category::all().map(Category::name).collect::<Vec<_>>().join(", ");
        Fault::new(ViolationCode::InvalidValue, format_args!("must be one of {names}"))
    })
}

/// What an event must pass to be counted: one filter of each group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilters {
    groups: Vec<Alternatives>,
}

/// Filters on one category of which one must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternatives {
    category: Category,
    filters: Vec<Filter>,
}

impl EventFilters {
    /// Reads the member `filters` of a query: at most 20 of `{categoryId, operator, value}`.
    pub fn read(json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations) -> Option<Self> {
        array(MAX_FILTERS, read_filter)(json, path, violations).map(Self::new)
    }

    /// The filters of a query: `is` and `contains` of one category are alternatives, everything
    /// else must hold.
    pub fn new(filters: Vec<Filter>) -> Self {
        let mut event_filters = Self::default();
        let (alternatives, others): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(Filter::is_alternative);
        for category in Category::all() {
            let of_category = alternatives.iter().filter(|filter| filter.category() == category);
            event_filters.require_one_of(category, of_category.cloned().collect());
        }
        for filter in others {
            event_filters.require_one_of(filter.category(), vec![filter]);
        }
        event_filters
    }

    /// Adds what another part of the query asks of events.
    pub fn require(&mut self, others: Self) {
        self.groups.extend(others.groups);
    }

    /// Adds that one of some filters on a category must pass; nothing, if there are none.
    pub(super) fn require_one_of(&mut self, category: Category, filters: Vec<Filter>) {
        if !filters.is_empty() {
            self.groups.push(Alternatives { category, filters });
        }
    }

    /// Whether every event passes, whatever is known of it.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The attributes that must be known.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute> {
        let is_asked = |attribute: &Attribute| {
            self.groups_of(Category::Attribute(*attribute)).next().is_some()
        };
        Attribute::ALL.into_iter().filter(is_asked)
    }

    /// Whether the user must be known.
    pub fn ask_for_user(&self) -> bool {
        self.groups_of(Category::User).next().is_some()
    }

    /// The categories that they ask for.
    pub fn categories(&self) -> impl Iterator<Item = Category> {
        Category::all().filter(|category| self.groups_of(*category).next().is_some())
    }

    /// Whether an event with that value of one attribute passes the filters on this attribute.
    pub fn match_value(&self, attribute: Attribute, value: Option<&str>) -> bool {
        let groups = &mut self.groups_of(Category::Attribute(attribute));
        groups.all(|group| group.filters.iter().any(|filter| filter.matches(value)))
    }

    /// Whether an event of that user passes the filters on users.
    pub fn match_user(&self, user: Option<UserHash>) -> bool {
        let groups = &mut self.groups_of(Category::User);
        groups.all(|group| group.filters.iter().any(|filter| filter.matches_user(user)))
    }

    /// Whether an event passes.
    pub fn matches(&self, attributes: &Attributes) -> bool {
        self.groups.iter().all(|group| {
            group.filters.iter().any(|filter| match &filter.0 {
                Condition::Attribute(attribute, test) => test.matches(attributes.get(*attribute)),
                Condition::User(test) => test.matches(attributes.user()),
            })
        })
    }

    fn groups_of(&self, category: Category) -> impl Iterator<Item = &Alternatives> {
        self.groups.iter().filter(move |group| group.category == category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(filters: &Value) -> Result<EventFilters, Vec<(String, ViolationCode)>> {
        let text = filters.to_string();
        let json = Json::parse(&text, 8).unwrap();
        let mut violations = Violations::default();
        let path = JsonPath::Root.member("filters");
        let read = EventFilters::read(&json, &path, &mut violations);
        violations.into_result(read).map_err(|violations| {
            violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
        })
    }

    fn filters(filters: &[[&str; 3]]) -> EventFilters {
        let filters = filters.iter().map(|[category, operator, value]| {
            json!({"categoryId": category, "operator": operator, "value": value})
        });
        read(&Value::Array(filters.collect())).unwrap()
    }

    fn event(values: &[(&str, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        for (name, value) in values {
            attributes.set(Attribute::parse(name).unwrap(), Some((*value).to_owned()));
        }
        attributes
    }

    #[test]
    fn each_operator_means_what_its_name_says() {
        let cases = [
            ("is", "Chrome", [true, false, false, false, false]),
            ("is_not", "Chrome", [false, true, true, true, true]),
            ("contains", "CHROME", [true, true, true, false, false]),
            ("not_contains", "chrome", [false, false, false, true, true]),
            ("is_set", "", [true, true, true, true, false]),
            ("is_not_set", "", [false, false, false, false, true]),
        ];
        let values = [Some("Chrome"), Some("chrome"), Some("Chrome Mobile"), Some("Firefox"), None];
        for (operator, value, expected) in cases {
            let filters = filters(&[["browser", operator, value]]);
            let found = values.map(|value| filters.match_value(Attribute::Browser, value));
            assert_eq!(found, expected, "{operator}");
        }
    }

    #[test]
    fn is_compares_bytes() {
        let composed = filters(&[["transaction", "is", "/caf\u{e9}"]]);
        assert!(composed.match_value(Attribute::Transaction, Some("/caf\u{e9}")));
        assert!(!composed.match_value(Attribute::Transaction, Some("/cafe\u{301}")));
        assert!(!composed.match_value(Attribute::Transaction, Some("/caf\u{e9} ")));
    }

    #[test]
    fn is_and_contains_of_one_attribute_are_alternatives() {
        let filters = filters(&[
            ["browser", "is", "Chrome"],
            ["browser", "contains", "fox"],
            ["browser", "is", "Safari"],
        ]);
        for (browser, passes) in
            [("Chrome", true), ("Firefox", true), ("Safari", true), ("Edge", false)]
        {
            assert_eq!(filters.matches(&event(&[("browser", browser)])), passes, "{browser}");
        }
        assert!(!filters.matches(&event(&[])));
    }

    #[test]
    fn all_negative_filters_must_hold() {
        let filters = filters(&[
            ["browser", "is_not", "Chrome"],
            ["browser", "not_contains", "fox"],
            ["browser", "is_not", "Safari"],
        ]);
        for (browser, passes) in
            [("Chrome", false), ("Firefox", false), ("Safari", false), ("Edge", true)]
        {
            assert_eq!(filters.matches(&event(&[("browser", browser)])), passes, "{browser}");
        }
        assert!(filters.matches(&event(&[])));
    }

    #[test]
    fn filters_on_different_attributes_must_all_hold() {
        let filters = filters(&[["browser", "is", "Chrome"], ["os", "is", "Android"]]);
        assert!(filters.matches(&event(&[("browser", "Chrome"), ("os", "Android")])));
        assert!(!filters.matches(&event(&[("browser", "Chrome"), ("os", "Windows")])));
        assert!(!filters.matches(&event(&[("os", "Android")])));
    }

    #[test]
    fn positive_and_negative_filters_on_one_attribute_must_both_hold() {
        let filters = filters(&[
            ["release", "contains", "2."],
            ["release", "is_not", "2.0.1"],
            ["release", "is_set", ""],
        ]);
        assert!(filters.matches(&event(&[("release", "2.0.0")])));
        assert!(!filters.matches(&event(&[("release", "2.0.1")])));
        assert!(!filters.matches(&event(&[("release", "1.0.0")])));
    }

    #[test]
    fn tells_which_attributes_it_needs() {
        let filters = filters(&[["os", "is", "a"], ["browser", "is", "b"], ["os", "is_not", "c"]]);
        let names: Vec<&str> = filters.attributes().map(Attribute::name).collect();
        assert_eq!(names, ["browser", "os"]);
        assert!(!filters.is_empty());
        assert!(EventFilters::new(Vec::new()).is_empty());
        assert!(EventFilters::default().matches(&event(&[])));
    }

    #[test]
    fn every_attribute_is_a_category() {
        for attribute in Attribute::ALL {
            let filters = filters(&[[attribute.name(), "is", "x"]]);
            assert_eq!(filters.attributes().collect::<Vec<_>>(), [attribute]);
        }
    }

    #[test]
    fn every_fault_is_told_at_its_place() {
        let body = json!([
            {"categoryId": "browser", "operator": "is", "value": "Chrome"},
            {"categoryId": "uri", "operator": "starts_with", "value": "x"},
            {"categoryId": "level", "operator": "gt", "value": "1"},
            {"categoryId": "level", "operator": "is", "value": ["a"]},
            {"operator": "is_set", "value": "x", "not": true},
            {"categoryId": "Browser", "operator": null, "value": 1},
            "browser:Chrome",
        ]);
        let expected = [
            ("/filters/1/categoryId", ViolationCode::InvalidValue),
            ("/filters/1/operator", ViolationCode::InvalidValue),
            ("/filters/2/operator", ViolationCode::InvalidValue),
            ("/filters/3/value", ViolationCode::InvalidType),
            ("/filters/4/not", ViolationCode::UnknownField),
            ("/filters/4/categoryId", ViolationCode::Required),
            ("/filters/4/value", ViolationCode::InvalidValue),
            ("/filters/5/categoryId", ViolationCode::InvalidValue),
            ("/filters/5/operator", ViolationCode::Required),
            ("/filters/5/value", ViolationCode::InvalidType),
            ("/filters/6", ViolationCode::InvalidType),
        ];
        let expected = expected.map(|(pointer, code)| (pointer.to_owned(), code));
        assert_eq!(read(&body).unwrap_err(), expected);
    }

    #[test]
    fn numeric_operators_are_refused_at_the_operator() {
        for operator in Operator::NUMERIC {
            let body = json!([{"categoryId": "release", "operator": operator, "value": "2"}]);
            let expected = [("/filters/0/operator".to_owned(), ViolationCode::InvalidValue)];
            assert_eq!(read(&body).unwrap_err(), expected, "{operator}");
        }
    }

    #[test]
    fn a_user_is_found_by_the_identity_that_was_sent() {
        let of = |identity: &str| {
            let mut attributes = Attributes::default();
            attributes.set_user(UserHash::of(identity));
            attributes
        };
        let users = ["42", "alice@example.com", ""];
        for (operator, value, expected) in [
            ("is", "42", [true, false, false]),
            ("is_not", "42", [false, true, true]),
            ("is", "", [false, false, false]),
            ("is_not", "", [true, true, true]),
            ("is_set", "", [true, true, false]),
            ("is_not_set", "", [false, false, true]),
        ] {
            let filters = filters(&[["user", operator, value]]);
            assert!(filters.ask_for_user() && filters.attributes().next().is_none());
            assert_eq!(users.map(|user| filters.matches(&of(user))), expected, "{operator}");
            assert_eq!(
                users.map(|user| filters.match_user(UserHash::of(user))),
                expected,
                "{operator}"
            );
        }
        let both = filters(&[["user", "is", "42"], ["user", "is", "43"], ["user", "is_not", "43"]]);
        assert_eq!(["42", "43", "44"].map(|user| both.matches(&of(user))), [true, false, false]);
    }

    #[test]
    fn a_user_has_no_parts() {
        for operator in ["contains", "not_contains", "gt", "lte", "starts_with"] {
            let body = json!([{"categoryId": "user", "operator": operator, "value": "4"}]);
            let expected = [("/filters/0/operator".to_owned(), ViolationCode::InvalidValue)];
            assert_eq!(read(&body).unwrap_err(), expected, "{operator}");
        }
    }

    #[test]
    fn takes_at_most_20_filters() {
        let many =
            |count| json!(vec![json!({"categoryId": "os", "operator": "is", "value": "a"}); count]);
        assert!(read(&many(MAX_FILTERS)).is_ok());
        let expected = [("/filters".to_owned(), ViolationCode::TooManyItems)];
        assert_eq!(read(&many(MAX_FILTERS + 1)).unwrap_err(), expected);
    }
}

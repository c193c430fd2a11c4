//! The request and response of interpret-error-filters (`docs/semantics/error-filters.md`,
//! "Request").

use std::collections::HashSet;
use std::ops::Range;

use serde::Serialize;

use interpreter::{
    Category, Filter, Interpretation, Kind, MAX_VALUE_CHARACTERS, Operator, Request,
};
use shared::json::{
    FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, boolean, note_duplicates,
    text,
};
use shared::projects::named_project::NamedProject;
use shared::projects::project::IdOrSlug;
use shared::text::parse_text;

const MAX_QUERY_CHARACTERS: usize = 500;
const MAX_CATEGORIES: usize = 50;
/// Maximum values of all categories together.
const MAX_VALUES: usize = 2_000;
const MAX_CURRENT_FILTERS: usize = 50;

/// The request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The project whose errors are filtered.
    pub project: NamedProject,
    query: String,
    /// Number of white-space characters before the query.
    lead: usize,
    categories: Vec<Category>,
    current_filters: Vec<CurrentFilter>,
}

/// A filter before the query.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CurrentFilter {
    /// A filter on a category of the request.
    Known(Filter),
    /// A filter on another category, which no query can change.
    Foreign(WrittenFilter),
}

/// The response: the complete list of filters after the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterList {
    /// The remaining filters in their order, then the new ones.
    pub filters: Vec<WrittenFilter>,
    /// The explanation, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<Explanation>,
}

/// The words of the query that led to each filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Understood words, in query order.
    pub understood: Vec<Understood>,
    /// Words that have a meaning but led to nothing.
    pub ignored: Vec<Span>,
}

/// A part of the query as sent, in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Index of the first character, counted from 0.
    pub from: usize,
    /// Index after the last character.
    pub to: usize,
}

/// Some words and their filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Understood {
    /// The words.
    #[serde(flatten)]
    pub span: Span,
    /// Indexes of the filters in the list. Empty if the words only remove filters.
    pub filters: Vec<usize>,
}

/// A filter on the wire. A filter on an unknown category can have any operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenFilter {
    /// The id of the category.
    pub category_id: String,
    /// The comparison of values.
    pub operator: String,
    /// The value to compare with.
    pub value: String,
}

impl Question {
    /// Parses the body of interpret-error-filters.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let question = Self::noting(body, &mut violations);
        violations.into_result(question)
    }

    /// Parses the body, and adds its violations to the others of the request.
    pub fn noting(body: &Json<'_>, violations: &mut Violations) -> Option<Self> {
        Fields::read(body, &JsonPath::Root, violations, |fields, violations| {
            let project = fields.required("projectId", violations, text(parse_project));
            let query = fields.required("query", violations, text(parse_query));
            let categories = fields.required("categories", violations, read_categories);
            let ids = category_ids(fields.get("categories"));
            let read_filter =
                |item: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
                    read_current_filter(item, path, &ids, violations)
                };
            let read_filters = array(MAX_CURRENT_FILTERS, read_filter);
            let current_filters = fields.required("currentFilters", violations, read_filters);
            Some(Self {
                project: project?,
                query: query?,
                lead: white_space_before(fields.get("query")),
                categories: categories?,
                current_filters: current_filters?,
            })
        })
    }

    /// Returns the input of the interpreter, without the filters that no query can change.
    pub fn request(&self) -> Request {
        let known = |filter: &CurrentFilter| match filter {
            CurrentFilter::Known(filter) => Some(filter.clone()),
            CurrentFilter::Foreign(_) => None,
        };
        Request {
            query: self.query.clone(),
            categories: self.categories.clone(),
            current_filters: self.current_filters.iter().filter_map(known).collect(),
        }
    }

    /// Returns the response with these filters. Filters that no query can change keep their places
    /// among the current filters that stay.
    pub fn response(&self, filters: Vec<Filter>) -> FilterList {
        let mut interpreted = filters.into_iter().peekable();
        let mut list = Vec::new();
        for current in &self.current_filters {
            match current {
                CurrentFilter::Known(filter) => {
                    list.extend(interpreted.next_if_eq(filter).map(WrittenFilter::from));
                }
                CurrentFilter::Foreign(filter) if list.contains(filter) => {}
                CurrentFilter::Foreign(filter) => list.push(filter.clone()),
            }
        }
        list.extend(interpreted.map(WrittenFilter::from));
        FilterList { filters: list, interpretation: None }
    }

    /// Returns the explanation of a response's filters.
    pub fn explain(&self, interpretation: &Interpretation, response: &FilterList) -> Explanation {
        let place = |filter: &Filter| {
            let written = WrittenFilter::from(filter.clone());
            response.filters.iter().position(|other| *other == written)
        };
        let understood = interpretation.understood.iter().map(|part| {
            let mut filters: Vec<usize> = part.filters.iter().filter_map(place).collect();
            filters.sort_unstable();
            filters.dedup();
            Understood { span: self.span(&part.span), filters }
        });
        let ignored = interpretation.ignored.iter().map(|bytes| self.span(bytes));
        Explanation { understood: understood.collect(), ignored: ignored.collect() }
    }

    fn span(&self, bytes: &Range<usize>) -> Span {
        let characters = |end: usize| {
            self.lead + self.query.get(..end).map_or(0, |before| before.chars().count())
        };
        Span { from: characters(bytes.start), to: characters(bytes.end) }
    }
}

impl From<Filter> for WrittenFilter {
    fn from(filter: Filter) -> Self {
        let operator = filter.operator.as_str().to_owned();
        Self { category_id: filter.category_id, operator, value: filter.value }
    }
}

#[allow(clippy::unnecessary_wraps)] // `text` requires a `Result`.
fn parse_project(written: &str) -> Result<NamedProject, FieldError> {
    Ok(NamedProject { written: written.to_owned(), name: IdOrSlug::parse(written) })
}

fn parse_query(query: &str) -> Result<String, FieldError> {
    parse_nonempty(query.trim(), MAX_QUERY_CHARACTERS)
}

fn white_space_before(query: Option<&Json<'_>>) -> usize {
    match query {
        Some(Json::String(query)) => query.chars().take_while(|it| it.is_whitespace()).count(),
        _ => 0,
    }
}

/// Parses the query parameter `explain`.
pub fn parse_explain(text: &str) -> Result<bool, FieldError> {
    text.parse().map_err(|_| FieldError::new(ViolationCode::InvalidValue, "must be true or false"))
}

fn parse_id(id: &str) -> Result<String, FieldError> {
    parse_nonempty(id, MAX_VALUE_CHARACTERS)
}

fn parse_nonempty(text: &str, most: usize) -> Result<String, FieldError> {
    if text.is_empty() {
        return Err(FieldError::new(ViolationCode::TooShort, "must have at least 1 character"));
    }
    parse_text(text, most)
}

fn parse_short_text(text: &str) -> Result<String, FieldError> {
    parse_text(text, MAX_VALUE_CHARACTERS)
}

fn parse_operator(name: &str) -> Result<Operator, FieldError> {
    Operator::parse(name).ok_or_else(|| {
        let known = Operator::ALL.map(Operator::as_str).join(", ");
        FieldError::new(ViolationCode::InvalidValue, format_args!("must be one of {known}"))
    })
}

fn read_categories(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<Category>> {
    let categories = array(MAX_CATEGORIES, read_category)(json, path, violations);
    let id_of = |category: &Json<'_>| category.member_text("id").map(str::to_owned);
    note_duplicates(json, path, MAX_CATEGORIES, Some("id"), id_of, violations);
    // Values are counted as sent, also in categories with other violations.
    let values = match json {
        Json::Array(categories) => categories.iter().map(count_values).sum(),
        _ => 0,
    };
    if values > MAX_VALUES {
        let message = format_args!(
            "the categories have {values} values together; at most {MAX_VALUES} are allowed"
        );
        violations.note(path, ViolationCode::TooManyItems, message);
        return None;
    }
    categories
}

fn count_values(category: &Json<'_>) -> usize {
    match category.member("values") {
        Some(Json::Array(values)) => values.len(),
        _ => 0,
    }
}

fn read_category(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Category> {
    Fields::read(json, path, violations, |fields, violations| {
        let id = fields.required("id", violations, text(parse_id));
        let label = fields.required("label", violations, text(parse_short_text));
        let values =
            fields.optional("values", violations, array(usize::MAX, read_value)).or_default();
        let mut flag = |name: &'static str| fields.optional(name, violations, boolean).or_default();
        let (is_numeric, is_boolean, is_array) =
            (flag("isNumeric"), flag("isBoolean"), flag("isArray"));
        Some(Category {
            id: id?,
            label: label?,
            values: values?,
            kind: Kind::from_flags(is_numeric?, is_boolean?, is_array?),
        })
    })
}

fn read_value(json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations) -> Option<String> {
    text(parse_short_text)(json, path, violations)
}

/// Returns the ids of all categories as sent, also of those with other violations. So the operators
/// of current filters are checked in the same response.
fn category_ids<'j>(categories: Option<&'j Json<'_>>) -> HashSet<&'j str> {
    let Some(Json::Array(categories)) = categories else { return HashSet::new() };
    categories.iter().filter_map(|category| category.member_text("id")).collect()
}

fn read_current_filter(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    category_ids: &HashSet<&str>,
    violations: &mut Violations,
) -> Option<CurrentFilter> {
    Fields::read(json, path, violations, |fields, violations| {
        let category_id = fields.required("categoryId", violations, text(parse_short_text));
        if json.member_text("categoryId").is_some_and(|id| category_ids.contains(id)) {
            let operator = fields.required("operator", violations, text(parse_operator));
            let value = fields.required("value", violations, text(parse_short_text));
            let (category_id, operator, value) = (category_id?, operator?, value?);
            return Some(CurrentFilter::Known(Filter { category_id, operator, value }));
        }
        let operator = fields.required("operator", violations, text(parse_short_text));
        let value = fields.required("value", violations, text(parse_short_text));
        let (category_id, operator, value) = (category_id?, operator?, value?);
        Some(CurrentFilter::Foreign(WrittenFilter { category_id, operator, value }))
    })
}

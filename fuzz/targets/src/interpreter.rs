//! The interpreter of error filters: for any request, the response is deterministic and valid for
//! the request.

use interpreter::{Category, Filter, Kind, Operator, Request, interpret, valid_filters};

/// Maximum query length (`docs/semantics/error-filters.md`, "Request"), and maximum numbers of
/// other inputs.
const QUERY_CHARACTERS: usize = 500;
const CATEGORIES: usize = 8;
const VALUES: usize = 12;
const FILTERS: usize = 5;

/// Parses a request. The first line is the query. Other lines are a category (kind, label, values)
/// or, after `=`, a filter (category number, operator, value), with `|` as separator.
fn request(text: &str) -> Request {
    let mut lines = text.lines();
    let query = lines.next().unwrap_or_default().trim().chars().take(QUERY_CHARACTERS).collect();
    let (mut categories, mut current_filters) = (Vec::new(), Vec::new());
    for line in lines {
        let mut parts = line.split('|').map(|part| part.chars().take(100).collect::<String>());
        let first = parts.next().unwrap_or_default();
        if let Some(category) = first.strip_prefix('=') {
            if current_filters.len() < FILTERS {
                let operator = parts.next().and_then(|name| Operator::parse(&name));
                current_filters.push(Filter {
                    category_id: format!("c{category}"),
                    operator: operator.unwrap_or(Operator::Is),
                    value: parts.next().unwrap_or_default(),
                });
            }
        } else if categories.len() < CATEGORIES {
            categories.push(Category {
                id: format!("c{}", categories.len()),
                label: parts.next().unwrap_or_default(),
                values: parts.take(VALUES).collect(),
                kind: match first.as_str() {
                    "n" => Kind::Numeric,
                    "b" => Kind::Boolean,
                    "a" => Kind::Array,
                    _ => Kind::Text,
                },
            });
        }
    }
    Request { query, categories, current_filters }
}

pub(crate) fn interpreter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let request = request(text);
    if request.query.is_empty() {
        return;
    }
    let response = interpret(&request);
    assert_eq!(interpret(&request), response, "interpretation is not deterministic");
    for (at, filter) in response.filters.iter().enumerate() {
        assert!(!response.filters[..at].contains(filter), "duplicate: {filter:?}");
        let is_known = request.categories.iter().any(|it| it.id == filter.category_id);
        assert!(is_known || request.current_filters.contains(filter), "{filter:?}");
    }
    let valid = valid_filters(&request, response.filters.clone());
    assert_eq!(valid, response.filters, "a filter is invalid");
    for filter in &request.current_filters {
        let is_known = request.categories.iter().any(|it| it.id == filter.category_id);
        assert!(is_known || response.filters.contains(filter), "lost: {filter:?}");
    }
    let spans = response.understood.iter().map(|part| &part.span).chain(&response.ignored);
    for span in spans {
        assert!(request.query.get(span.clone()).is_some_and(|words| !words.is_empty()), "{span:?}");
    }
}

//! The interpreter of error filters: whatever is asked, the answer is valid against what was asked, and always
//! the same.

use interpreter::{Category, Filter, Kind, Operator, Request, interpret, valid_filters};

/// The longest query (`docs/semantics/error-filters.md`, "Request"), and how many of all else is tried.
const QUERY_CHARACTERS: usize = 500;
const CATEGORIES: usize = 8;
const VALUES: usize = 12;
const FILTERS: usize = 5;

/// The first line is the query, each other a category: its kind, its label, its values; or after `=` a filter: its
/// category's number, its operator, its value; all of them apart by `|`.
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
    let answer = interpret(&request);
    assert_eq!(interpret(&request), answer, "the same each time");
    for (at, filter) in answer.filters.iter().enumerate() {
        assert!(!answer.filters[..at].contains(filter), "twice: {filter:?}");
        let is_known = request.categories.iter().any(|it| it.id == filter.category_id);
        assert!(is_known || request.current_filters.contains(filter), "{filter:?}");
    }
    let valid = valid_filters(&request, answer.filters.clone());
    assert_eq!(valid, answer.filters, "all of it is valid");
    for filter in &request.current_filters {
        let is_known = request.categories.iter().any(|it| it.id == filter.category_id);
        assert!(is_known || answer.filters.contains(filter), "lost: {filter:?}");
    }
    let spans = answer.understood.iter().map(|part| &part.span).chain(&answer.ignored);
    for span in spans {
        assert!(request.query.get(span.clone()).is_some_and(|words| !words.is_empty()), "{span:?}");
    }
}

//! Projects in queries.

use std::collections::HashSet;

use crate::json::{Json, JsonPath, ViolationCode, Violations, array, text};
use crate::projects::project::IdOrSlug;

const MAX_PROJECTS: usize = 50;

/// A project in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProject {
    /// The name as written, for the message that there is no such project.
    pub written: String,
    /// The id or slug, or `None` for a text that cannot name a project.
    pub name: Option<IdOrSlug>,
}

/// Reads the field `projectIds` of a query: 1 to 50 projects. Duplicates count once.
pub fn read_projects(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<NamedProject>> {
    // A value that is not a text becomes a violation, and does not count as a project.
    let read_name = |json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        Some(text(|name| Ok(name.to_owned()))(json, path, violations))
    };
    let written = array(usize::MAX, read_name)(json, path, violations)?;
    let all_are_texts = written.iter().all(Option::is_some);
    // Duplicates count once, also towards the limit.
    let mut seen = HashSet::new();
    let mut projects = Vec::new();
    for written in written.into_iter().flatten() {
        let name = IdOrSlug::parse(&written);
        let identity = name.as_ref().map_or_else(|| written.clone(), IdOrSlug::to_string);
        if seen.insert(identity) {
            projects.push(NamedProject { written, name });
        }
    }
    if projects.is_empty() && all_are_texts {
        violations.note(path, ViolationCode::TooFewItems, "at least one project is required");
        return None;
    }
    if projects.len() > MAX_PROJECTS {
        let count = projects.len();
        let message = format_args!("has {count} projects; at most {MAX_PROJECTS} are allowed");
        violations.note(path, ViolationCode::TooManyItems, message);
        return None;
    }
    all_are_texts.then_some(projects)
}

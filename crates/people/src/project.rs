//! Projects that callers create, change and delete (`docs/semantics/people.md`, "Projects").

use shared::json::{FieldError, Fields, Json, ViolationCode, Violations, boolean, number, text};
use shared::projects::limits::Limit;
use shared::projects::project::{ProjectName, ProjectPatch, Slug};
use shared::text::parse_label;

/// Most characters of a project's name.
const MAX_NAME: usize = 200;

/// The body of create-project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDraft {
    /// The name for people.
    pub name: ProjectName,
    /// The name in paths.
    pub slug: Slug,
    /// `true` if the project serves users.
    pub production: bool,
}

impl ProjectDraft {
    /// Reads the body of create-project.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let name = fields.required("name", violations, text(parse_name));
            let slug = fields.required("slug", violations, text(parse_slug));
            let production = fields.optional("production", violations, boolean).or_default();
            Some(Self { name: name?, slug: slug?, production: production? })
        })
    }
}

/// Reads the body of update-project, a JSON Merge Patch (RFC 7396). `null` resets a limit
/// and `production`.
pub fn read_project_patch(body: &Json<'_>) -> Result<ProjectPatch, Violations> {
    Fields::of_body(body, |fields, violations| {
        let name = fields.patched("name", violations, text(parse_name));
        let mut limit = |limit: Limit| {
            let value = fields.optional(limit.as_str(), violations, number(parse_limit));
            let value = value.map(Some).or_reset_to(None)?;
            Some(value.map(|value| (limit, value)))
        };
        let events_per_minute = limit(Limit::EventsPerMinute);
        let requests_per_minute = limit(Limit::RequestsPerMinute);
        let production = fields.optional("production", violations, boolean).or_reset_to(false);
        Some(ProjectPatch {
            name: name?,
            limits: events_per_minute?.into_iter().chain(requests_per_minute?).collect(),
            production: production?,
        })
    })
}

/// The body of delete-project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDeletion {
    confirm: String,
}

impl ProjectDeletion {
    /// Reads the body of delete-project.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let any = |slug: &str| Ok(slug.to_owned());
            Some(Self { confirm: fields.required("confirm", violations, text(any))? })
        })
    }

    /// Fails unless the body confirms the project with this slug.
    pub fn check(&self, slug: &Slug) -> Result<(), Violations> {
        if self.confirm == slug.as_str() {
            return Ok(());
        }
        let message = "must be the slug of the project in the path";
        Err(Violations::of_field("confirm", ViolationCode::InvalidValue, message))
    }
}

fn parse_name(text: &str) -> Result<ProjectName, FieldError> {
    let name = parse_label(text, 1, MAX_NAME)?;
    ProjectName::parse(&name).map_err(|error| FieldError::new(ViolationCode::InvalidFormat, error))
}

fn parse_slug(text: &str) -> Result<Slug, FieldError> {
    Slug::parse(text).map_err(|error| FieldError::new(ViolationCode::InvalidFormat, error))
}

fn parse_limit(written: &str) -> Result<u32, FieldError> {
    written.parse().map_err(|_| {
        let message = format_args!("must be a whole number from 0 to {}", u32::MAX);
        FieldError::new(ViolationCode::OutOfRange, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers<T>(read: Result<T, Violations>) -> Vec<String> {
        let violations = read.map(drop).unwrap_err();
        let listed = violations.listed();
        let pointer = |it| serde_json::to_value(it).unwrap()["pointer"].as_str().map(str::to_owned);
        listed.iter().filter_map(pointer).collect()
    }

    fn json(text: &str) -> Json<'_> {
        Json::parse(text, 32).unwrap()
    }

    #[test]
    fn invalid_drafts_are_rejected() {
        let draft = ProjectDraft::read(&json(r#"{"name": " Shop ", "slug": "shop"}"#)).unwrap();
        assert_eq!((draft.name.as_str(), draft.slug.as_str()), ("Shop", "shop"));
        let wrong = ProjectDraft::read(&json(r#"{"name": " ", "slug": "Shop"}"#));
        assert_eq!(pointers(wrong), ["/name", "/slug"]);
    }

    #[test]
    fn null_resets_limits_but_not_names() {
        let patch = read_project_patch(&json(r#"{"eventsPerMinute": null}"#)).unwrap();
        let limits = [(Limit::EventsPerMinute, None)].into();
        let reset = ProjectPatch { limits, ..ProjectPatch::default() };
        assert_eq!(patch, reset);
        let patch = read_project_patch(&json(r#"{"requestsPerMinute": 0}"#)).unwrap();
        assert_eq!(patch.limits, [(Limit::RequestsPerMinute, Some(0))].into());
        for limit in ["-1", "4294967296", "1.5", "1e3"] {
            let body = format!(r#"{{"eventsPerMinute": {limit}, "name": null}}"#);
            let rejected = read_project_patch(&json(&body));
            assert_eq!(pointers(rejected), ["/name", "/eventsPerMinute"], "{limit}");
        }
        for (value, production) in [("true", true), ("false", false), ("null", false)] {
            let patch = read_project_patch(&json(&format!(r#"{{"production": {value}}}"#)));
            assert_eq!(patch.map(|patch| patch.production), Ok(Some(production)), "{value}");
        }
        let wrong = ProjectDraft::read(&json(r#"{"name": "a", "slug": "a", "production": 1}"#));
        assert_eq!(pointers(wrong), ["/production"]);
    }

    #[test]
    fn deletions_repeat_the_slug() {
        let slug = Slug::parse("shop").unwrap();
        let deletion = |text| ProjectDeletion::read(&json(text)).unwrap();
        assert!(deletion(r#"{"confirm": "shop"}"#).check(&slug).is_ok());
        assert_eq!(pointers(deletion(r#"{"confirm": "Shop"}"#).check(&slug)), ["/confirm"]);
        assert_eq!(pointers(ProjectDeletion::read(&json("{}"))), ["/confirm"]);
    }
}

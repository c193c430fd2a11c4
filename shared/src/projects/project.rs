//! Projects, and their names in requests.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::NoRandomness;
use super::dsn::{Dsn, IngestId, PublicKey};
use super::limits::{Limit, Limits};
use crate::timestamp::Timestamp;
use crate::uuid_type;

uuid_type! {
    /// The identifier of a project, displayed in lower case.
    ProjectId, parse_uuid
}

/// A project's readable name in paths: lower-case letters, digits and inner hyphens, at most 63
/// characters, never in the form of a UUID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Slug(String);

/// A text that is not a slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a slug has 1 to 63 lower-case letters, digits and hyphens, no hyphen at either end, and is \
     not in the form of a UUID"
)]
pub struct NotASlug;

impl Slug {
    /// Parses a slug.
    pub fn parse(text: &str) -> Result<Self, NotASlug> {
        let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let valid = bytes.len() <= 63
            && bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
            && ProjectId::parse(text).is_none();
        valid.then(|| Self(text.to_owned())).ok_or(NotASlug)
    }
}

crate::text_type!(Slug);

/// The name of a project in a request: its id or its slug. The two never look alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IdOrSlug {
    /// The project's id.
    Id(ProjectId),
    /// The project's slug.
    Slug(Slug),
}

impl IdOrSlug {
    /// Parses an id or a slug. Other texts name no project.
    pub fn parse(text: &str) -> Option<Self> {
        match ProjectId::parse(text) {
            Some(id) => Some(Self::Id(id)),
            None => Slug::parse(text).ok().map(Self::Slug),
        }
    }
}

impl fmt::Display for IdOrSlug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(formatter),
            Self::Slug(slug) => slug.fmt(formatter),
        }
    }
}

/// The organization that owns projects and keys: 1 to 64 letters, digits, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Organization(String);

/// A text that is not an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an organization has 1 to 64 letters, digits, `.`, `_` and `-`")]
pub struct NotAnOrganization;

impl Organization {
    /// Parses an organization's name.
    pub fn parse(text: &str) -> Result<Self, NotAnOrganization> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let valid = (1..=64).contains(&text.len()) && text.bytes().all(allowed);
        valid.then(|| Self(text.to_owned())).ok_or(NotAnOrganization)
    }
}

crate::text_type!(Organization);

/// The name of a project for people: 1 to 200 characters after trimming, none of them a control
/// character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectName(String);

/// A text that is not a project name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a project name has 1 to 200 characters and no control characters")]
pub struct NotAProjectName;

impl ProjectName {
    /// Parses and trims a name.
    pub fn parse(text: &str) -> Result<Self, NotAProjectName> {
        let name = text.trim();
        let valid =
            (1..=200).contains(&name.chars().count()) && !name.chars().any(char::is_control);
        valid.then(|| Self(name.to_owned())).ok_or(NotAProjectName)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// The identifier.
    pub id: ProjectId,
    /// The readable name in paths, unique across all organizations.
    pub slug: Slug,
    /// The name for people.
    pub name: ProjectName,
    /// The organization that owns the project.
    pub organization: Organization,
    /// The numeric id with which the project receives errors.
    pub ingest_id: IngestId,
    /// The key with which SDKs send errors.
    pub public_key: PublicKey,
    /// The project's own limits.
    #[serde(flatten)]
    pub limits: Limits,
    /// `true` if the project serves users, so the console confirms dangerous changes.
    pub production: bool,
    /// Creation time.
    pub created_at: Timestamp,
}

/// A change of a project. `None` keeps the current value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectPatch {
    /// The new name.
    pub name: Option<ProjectName>,
    /// The changed limits; `None` is the stack's limit.
    pub limits: BTreeMap<Limit, Option<u32>>,
    /// `true` if the project serves users.
    pub production: Option<bool>,
}

impl ProjectPatch {
    /// Returns the project with the change applied.
    pub fn apply(&self, project: &Project) -> Project {
        let limits = self.limits.iter();
        Project {
            name: self.name.as_ref().unwrap_or(&project.name).clone(),
            limits: limits.fold(project.limits, |all, (limit, value)| all.with(*limit, *value)),
            production: self.production.unwrap_or(project.production),
            ..project.clone()
        }
    }
}

impl Project {
    /// Creates a project with a random ingest id and key.
    pub fn new(
        id: ProjectId,
        slug: Slug,
        name: ProjectName,
        organization: Organization,
        created_at: Timestamp,
    ) -> Result<Self, NoRandomness> {
        let (ingest_id, public_key) = (IngestId::generate()?, PublicKey::generate()?);
        let limits = Limits::default();
        let production = false;
        Ok(Self {
            id,
            slug,
            name,
            organization,
            ingest_id,
            public_key,
            limits,
            production,
            created_at,
        })
    }

    /// Returns the DSN to which SDKs send the project's errors, if the API is at `base_url`.
    pub fn dsn(&self, base_url: &str) -> Dsn {
        Dsn::new(base_url, self.public_key, self.ingest_id)
    }
}

/// The fields of a project that callers see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectSummary {
    /// The identifier.
    pub id: ProjectId,
    /// The readable name in paths.
    pub slug: Slug,
    /// The name for people.
    pub name: ProjectName,
    /// `true` if the project serves users.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub production: bool,
}

impl From<Project> for ProjectSummary {
    fn from(Project { id, slug, name, production, .. }: Project) -> Self {
        Self { id, slug, name, production }
    }
}

/// The fields of a project that callers see, with both parts of its DSN. Only callers know the
/// API's address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedProject {
    /// The identifier and names.
    #[serde(flatten)]
    pub summary: ProjectSummary,
    /// The numeric id with which the project receives errors.
    pub ingest_id: IngestId,
    /// The key with which SDKs send errors.
    pub public_key: PublicKey,
    /// The project's own limit of error events per minute.
    pub events_per_minute: Option<u32>,
    /// The project's own limit of requests per minute.
    pub requests_per_minute: Option<u32>,
}

impl From<Project> for ListedProject {
    fn from(project: Project) -> Self {
        let Project { ingest_id, public_key, limits, .. } = project;
        let [events_per_minute, requests_per_minute] =
            [Limit::EventsPerMinute, Limit::RequestsPerMinute].map(|limit| limits.get(limit));
        let summary = project.into();
        Self { summary, ingest_id, public_key, events_per_minute, requests_per_minute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_letters_digits_and_inner_hyphens() {
        for text in ["a", "7", "a-b", "a--b", &"a".repeat(63), "018f"] {
            assert_eq!(Slug::parse(text).map(|slug| slug.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "",
            "-a",
            "a-",
            "A",
            "a_b",
            "a.b",
            "a/b",
            "ä",
            "a b",
            "..",
            &"a".repeat(64),
            "019aa000-0000-7000-8000-00000000000a",
        ] {
            assert_eq!(Slug::parse(text), Err(NotASlug), "{text:?}");
        }
    }

    #[test]
    fn ids_and_slugs_are_distinguished() {
        let id = "019AA000-0000-7000-8000-00000000000A";
        let parsed = IdOrSlug::parse(id);
        assert!(matches!(parsed, Some(IdOrSlug::Id(_))));
        assert_eq!(parsed.map(|p| p.to_string()), Some(id.to_lowercase()));
        assert!(matches!(IdOrSlug::parse("my-project"), Some(IdOrSlug::Slug(_))));
        // 32 hexadecimal digits are a slug; a UUID in braces or as a URN is neither.
        assert!(matches!(IdOrSlug::parse(&"a".repeat(32)), Some(IdOrSlug::Slug(_))));
        for text in ["", "My-Project", "{019aa000-0000-7000-8000-00000000000a}", "a%2Fb", "a\0"] {
            assert_eq!(IdOrSlug::parse(text), None, "{text:?}");
        }
    }
}

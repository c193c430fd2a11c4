//! API keys that callers create and list (`docs/semantics/people.md`, "API keys").

use std::collections::BTreeSet;

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, text};
use shared::projects::api_key::{ApiKeyRecord, KeyId, Scope, UserId};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::projects::project::ProjectId;
use shared::text::{parse_label, parse_time};
use shared::timestamp::Timestamp;

/// Most characters of a key's name.
const MAX_NAME: usize = 200;
/// Most scopes in a body, repeated ones included.
const MAX_SCOPES: usize = 100;
/// The name of all scopes but those that administer people, keys and projects.
const ALL: &str = "all";

/// The body of create-api-key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyDraft {
    /// The name.
    pub name: String,
    /// The scopes.
    pub scopes: BTreeSet<Scope>,
    /// The projects; `None` for all of the organization.
    pub projects: Option<Vec<NamedProject>>,
    /// The expiry.
    pub expires_at: Option<Timestamp>,
}

impl ApiKeyDraft {
    /// Reads the body of create-api-key at `now`. A key cannot outlive `expiry`, that of the
    /// caller's own key.
    pub fn read(
        body: &Json<'_>,
        now: Timestamp,
        expiry: Option<Timestamp>,
    ) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let name = fields.required("name", violations, text(read_key_name));
            let scopes = fields.required("scopes", violations, read_scopes);
            let projects = fields.optional("projects", violations, read_projects);
            let parse_expiry = |text: &str| parse_expiry(text, now);
            let ends = fields.optional("expiresAt", violations, text(parse_expiry));
            let expires_at = ends.map(Some).or_default();
            if let (Some(ends), Some(limit)) = (expires_at, expiry)
                && ends.is_none_or(|ends| ends > limit)
            {
                let message =
                    format_args!("the caller's key ends at {limit}, and so must this one");
                let path = JsonPath::Root;
                violations.note(&path.member("expiresAt"), ViolationCode::OutOfRange, message);
                return None;
            }
            Some(Self {
                name: name?,
                scopes: scopes?,
                projects: projects.map(Some).or_default()?,
                expires_at: expires_at?,
            })
        })
    }
}

/// Parses the name of a key.
pub fn read_key_name(text: &str) -> Result<String, FieldError> {
    parse_label(text, 1, MAX_NAME)
}

fn read_scopes(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<BTreeSet<Scope>> {
    let scopes =
        array(MAX_SCOPES, |json, path, violations| text(parse_scopes)(json, path, violations))(
            json, path, violations,
        )?;
    if scopes.is_empty() {
        violations.note(path, ViolationCode::TooFewItems, "at least one scope is required");
        return None;
    }
    Some(scopes.into_iter().flatten().collect())
}

fn parse_scopes(name: &str) -> Result<BTreeSet<Scope>, FieldError> {
    if name == ALL {
        return Ok(Scope::of_keys());
    }
    let scope = name.parse::<Scope>();
    let scope = scope.map_err(|error| FieldError::new(ViolationCode::InvalidValue, error))?;
    Ok(BTreeSet::from([scope]))
}

fn parse_expiry(text: &str, now: Timestamp) -> Result<Timestamp, FieldError> {
    let ends = parse_time(text)?;
    if ends > now {
        return Ok(ends);
    }
    Err(FieldError::new(ViolationCode::OutOfRange, "must be in the future"))
}

/// A key as callers see it, without its secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedApiKey<'k> {
    key_id: &'k KeyId,
    name: &'k str,
    scopes: &'k BTreeSet<Scope>,
    projects: Option<&'k BTreeSet<ProjectId>>,
    created_by: Option<&'k UserId>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl<'k> ListedApiKey<'k> {
    /// Returns the key, with the time of its last request.
    pub fn new(key: &'k ApiKeyRecord, last_used_at: Option<Timestamp>) -> Self {
        Self {
            key_id: &key.key_id,
            name: &key.name,
            scopes: &key.scopes,
            projects: key.projects.as_ref(),
            created_by: key.member.map(|_| &key.user),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// A new key with its secret, which is shown once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedApiKey<'k> {
    /// The key without its secret.
    #[serde(flatten)]
    pub listed: ListedApiKey<'k>,
    /// The whole key.
    pub api_key: &'k str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_795_234_560_000 + seconds * 1_000)
    }

    fn read(body: &str, expiry: Option<Timestamp>) -> Result<ApiKeyDraft, Vec<String>> {
        let json = Json::parse(body, 32).unwrap();
        ApiKeyDraft::read(&json, at(0), expiry).map_err(|violations| {
            let listed = violations.listed();
            listed
                .iter()
                .map(|it| serde_json::to_value(it).unwrap()["pointer"].to_string())
                .collect()
        })
    }

    #[test]
    fn all_scopes_exclude_administration() {
        let draft = read(r#"{"name": " CI ", "scopes": ["all", "keys:write"]}"#, None).unwrap();
        assert_eq!(draft.name, "CI");
        assert!(draft.scopes.contains(&Scope::SourceMapsWrite));
        assert!(draft.scopes.contains(&Scope::KeysWrite));
        assert!(!draft.scopes.contains(&Scope::MembersWrite));
        assert!(!draft.scopes.contains(&Scope::MembersRead));
        assert_eq!((draft.projects, draft.expires_at), (None, None));
    }

    #[test]
    fn keys_cannot_outlive_their_creator() {
        let body = |expiry: &str| format!(r#"{{"name": "a", "scopes": ["all"]{expiry}}}"#);
        let ends = |seconds| body(&format!(r#", "expiresAt": "{}""#, at(seconds)));
        assert!(read(&ends(60), Some(at(60))).is_ok());
        for (body, expiry) in [
            (ends(61), Some(at(60))),
            (body(""), Some(at(60))),
            (body(r#", "expiresAt": null"#), Some(at(60))),
            (ends(0), None),
            (body(r#", "expiresAt": "tomorrow""#), None),
        ] {
            assert_eq!(read(&body, expiry), Err(vec!["\"/expiresAt\"".to_owned()]), "{body}");
        }
    }

    #[test]
    fn drafts_list_all_violations() {
        let all = Err(vec!["\"/name\"".to_owned(), "\"/scopes/1\"".to_owned()]);
        assert_eq!(read(r#"{"name": " ", "scopes": ["all", "root"]}"#, None), all);
        let none = Err(vec!["\"/name\"".to_owned(), "\"/scopes\"".to_owned()]);
        assert_eq!(read(r#"{"scopes": []}"#, None), none);
        assert_eq!(read("{}", None), none);
    }
}

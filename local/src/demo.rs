//! The demo project and its key, which are created once.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use markers::store::MarkerStore;
use notifications::store::NotificationStore;
use people::read_email;
use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use shared::app::{Clock, Ids};
use shared::dynamodb::{Store, StoreError};
use shared::projects::NoRandomness;
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope, UserId};
use shared::projects::member::{Member, MemberId};
use shared::projects::project::{IdOrSlug, Organization, Project, ProjectId, ProjectName, Slug};
use shared::projects::role::Role;
use shared::projects::store::ProjectCreation;

use crate::environment::open_private;

/// The slug of the demo project.
pub const SLUG: &str = "demo";

/// The reason why there is no demo data.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The tables cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key's file cannot be used.
    #[error("the demo key's file cannot be used: {0}")]
    File(#[from] io::Error),
    /// No key can be generated.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// A constant in this file is invalid.
    #[error("the demo data is not valid: {0}")]
    Invalid(String),
}

/// The demo project, and an API key for it.
#[derive(Debug)]
pub struct Demo {
    /// The project.
    pub project: Project,
    /// The text of an API key with all scopes.
    pub key: String,
}

/// Creates the demo project and an API key with all scopes, if missing. The tables have only a hash
/// of the key, so its text is kept in `file`, which only the owner can read.
pub async fn ensure(store: &Store, file: &Path) -> Result<Demo, DemoError> {
    let id = ensure_complete_project(store, SLUG, "Demo").await?;
    let project = store.read_project(id).await?;
    let project = project.ok_or_else(|| DemoError::Invalid("it was deleted".to_owned()))?;
    Ok(Demo { project, key: ensure_key(store, file).await? })
}

/// Address of the demo owner.
pub const OWNER: &str = "owner@demo.example";

/// Returns a link that signs in the owner of the default organization once, within ten minutes.
/// Adds the owner, if missing.
pub async fn sign_in_link(store: &Store, base_url: &str) -> Result<String, DemoError> {
    let now = Clock::System.now();
    let (user, organization) =
        (read_email(OWNER).map_err(|it| invalid(it.message))?, default_organization()?);
    let owner = Member {
        id: MemberId::new(Ids::Random.new_uuid(now)),
        organization: organization.clone(),
        user: user.clone(),
        role: Role::Owner,
        projects: None,
        joined_at: now,
        version: 1,
    };
    let people = PeopleStore::new(store);
    people.add_member(&owner, Vec::new()).await?;
    let (pending, token) = PendingSignIn::by_command(user, organization, now)?;
    people.put_sign_in(&pending).await?;
    Ok(format!("{base_url}/console/sign-in#token={}", token.reveal()))
}

async fn ensure_key(store: &Store, file: &Path) -> Result<String, DemoError> {
    if let Ok(text) = fs::read_to_string(file)
        && ApiKey::parse(text.trim()).is_some()
    {
        return Ok(text.trim().to_owned());
    }
    let key = create_key(store, |record| record).await?;
    let mut file = open_private(file)?;
    file.set_len(0)?;
    writeln!(file, "{key}")?;
    Ok(key)
}

/// Creates a project in the default organization, unless its slug exists. It has no event marker
/// collections.
pub async fn ensure_project(store: &Store, slug: &str, name: &str) -> Result<ProjectId, DemoError> {
    ensure_created(store, slug, name, |project: Project| async move {
        store.create_project(&project).await
    })
    .await
}

/// Creates a project in the default organization with automatic event marker collections, as
/// `waymark project create` does, unless its slug exists.
pub async fn ensure_complete_project(
    store: &Store,
    slug: &str,
    name: &str,
) -> Result<ProjectId, DemoError> {
    ensure_created(store, slug, name, |project: Project| async move {
        let new_id = || Ids::Random.new_uuid(project.created_at);
        let collections = MarkerStore::new(store).automatic_collections(&project, new_id)?;
        store.create_project_with(&project, collections, None).await
    })
    .await
}

async fn ensure_created<F: Future<Output = Result<ProjectCreation, StoreError>>>(
    store: &Store,
    slug: &str,
    name: &str,
    create: impl FnOnce(Project) -> F,
) -> Result<ProjectId, DemoError> {
    let now = Clock::System.now();
    let slug = Slug::parse(slug).map_err(invalid)?;
    let id = ProjectId::new(Ids::Random.new_uuid(now));
    let name = ProjectName::parse(name).map_err(invalid)?;
    let project = Project::new(id, slug.clone(), name, default_organization()?, now)?;
    if create(project).await? == ProjectCreation::Created {
        return Ok(id);
    }
    let found = store.find_project(&IdOrSlug::Slug(slug)).await?;
    found.map(|found| found.id).ok_or_else(|| DemoError::Invalid("the slug is taken".to_owned()))
}

/// Creates an API key in the default organization with all scopes, and returns its text. `adjust`
/// changes the record before it is stored.
pub async fn create_key(
    store: &Store,
    adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord,
) -> Result<String, DemoError> {
    let key = ApiKey::generate()?;
    let record = adjust(ApiKeyRecord {
        key_id: key.key_id().clone(),
        secret_hash: key.secret_hash(),
        organization: default_organization()?,
        user: UserId::parse("owner").map_err(invalid)?,
        name: String::new(),
        member: None,
        scopes: Scope::of_keys(),
        projects: None,
        created_at: Clock::System.now(),
        expires_at: None,
        revoked_at: None,
    });
    NotificationStore::new(store).create_api_key(&record, None, Vec::new()).await?;
    Ok(key.reveal())
}

fn default_organization() -> Result<Organization, DemoError> {
    Organization::parse("default").map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> DemoError {
    DemoError::Invalid(error.to_string())
}

//! Creates an API key for the caller's user. Only the response has its secret.

use notifications::store::NotificationStore;
use people::{ApiKeyDraft, CreatedApiKey, ListedApiKey, http};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::{Caller, Credential};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/api-keys",
    Access::ApiKey(Scope::KeysWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let expiry = match caller.credential() {
        Credential::Key { expires_at, .. } => *expires_at,
        Credential::Session(_) => None,
    };
    let draft = ApiKeyDraft::read(&incoming.json()?, now, expiry)?;
    if let Some(missing) = draft.scopes.difference(caller.scopes()).next() {
        return Err(Problem::insufficient_scope(missing));
    }
    let projects = match &draft.projects {
        None => {
            caller.require_all_projects()?;
            None
        }
        Some(named) => Some(http::projects_in(caller, named).await?),
    };

    // Rules.
    let key = ApiKey::generate().map_err(|error| Problem::internal(error.to_string()))?;
    let record = ApiKeyRecord {
        key_id: key.key_id().clone(),
        secret_hash: key.secret_hash(),
        organization: caller.organization().clone(),
        user: caller.user().clone(),
        name: draft.name,
        member: caller.member_id(),
        scopes: draft.scopes,
        projects,
        created_at: now,
        expires_at: draft.expires_at,
        revoked_at: None,
    };
    let api_key = &key.reveal();
    let created = CreatedApiKey { listed: ListedApiKey::new(&record, None), api_key };
    let response = ApiResponse::created(&format!("/v0/api-keys/{}", record.key_id), &created)?;

    // Storage and response.
    let target = AuditTarget::new("api_key", &record.key_id, &record.name);
    let entry = caller.audit(&app.ids, AuditAction::ApiKeyCreated, target);
    let more = vec![app.store.audit(&entry)?];
    let (notifications, browser) = (NotificationStore::new(&app.store), caller.browser());
    notifications.create_api_key(&record, browser.as_deref(), more).await?;
    Ok(response)
}

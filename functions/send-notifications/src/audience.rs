//! Recipients of emails, by their current preferences, addresses and keys.

use notifications::address::EmailAddress;
use notifications::domain_event::{DomainEventKind, Visibility};
use notifications::store::{NotificationStore, UserName};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::api_key::ApiKeyRecord;

/// A user with a confirmed address whose emails of a kind are on.
pub(crate) struct Recipient {
    pub(crate) email: EmailAddress,
    /// Emails that the hourly limit delayed and no digest has reported yet.
    pub(crate) delayed_emails: u64,
    name: UserName,
    keys: Vec<ApiKeyRecord>,
}

/// Returns the recipient, or `None` if emails of the kind are off or no address is confirmed.
pub(crate) async fn recipient(
    app: &App,
    name: &UserName,
    kind: DomainEventKind,
) -> Result<Option<Recipient>, StoreError> {
    let UserName { organization, user } = name;
    let preferences =
        NotificationStore::new(&app.store).find_email_preferences(organization, user).await?;
    if !preferences.is_enabled(kind.notification_type()) {
        return Ok(None);
    }
    let address = NotificationStore::new(&app.store).find_address(name).await?;
    let Some(email) = address.confirmed else { return Ok(None) };
    let mut keys = app.store.list_keys_of(organization, user).await?;
    let now = app.clock.now();
    keys.retain(|key| key.is_active(now));
    Ok(Some(Recipient { email, delayed_emails: address.delayed_emails, name: name.clone(), keys }))
}

impl Recipient {
    /// Returns `true` if the user can see events of a kind. In a project, keys with all scopes of
    /// the kind are required.
    pub(crate) fn can_see(&self, kind: DomainEventKind, visibility: &Visibility) -> bool {
        let UserName { organization, user } = &self.name;
        let can_read = |scope, id| {
            let mut keys = self.keys.iter().filter(|key| key.scopes.contains(scope));
            keys.any(|key| key.may_see(id, organization))
        };
        match visibility {
            Visibility::Project(id) => kind.read_scopes().iter().all(|scope| can_read(scope, *id)),
            Visibility::User(of, concerned) => (of, concerned) == (organization, user),
        }
    }
}

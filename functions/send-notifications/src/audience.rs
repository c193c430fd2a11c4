//! Whom a mail may go to, as it is at the moment.

use notifications::address::EmailAddress;
use notifications::domain_event::{DomainEventKind, Visibility};
use notifications::store::{NotificationStore, UserName};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::api_key::ApiKeyRecord;

/// A user who wants mails of a kind and has an address for them.
pub(crate) struct Recipient {
    pub(crate) email: EmailAddress,
    /// How often mails had to wait for room, since a digest said so.
    pub(crate) held_back: u64,
    name: UserName,
    keys: Vec<ApiKeyRecord>,
}

/// The recipient of mails of a kind; none where they are switched off, or no address is confirmed.
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
    Ok(Some(Recipient { email, held_back: address.held_back, name: name.clone(), keys }))
}

impl Recipient {
    /// `true` if the user can read about the kind there: in a project, by keys with all its scopes.
    pub(crate) fn may_see(&self, kind: DomainEventKind, scene: &Visibility) -> bool {
        let UserName { organization, user } = &self.name;
        let may_read = |scope, id| {
            let mut keys = self.keys.iter().filter(|key| key.scopes.contains(scope));
            keys.any(|key| key.may_see(id, organization))
        };
        match scene {
            Visibility::Project(id) => kind.read_scopes().iter().all(|scope| may_read(scope, *id)),
            Visibility::User(of, concerned) => (of, concerned) == (organization, user),
        }
    }
}

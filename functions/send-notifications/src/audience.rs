//! Recipients of emails, by their current preferences, addresses, memberships and keys.

use notifications::address::EmailAddress;
use notifications::domain_event::{DomainEventKind, Visibility};
use notifications::store::{NotificationStore, UserName};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::member::Member;

/// A user with an address whose emails of a kind are on.
pub(crate) struct Recipient {
    pub(crate) email: EmailAddress,
    /// Emails that the hourly limit delayed and no digest has reported yet.
    pub(crate) delayed_emails: u64,
    name: UserName,
    /// The membership, which decides what the user can see.
    member: Option<Member>,
    /// Keys of the `waymark` command, which need no membership.
    keys: Vec<ApiKeyRecord>,
}

/// Returns the recipient, or `None` if emails of the kind are off or there is no address. A member
/// without a confirmed address gets emails at the sign-in address, which is verified.
pub(crate) async fn recipient(
    app: &App,
    name: &UserName,
    kind: DomainEventKind,
) -> Result<Option<Recipient>, StoreError> {
    let UserName { organization, user } = name;
    let notifications = NotificationStore::new(&app.store);
    let preferences = notifications.find_email_preferences(organization, user).await?;
    if !preferences.is_enabled(kind.notification_type()) {
        return Ok(None);
    }
    let address = notifications.find_address(name).await?;
    let member = app.store.find_membership(organization, user).await?.member;
    let sign_in = || member.as_ref().and_then(|it| EmailAddress::parse(it.user.as_str()).ok());
    let Some(email) = address.confirmed.or_else(sign_in) else { return Ok(None) };
    let mut keys = app.store.list_keys_of(organization, user).await?;
    let now = app.clock.now();
    keys.retain(|key| key.is_active(now) && key.member.is_none());
    let (delayed_emails, name) = (address.delayed_emails, name.clone());
    Ok(Some(Recipient { email, delayed_emails, name, member, keys }))
}

impl Recipient {
    /// Returns `true` if the user can see events of a kind. In a project, the membership or keys
    /// must have all scopes of the kind.
    pub(crate) fn can_see(&self, kind: DomainEventKind, visibility: &Visibility) -> bool {
        let UserName { organization, user } = &self.name;
        let can_read = |scope, id| {
            let as_member = self.member.as_ref().is_some_and(|member| {
                let is_listed = member.projects.as_ref().is_none_or(|ids| ids.contains(&id));
                is_listed && member.role.scopes().contains(scope)
            });
            let mut keys = self.keys.iter().filter(|key| key.scopes.contains(scope));
            as_member || keys.any(|key| key.may_see(id, organization))
        };
        match visibility {
            Visibility::Project(id) => kind.read_scopes().iter().all(|scope| can_read(scope, *id)),
            Visibility::User(of, concerned) => (of, concerned) == (organization, user),
        }
    }
}

//! Table `people`, key `pk` and `sk`: what authentication reads of members and sessions, and the
//! last uses of credentials (`docs/data-model.md`, "people").

use std::collections::HashMap;
use std::time::Duration;

use crate::dynamodb::item::{Item, ItemReader, item_at, key, n, s};
use crate::dynamodb::{Store, StoreError};
use crate::projects::api_key::{KeyId, UserId};
use crate::projects::member::{Member, MemberId};
use crate::projects::project::{Organization, ProjectId};
use crate::projects::role::Role;
use crate::projects::secret::SecretDigest;
use crate::projects::session::Session;
use crate::timestamp::Timestamp;

/// The name of the table.
pub const TABLE: &str = "people";
/// Sort key of a session.
pub const SESSION: &str = "session";
/// Sort key of the item about all memberships of a user.
pub const ACCOUNT: &str = "account";
/// Sort key of a last use.
const USE: &str = "use";
/// Time that a last use is kept.
const USE_RETENTION: Duration = Duration::from_hours(400 * 24);

/// A user's membership, and what ends the user's earlier sessions.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    /// The membership, if the user is a member.
    pub member: Option<Member>,
    /// The last change of the member's role.
    pub role_changed_at: Option<Timestamp>,
    /// The last time at which the user signed out everywhere.
    pub signed_out_at: Option<Timestamp>,
}

/// A stored session with its last recorded use.
#[derive(Debug, Clone)]
pub struct StoredSession {
    /// The session.
    pub session: Session,
    /// The last recorded use, if any.
    pub last_used_at: Option<Timestamp>,
}

/// Something whose last use is recorded, at most once an hour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UseOf {
    /// A session.
    Session(SecretDigest),
    /// An API key.
    Key(KeyId),
    /// A membership, used by its user's sessions.
    Member(MemberId),
}

impl UseOf {
    fn key(&self) -> Item {
        let pk = match self {
            Self::Session(digest) => format!("use#session-{digest}"),
            Self::Key(id) => format!("use#key-{id}"),
            Self::Member(id) => format!("use#member-{id}"),
        };
        key(&pk, USE)
    }
}

/// Returns the key of a membership.
pub fn member_key(user: &UserId, organization: &Organization) -> Item {
    key(&user_partition(user), &format!("member#{organization}"))
}

/// Returns the key of the item about all memberships of a user.
pub fn account_key(user: &UserId) -> Item {
    key(&user_partition(user), ACCOUNT)
}

/// Returns the partition key of a user's items.
pub fn user_partition(user: &UserId) -> String {
    format!("user#{user}")
}

/// Returns the key of a session.
pub fn session_key(digest: &SecretDigest) -> Item {
    key(&format!("session#{digest}"), SESSION)
}

impl Store {
    /// Reads a user's membership in an organization. Strongly consistent: the time for which an
    /// ended membership can stay cached starts at its end.
    pub async fn find_membership(
        &self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Membership, StoreError> {
        let keys = vec![member_key(user, organization), account_key(user)];
        let mut membership = Membership::default();
        for item in self.get_all(TABLE, keys).await? {
            let reader = ItemReader { table: TABLE, item: &item };
            if reader.text("sk")? == ACCOUNT {
                membership.signed_out_at = reader.optional_millis("signedOutAt")?;
            } else {
                membership.member = Some(read_member(&item)?);
                membership.role_changed_at = reader.optional_millis("roleChangedAt")?;
            }
        }
        Ok(membership)
    }

    /// Records a use. The use of a session must be kept as long as the session.
    pub(crate) async fn put_last_use(&self, used: &UseOf, at: Timestamp) -> Result<(), StoreError> {
        let expires_at = n(at.plus(USE_RETENTION).as_seconds());
        let item = item_at(used.key(), [("at", n(at.as_millis())), ("expiresAt", expires_at)]);
        self.put_over(TABLE, item).await
    }

    /// Returns the last recorded uses, each at most an hour before the last use.
    pub async fn last_uses(&self, used: &[UseOf]) -> Result<HashMap<UseOf, Timestamp>, StoreError> {
        let keys: Vec<Item> = used.iter().map(UseOf::key).collect();
        let items = self.get_all(TABLE, keys).await?;
        let mut found = HashMap::with_capacity(items.len());
        for used in used {
            let pk = used.key().remove("pk");
            if let Some(item) = items.iter().find(|item| item.get("pk") == pk.as_ref()) {
                found.insert(used.clone(), read_last_use(item)?);
            }
        }
        Ok(found)
    }
}

/// Returns the keys of a session and its last use.
pub(super) fn session_keys(digest: &SecretDigest) -> [Item; 2] {
    [session_key(digest), UseOf::Session(digest.clone()).key()]
}

/// Reads the items with the keys of [`session_keys`].
pub(super) fn read_stored_session(items: &[Item]) -> Result<Option<StoredSession>, StoreError> {
    let (mut session, mut last_used_at) = (None, None);
    for item in items {
        if (ItemReader { table: TABLE, item }).text("sk")? == USE {
            last_used_at = Some(read_last_use(item)?);
        } else {
            session = Some(read_session(item)?);
        }
    }
    Ok(session.map(|session| StoredSession { session, last_used_at }))
}

fn read_last_use(item: &Item) -> Result<Timestamp, StoreError> {
    ItemReader { table: TABLE, item }.millis("at")
}

/// Returns the item of a session.
pub fn write_session(session: &Session) -> Item {
    item_at(
        session_key(&session.digest),
        [
            ("digest", s(&session.digest)),
            ("user", s(&session.user)),
            ("organization", s(&session.organization)),
            ("signedInAt", n(session.signed_in_at.as_millis())),
            ("issuedAt", n(session.issued_at.as_millis())),
            ("expiresAt", n(session.ends_at().as_seconds())),
        ],
    )
}

fn read_session(item: &Item) -> Result<Session, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(Session {
        digest: reader.parsed("digest", SecretDigest::parse)?,
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        signed_in_at: reader.millis("signedInAt")?,
        issued_at: reader.millis("issuedAt")?,
    })
}

/// Reads a membership.
pub fn read_member(item: &Item) -> Result<Member, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(Member {
        id: reader.parsed("memberId", MemberId::parse)?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        role: reader.parsed("role", |text| text.parse::<Role>().ok())?,
        projects: read_projects(reader)?,
        joined_at: reader.millis("joinedAt")?,
        version: reader.count("version")?,
    })
}

/// Reads a set of projects. A missing set means all projects; an unreadable set must not.
pub fn read_projects(
    reader: ItemReader<'_>,
) -> Result<Option<std::collections::BTreeSet<ProjectId>>, StoreError> {
    if !reader.item.contains_key("projects") {
        return Ok(None);
    }
    let ids = reader.text_set("projects")?.iter();
    let ids = ids.map(|id| ProjectId::parse(id).ok_or_else(|| reader.damaged("projects")));
    ids.collect::<Result<_, _>>().map(Some)
}

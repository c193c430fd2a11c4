//! Outcomes of transactions that change members and invitations.

use shared::dynamodb::StoreError;
use shared::dynamodb::idempotency::Replay;
use shared::dynamodb::transaction::Cancellation;

/// Outcome of a change of members or invitations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeopleChange {
    /// Stored.
    Done,
    /// The idempotency key was used before.
    Replay(Replay),
    /// The member has changed since it was read, or is gone.
    Outdated,
    /// The caller's role has changed.
    CallerChanged,
    /// The invitation was accepted or revoked, has expired, or its inviter cannot invite any more.
    InvitationGone,
    /// The user is a member already.
    MemberExists,
    /// The user has an open invitation.
    InvitationExists,
    /// The organization created too many invitations today.
    LimitReached,
    /// The organization would have no owner.
    LastOwner,
}

// Names of actions with a condition.
pub(super) const MEMBER_AS_READ: &str = "member as read";
pub(super) const CALLER: &str = "caller";
pub(super) const OPEN_INVITATION: &str = "open invitation";
pub(super) const INVITER: &str = "inviter";
pub(super) const NO_MEMBER: &str = "no member";
pub(super) const NEW_MEMBER: &str = "new member";
pub(super) const NEW_INVITATION: &str = "new invitation";
pub(super) const LIMIT: &str = "limit";
pub(super) const OWNERS: &str = "owners";

/// The outcomes of failed actions. The first failed one counts.
const REJECTIONS: [(&str, PeopleChange); 9] = [
    (MEMBER_AS_READ, PeopleChange::Outdated),
    (CALLER, PeopleChange::CallerChanged),
    (OPEN_INVITATION, PeopleChange::InvitationGone),
    (INVITER, PeopleChange::InvitationGone),
    (NO_MEMBER, PeopleChange::MemberExists),
    (NEW_MEMBER, PeopleChange::MemberExists),
    (NEW_INVITATION, PeopleChange::InvitationExists),
    (LIMIT, PeopleChange::LimitReached),
    (OWNERS, PeopleChange::LastOwner),
];

/// Returns the outcome of a transaction.
pub(super) fn outcome(cancelled: Option<Cancellation>) -> Result<PeopleChange, StoreError> {
    let Some(cancelled) = cancelled else { return Ok(PeopleChange::Done) };
    let rejection = REJECTIONS.into_iter().find(|(action, _)| cancelled.failed(action));
    rejection.map(|(_, rejection)| rejection).ok_or_else(|| cancelled.into_error())
}

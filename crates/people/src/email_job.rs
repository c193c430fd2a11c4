//! Emails about sign-ins and invitations that wait for their sender.

use shared::projects::api_key::UserId;
use shared::projects::secret::SecretDigest;
use shared::timestamp::Timestamp;

use crate::InvitationId;

/// An email to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailJob {
    /// The position in the queue.
    pub position: String,
    /// The recipient.
    pub user: UserId,
    /// The content.
    pub kind: EmailKind,
    /// The time of the request.
    pub created_at: Timestamp,
    /// Time after which the email is not sent.
    pub expires_at: Timestamp,
}

/// The content of an email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmailKind {
    /// A link and a code.
    SignIn(RequestedFrom),
    /// A link that accepts an invitation.
    Invitation(InvitationId),
}

/// The browser that requested a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedFrom {
    /// The hash of the browser's cookie.
    pub browser: SecretDigest,
    /// The header `user-agent`, at most 200 characters.
    pub user_agent: Option<String>,
    /// The city and country of the network address, if a distribution reports them.
    pub place: Option<String>,
}

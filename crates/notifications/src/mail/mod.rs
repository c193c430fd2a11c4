//! Emails, as text and as HTML (`docs/notifications.md`).

mod html;
mod notification_email;
mod people_email;
mod plot;
mod safe_text;
mod wording;

pub(super) use notification_email::type_label;
pub use notification_email::{
    NotificationEmail, ProjectLink, ProjectSection, address_changed, confirmation,
};
pub use people_email::{InvitationEmail, SignInEmail, invitation, sign_in};
pub use plot::Plot;

/// A rendered email.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// The subject, in one line.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The body as HTML, with the content of `text`.
    pub html: String,
    /// The unsubscribe link, if there is one.
    pub unsubscribe_url: Option<String>,
}

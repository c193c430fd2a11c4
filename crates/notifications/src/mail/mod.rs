//! Mails: what a person reads, as text and as HTML (`docs/notifications.md`, "Mails").

mod html;
mod notification_email;
mod plot;
mod safe_text;
mod wording;

pub(super) use notification_email::subject_of;
pub use notification_email::{
    NotificationEmail, ProjectLink, ProjectSection, address_changed, confirmation,
};
pub use plot::Plot;

/// A mail that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// One line that says what and where.
    pub subject: String,
    /// For programs that show text alone.
    pub text: String,
    /// The same for all others.
    pub html: String,
    /// Where mails of its type are switched off, if they can be.
    pub unsubscribe_url: Option<String>,
}

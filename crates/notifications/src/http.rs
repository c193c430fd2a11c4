//! The pages that links in mails lead to.

use shared::http::{ApiRequest, ApiResponse, StatusCode};
use shared::text::escape_html;

use super::address::{Followed, NotConfirmed};
use super::mail::subject_of;
use crate::notification_type::NotificationType;

/// Asks whether a link is to take effect. The form's address is that of the page.
pub fn ask_to_follow(followed: &Followed) -> ApiResponse {
    let (title, email, button) = match followed {
        Followed::Confirmed(email) => ("Confirm your address?", email, "Confirm this address"),
        Followed::Undone(email) => ("Undo the change of your address?", email, "Undo the change"),
    };
    let email = escape_html(email.as_str());
    let body = format!(
        "<p>Notifications will go to <b>{email}</b>.</p>\n\
         <form method=\"post\"><button>{button}</button></form>"
    );
    ApiResponse::page(StatusCode::OK, title, &body)
}

/// A link took effect.
pub fn followed(followed: &Followed) -> ApiResponse {
    let (title, email, more) = match followed {
        Followed::Confirmed(email) => {
            ("Your address is confirmed", email, "You can close this page.")
        }
        Followed::Undone(email) => (
            "The change is undone",
            email,
            "If you did not change it, another person has one of your API keys: revoke that key.",
        ),
    };
    let email = escape_html(email.as_str());
    let body = format!("<p>From now on, notifications go to <b>{email}</b>. {more}</p>");
    ApiResponse::page(StatusCode::OK, title, &body)
}

/// An address was not confirmed.
pub fn not_confirmed(reason: NotConfirmed) -> ApiResponse {
    let (title, body) = match reason {
        NotConfirmed::Used => (
            "This link was used before",
            "<p>Notifications go to the address; there is nothing left to do.</p>",
        ),
        NotConfirmed::Outdated => (
            "This link is void",
            "<p>Another address was set after this mail was sent. Follow the link in the latest mail, or \
             set your address once more.</p>",
        ),
        NotConfirmed::Expired => (
            "This link has expired",
            "<p>Set your address once more, and follow the link in the mail that you get then.</p>",
        ),
    };
    ApiResponse::page(StatusCode::BAD_REQUEST, title, body)
}

/// A link is not one that a mail had.
pub fn no_such_link() -> ApiResponse {
    let body = "<p>It may have been cut off on its way. Copy it from the mail as a whole; if that does not \
                help, set your address once more, or switch mails off with <code>PUT \
                /v0/notifications/email-preferences</code>.</p>";
    ApiResponse::page(StatusCode::BAD_REQUEST, "This link cannot be used", body)
}

/// Asks whether mails of a type are to be switched off. The form's address is that of the page.
pub fn ask_to_unsubscribe(notification_type: NotificationType) -> ApiResponse {
    let subject = subject_of(notification_type);
    let body = format!(
        "<p>You get mail about <b>{subject}</b>. Other mails stay as they are.</p>\n\
         <form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button>Stop these mails</button></form>"
    );
    ApiResponse::page(StatusCode::OK, "Stop these mails?", &body)
}

/// Mails of a type are switched off.
pub fn unsubscribed(notification_type: NotificationType) -> ApiResponse {
    let (subject, name) = (subject_of(notification_type), notification_type.as_str());
    let body = format!(
        "<p>You get no more mail about <b>{subject}</b>. To get it again, switch <code>{name}</code> on in \
         your email preferences.</p>"
    );
    ApiResponse::page(StatusCode::OK, "These mails have stopped", &body)
}

/// The token that a request brings.
pub fn token_of(incoming: &ApiRequest) -> &str {
    incoming.query_texts("token").first().copied().unwrap_or_default()
}

//! HTML pages behind the links in emails.

use shared::http::{ApiRequest, ApiResponse, StatusCode};
use shared::text::escape_html;

use super::address::{LinkEffect, LinkError};
use super::mail::type_label;
use crate::notification_type::NotificationType;

/// Returns the page that confirms or undoes an address change. Its form posts to the page's URL.
pub fn ask_to_follow(effect: &LinkEffect) -> ApiResponse {
    let (title, email, button) = match effect {
        LinkEffect::Confirmed(email) => ("Confirm your email address?", email, "Confirm address"),
        LinkEffect::Undone(email) => ("Undo the address change?", email, "Undo change"),
    };
    let email = escape_html(email.as_str());
    let body = format!(
        "<p>Your notifications will go to <b>{email}</b>.</p>\n\
         <form method=\"post\"><button>{button}</button></form>"
    );
    ApiResponse::page(StatusCode::OK, title, &body)
}

/// Returns the page after a link took effect.
pub fn followed(effect: &LinkEffect) -> ApiResponse {
    let (title, email, next) = match effect {
        LinkEffect::Confirmed(email) => ("Address confirmed", email, "You can close this page."),
        LinkEffect::Undone(email) => (
            "Address change undone",
            email,
            "If you did not change the address, an attacker has one of your API keys. Revoke it.",
        ),
    };
    let email = escape_html(email.as_str());
    let body = format!("<p>Your notifications now go to <b>{email}</b>. {next}</p>");
    ApiResponse::page(StatusCode::OK, title, &body)
}

/// Returns the page for a link that cannot take effect.
pub fn not_confirmed(reason: LinkError) -> ApiResponse {
    let (title, body) = match reason {
        LinkError::Used => {
            ("Link already used", "<p>The link has taken effect. You can close this page.</p>")
        }
        LinkError::Outdated => (
            "Link no longer valid",
            "<p>Your address was changed after this email was sent. Use the link in the latest email, \
             or set your address again.</p>",
        ),
        LinkError::Expired => {
            ("Link expired", "<p>Set your address again. Then use the link in the new email.</p>")
        }
    };
    ApiResponse::page(StatusCode::BAD_REQUEST, title, body)
}

/// Returns the page for a link without a valid token.
pub fn no_such_link() -> ApiResponse {
    let body = "<p>The link might be incomplete. Copy the whole link from the email. If that fails, set \
                your address again, or turn emails off with <code>PUT \
                /v0/notifications/email-preferences</code>.</p>";
    ApiResponse::page(StatusCode::BAD_REQUEST, "Invalid link", body)
}

/// Returns the page that unsubscribes from one type. Its form posts to the page's URL.
pub fn ask_to_unsubscribe(notification_type: NotificationType) -> ApiResponse {
    let label = type_label(notification_type);
    let body = "<p>Your other notification emails do not change.</p>\n\
         <form method=\"post\"><input type=\"hidden\" name=\"List-Unsubscribe\" value=\"One-Click\">\
         <button>Unsubscribe</button></form>";
    ApiResponse::page(StatusCode::OK, &format!("Unsubscribe from {label} emails?"), body)
}

/// Returns the page after one type was turned off.
pub fn unsubscribed(notification_type: NotificationType) -> ApiResponse {
    let (label, name) = (type_label(notification_type), notification_type.as_str());
    let body = format!(
        "<p>You no longer receive <b>{label}</b> emails. To receive them again, turn on \
         <code>{name}</code> in your email preferences.</p>"
    );
    ApiResponse::page(StatusCode::OK, "Unsubscribed", &body)
}

/// Returns the query parameter `token`, or an empty text.
pub fn token_of(request: &ApiRequest) -> &str {
    request.query_texts("token").first().copied().unwrap_or_default()
}

//! Emails about sign-ins and invitations. They have no unsubscribe link: the recipient requested
//! them, or needs the link in them.

use shared::timestamp::Timestamp;

use super::Email;
use super::notification_email::{Item, Parts, minute, plain_email};
use super::safe_text::line;

/// A requested sign-in.
#[derive(Debug, Clone, Copy)]
pub struct SignInEmail<'e> {
    /// The organizations of the user.
    pub organizations: &'e [&'e str],
    /// The six digits.
    pub code: &'e str,
    /// The link.
    pub url: &'e str,
    /// The browser and operating system that requested it, such as `Chrome on macOS`.
    pub browser: &'e str,
    /// The place of the network address, if known.
    pub place: Option<&'e str>,
    /// The time of the request.
    pub requested_at: Timestamp,
}

/// Returns the email with a link and a code to sign in.
pub fn sign_in(email: &SignInEmail<'_>) -> Email {
    let organizations: Vec<String> = email.organizations.iter().map(|name| line(name)).collect();
    let headline = format!("Sign in to {}", organizations.join(", "));
    let place = email.place.map(|place| format!(" from {}", line(place))).unwrap_or_default();
    let more = format!(
        "{}{place} requested this email at {}. If that was not you, ignore this email, and do \
         not share the code.",
        line(email.browser),
        minute(email.requested_at)
    );
    let code = Item {
        title: format!("Code: {}", email.code),
        detail: "Enter the code if you open the link in another browser.".to_owned(),
        url: None,
    };
    let subject = format!("[Waymark] {headline}");
    plain_email(
        &subject,
        Parts {
            headline,
            items: vec![code],
            more: Some(more),
            plot: None,
            button: Some(("Sign in", email.url.to_owned())),
            footer: "The link works once, and expires 10 minutes after this email was sent."
                .to_owned(),
            unsubscribe_url: None,
        },
    )
}

/// An invitation to an organization.
#[derive(Debug, Clone, Copy)]
pub struct InvitationEmail<'e> {
    /// The organization.
    pub organization: &'e str,
    /// The user who invites.
    pub invited_by: &'e str,
    /// The role of the new member.
    pub role: &'e str,
    /// The link.
    pub url: &'e str,
    /// Time at which the link expires.
    pub expires_at: Timestamp,
}

/// Returns the email with a link that accepts an invitation.
pub fn invitation(email: &InvitationEmail<'_>) -> Email {
    let organization = line(email.organization);
    let headline = format!("Join {organization} on Waymark");
    let more = format!(
        "{} invites you to the organization {organization}, with the role {}.",
        line(email.invited_by),
        email.role
    );
    let footer = format!(
        "The link works once, and expires on {}. If you do not expect an invitation, ignore this email.",
        minute(email.expires_at)
    );
    let subject = format!("[Waymark] {headline}");
    plain_email(
        &subject,
        Parts {
            headline,
            items: Vec::new(),
            more: Some(more),
            plot: None,
            button: Some(("Accept invitation", email.url.to_owned())),
            footer,
            unsubscribe_url: None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_in_emails_show_code_browser_and_place() {
        let email = sign_in(&SignInEmail {
            organizations: &["acme", "shop"],
            code: "482 913",
            url: "https://api.example.com/console/sign-in#token=x",
            browser: "Chrome on macOS",
            place: Some("Berlin, Germany"),
            requested_at: Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap(),
        });
        assert_eq!(email.subject, "[Waymark] Sign in to acme, shop");
        for part in [
            "Code: 482 913",
            "Chrome on macOS from Berlin, Germany requested this email at 2026-11-21 04:16 UTC.",
        ] {
            assert!(
                email.text.contains(part) && email.html.contains(part),
                "{part}: {}",
                email.text
            );
        }
        let link = "Sign in:\nhttps://api.example.com/console/sign-in#token=x\n";
        assert!(email.text.contains(link), "{}", email.text);
        assert_eq!(email.unsubscribe_url, None);
    }

    #[test]
    fn invitations_name_organization_inviter_and_role() {
        let email = invitation(&InvitationEmail {
            organization: "acme",
            invited_by: "mira@example.com",
            role: "viewer",
            url: "https://api.example.com/console/sign-in#token=x",
            expires_at: Timestamp::parse_rfc3339("2026-11-28T04:16:00Z").unwrap(),
        });
        assert_eq!(email.subject, "[Waymark] Join acme on Waymark");
        for part in ["organization acme, with the role viewer", "mira@", "2026-11-28 04:16 UTC"] {
            assert!(
                email.text.contains(part) && email.html.contains(part),
                "{part}: {}",
                email.text
            );
        }
    }
}

//! Contents of emails, independent of their format.

use shared::text::{counted, grouped};
use shared::timestamp::Timestamp;

use super::html::html_of;
use super::plot::Plot;
use super::safe_text::{line, title};
use super::wording::{Wording, wording};
use super::{Email, safe_text};
use crate::address::{EmailAddress, ReplacedAddress};
use crate::domain_event::{DigestSubject, DomainEvent, DomainEventKind};
use crate::feed::most_important;
use crate::notification_type::NotificationType;
use crate::store::UserName;

/// Maximum projects in a weekly digest.
const MAX_PROJECTS: usize = 10;

/// The name and slug of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLink {
    /// The name.
    pub name: String,
    /// The slug.
    pub slug: String,
}

impl ProjectLink {
    /// Returns the name, or the slug if the name has no visible characters.
    fn label(&self) -> String {
        let name = line(&self.name);
        if name.is_empty() { self.slug.clone() } else { name }
    }
}

/// The events of one project, or of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSection {
    /// The project. `None` for events of the user, and for unreadable projects.
    pub project: Option<ProjectLink>,
    /// The number of events.
    pub count: u64,
    /// The most important events.
    pub lines: Vec<DomainEvent>,
}

/// An email to one user about events of one kind.
#[derive(Debug, Clone, Copy)]
pub struct NotificationEmail<'l> {
    /// The kind of the events.
    pub kind: DomainEventKind,
    /// The events by project. At least one section.
    pub sections: &'l [ProjectSection],
    /// The plot of the first error.
    pub plot: Option<&'l Plot>,
    /// The URL of the API, without a slash at its end.
    pub base_url: &'l str,
    /// The unsubscribe link.
    pub unsubscribe_url: &'l str,
    /// Emails that the hourly limit delayed. 0: the email does not mention them.
    pub delayed_emails: u64,
}

/// The paragraph of an email about one event.
pub(super) struct Item {
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) url: Option<String>,
}

/// The parts of an email, in order.
pub(super) struct Parts<'p> {
    pub(super) headline: String,
    pub(super) items: Vec<Item>,
    pub(super) more: Option<String>,
    pub(super) plot: Option<(String, String)>,
    pub(super) button: Option<(&'static str, String)>,
    pub(super) footer: String,
    pub(super) unsubscribe_url: Option<&'p str>,
}

impl NotificationEmail<'_> {
    /// Returns the rendered email.
    pub fn render(&self) -> Email {
        let parts = self.parts();
        Email {
            subject: self.subject(),
            text: text_of(&parts),
            html: html_of(&parts),
            unsubscribe_url: Some(self.unsubscribe_url.to_owned()),
        }
    }

    /// Returns `true` for a weekly digest, which lists its lines by project.
    fn is_digest(&self) -> bool {
        self.kind == DomainEventKind::WeekEnded
    }

    fn count(&self) -> u64 {
        self.sections.iter().map(|section| section.count).sum()
    }

    /// Returns the project's name, or the number of projects.
    fn project_label(&self) -> Option<String> {
        let mut projects = self.sections.iter().filter_map(|section| section.project.as_ref());
        let first = projects.next()?;
        Some(match projects.count() {
            0 => first.label(),
            more => format!("{} projects", more + 1),
        })
    }

    fn subject(&self) -> String {
        let Wording { one, many, .. } = wording(self.kind);
        let prefix = self.project_label().map(|label| format!("[{label}] ")).unwrap_or_default();
        let first = self.sections.first().and_then(|section| section.lines.first());
        let text = match first {
            // The first line of a project's digest contains its counts.
            Some(first) if self.is_digest() && self.sections.len() == 1 => {
                format!("{prefix}{one}: {}", title(&first.title))
            }
            _ if self.is_digest() => format!("{prefix}{one}"),
            Some(first) if self.count() == 1 => format!("{prefix}{one}: {}", title(&first.title)),
            _ => format!("{prefix}{} {many}", grouped(self.count())),
        };
        safe_text::subject(&text)
    }

    fn parts(&self) -> Parts<'_> {
        let all: Vec<(&DomainEvent, Option<&ProjectLink>)> = self
            .sections
            .iter()
            .flat_map(|section| {
                section.lines.iter().map(move |line| (line, section.project.as_ref()))
            })
            .collect();
        let shown = if self.is_digest() {
            let sections = self.sections.iter().take(MAX_PROJECTS);
            sections.flat_map(|section| section.lines.clone()).collect()
        } else {
            most_important(all.iter().map(|(domain_event, _)| *domain_event))
        };
        let project_of = |domain_event: &DomainEvent| {
            let found = all.iter().find(|(other, _)| other.visibility == domain_event.visibility);
            found.and_then(|(_, project)| *project)
        };
        let items: Vec<Item> = shown
            .iter()
            .map(|domain_event| self.item(domain_event, project_of(domain_event)))
            .collect();
        let more = if self.is_digest() {
            let more = self.sections.len().saturating_sub(MAX_PROJECTS);
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            (more > 0).then(|| format!("and {}", counted(more, ("more project", "more projects"))))
        } else {
            let more = self.count().saturating_sub(items.len().try_into().unwrap_or(u64::MAX));
            (more > 0).then(|| format!("and {} more", grouped(more)))
        };
        Parts {
            headline: self.headline(),
            items,
            more,
            plot: self.plot.map(|plot| (plot.bars(), plot.caption())),
            button: None,
            footer: self.footer(),
            unsubscribe_url: Some(self.unsubscribe_url),
        }
    }

    fn footer(&self) -> String {
        let label = type_label(self.kind.notification_type());
        let reason = format!("You receive this because {label} emails are on.");
        match self.delayed_emails {
            0 => reason,
            delayed_emails => format!(
                "Since the last weekly digest, the hourly limit delayed {}. {reason}",
                counted(delayed_emails, ("email", "emails"))
            ),
        }
    }

    fn headline(&self) -> String {
        let Wording { one, many, .. } = wording(self.kind);
        let name = match self.count() {
            count if count > 1 && !self.is_digest() => format!("{} {many}", grouped(count)),
            _ => one.to_owned(),
        };
        match self.project_label() {
            Some(label) if self.is_digest() => format!("{name} for {label}"),
            Some(label) => format!("{name} in {label}"),
            None => name,
        }
    }

    fn item(&self, domain_event: &DomainEvent, project: Option<&ProjectLink>) -> Item {
        let Wording { weight, .. } = wording(domain_event.kind);
        let mut details = Vec::new();
        let detail = line(&domain_event.detail);
        if !detail.is_empty() {
            details.push(detail);
        }
        let weight = weight.filter(|_| domain_event.weight > 0);
        details.extend(weight.map(|words| counted(domain_event.weight, words)));
        if self.sections.len() > 1 {
            details.extend(project.map(ProjectLink::label));
        }
        details.extend(
            domain_event.actor.as_ref().map(|actor| format!("by {}", line(actor.as_str()))),
        );
        if !self.is_digest() {
            details.push(minute(domain_event.at));
        }
        Item {
            title: title(&domain_event.title),
            detail: details.join(" · "),
            url: project.and_then(|project| console_url(self.base_url, project, domain_event)),
        }
    }
}

/// Returns the email that asks the owner of an address for a confirmation. `browser` requested it.
pub fn confirmation(
    email: &EmailAddress,
    organization: &str,
    browser: Option<&str>,
    url: &str,
) -> Email {
    let browser = browser.map(|browser| format!(" with {}", line(browser))).unwrap_or_default();
    let footer = format!(
        "A user of the organization {} requested notifications at {}{browser}. If this was not you, \
         ignore this email: unconfirmed addresses receive no notifications. The link expires in 24 \
         hours.",
        line(organization),
        line(email.as_str())
    );
    address_email(
        "[Waymark] Confirm your email address",
        "Confirm your email address",
        None,
        ("Confirm address", url),
        footer,
    )
}

/// Returns the security email to the owner of a replaced address.
pub fn address_changed(replaced: &ReplacedAddress, name: &UserName, url: &str) -> Email {
    let more = format!(
        "Notifications for the user {} of the organization {} no longer go to {}. If you did not change \
         the address, an attacker has an API key of this user. Undo the change and revoke the key.",
        line(name.user.as_str()),
        line(name.organization.as_str()),
        line(replaced.email.as_str())
    );
    let footer = format!(
        "If you changed the address, ignore this email. The link expires on {}.",
        minute(replaced.ends)
    );
    address_email(
        "[Waymark] Your notification address changed",
        "Your notification address changed",
        Some(more),
        ("Undo change", url),
        footer,
    )
}

/// Returns an email about an address, without an unsubscribe link.
fn address_email(
    subject: &str,
    headline: &str,
    more: Option<String>,
    (label, url): (&'static str, &str),
    footer: String,
) -> Email {
    let parts = Parts {
        headline: headline.to_owned(),
        items: Vec::new(),
        more,
        plot: None,
        button: Some((label, url.to_owned())),
        footer,
        unsubscribe_url: None,
    };
    plain_email(subject, parts)
}

/// Returns an email without an unsubscribe link.
#[allow(clippy::needless_pass_by_value)] // The parts are built for this email.
pub(super) fn plain_email(subject: &str, parts: Parts<'_>) -> Email {
    Email {
        subject: safe_text::subject(subject),
        text: text_of(&parts),
        html: html_of(&parts),
        unsubscribe_url: None,
    }
}

/// Returns the name of a type before the word `emails`.
pub(crate) fn type_label(notification_type: NotificationType) -> &'static str {
    match notification_type {
        NotificationType::OrganizationInvite => "organization invitation",
        NotificationType::ProjectInvite => "project invitation",
        NotificationType::ErrorNew => "new error",
        NotificationType::ErrorRegression => "regression",
        NotificationType::ErrorSpike => "error spike",
        NotificationType::InsightNew => "new insight",
        NotificationType::InsightTrending => "trending insight",
        NotificationType::FlagChanged => "flag change",
        NotificationType::WeeklyDigest => "weekly digest",
        NotificationType::ApiKeyCreated => "new API key",
        NotificationType::Billing => "billing",
    }
}

/// Returns the console URL of the event's subject.
fn console_url(
    base_url: &str,
    project: &ProjectLink,
    domain_event: &DomainEvent,
) -> Option<String> {
    let slug = &project.slug;
    // Ids, slugs and flag keys need no encoding in a URL.
    Some(match domain_event.typed_subject()? {
        DigestSubject::Overview => format!("{base_url}/console/?project={slug}"),
        DigestSubject::Error(id) => format!("{base_url}/console/error?project={slug}&id={id}"),
        DigestSubject::Insight(id) => format!("{base_url}/console/insight?project={slug}&id={id}"),
        DigestSubject::Flag(key) => format!("{base_url}/console/flag?project={slug}&key={key}"),
    })
}

pub(super) fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    let minute = text.get(.."2026-11-21T04:16".len()).unwrap_or(&text);
    format!("{} UTC", minute.replace('T', " "))
}

fn text_of(parts: &Parts<'_>) -> String {
    let mut paragraphs = vec![parts.headline.clone()];
    for Item { title, detail, url } in &parts.items {
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        let below = detail.into_iter().chain(url).map(|line| format!("\n  {line}"));
        paragraphs.push(title.clone() + &below.collect::<String>());
    }
    paragraphs.extend(parts.more.clone());
    paragraphs.extend(parts.plot.as_ref().map(|(bars, caption)| format!("{bars}\n{caption}")));
    paragraphs.extend(parts.button.as_ref().map(|(label, url)| format!("{label}:\n{url}")));
    let unsubscribe = parts.unsubscribe_url.map(|url| format!("\nUnsubscribe: {url}"));
    paragraphs.push(format!("-- \n{}{}", parts.footer, unsubscribe.unwrap_or_default()));
    paragraphs.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests;

use shared::projects::api_key::UserId;
use shared::projects::project::{Organization, ProjectId};

use super::*;
use crate::address::Nonce;
use crate::domain_event::Visibility;

const UNSUBSCRIBE_URL: &str = "https://api.example.com/v0/notifications/unsubscribe?token=abc";

/// Titles with markup, headers, links or characters that affect their surroundings.
const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</div></body></html>",
    "<a href='https://evil.example'>click</a>",
    "' style='position:fixed",
    "<!--",
    "&lt;b&gt;",
    "x\r\nBcc: everybody@example.com\r\n\r\n<h1>",
    "\u{202e}gnp.exe",
    "{{7*7}} ${7*7} %s \\u003cb\\u003e",
    "evil.\u{200b}example",
    "https:\u{1}//x",
    "c\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}art",
    "\u{489}\u{489}\u{489}\u{489}\u{489}\u{489} x",
    "\u{e01}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}",
    "\u{3164}\u{2800}\u{34f}\u{fe0f} \u{ffa0}",
];

fn domain_event(title: &str) -> DomainEvent {
    let project = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
    let at = Timestamp::from_millis(1_795_234_560_000);
    DomainEvent::new(DomainEventKind::ErrorCreated, project, "e-1", title, at)
}

fn section(name: &str, count: u64, titles: &[&str]) -> ProjectSection {
    let project = ProjectLink { name: name.to_owned(), slug: "shop".to_owned() };
    ProjectSection {
        project: Some(project),
        count,
        lines: titles.iter().map(|it| domain_event(it)).collect(),
    }
}

fn error_email(sections: &[ProjectSection], plot: Option<&Plot>) -> Email {
    NotificationEmail {
        kind: DomainEventKind::ErrorCreated,
        sections,
        plot,
        base_url: "https://api.example.com",
        unsubscribe_url: UNSUBSCRIBE_URL,
        delayed_emails: 0,
    }
    .render()
}

#[test]
fn subjects_contain_the_title_of_one_event() {
    let email = error_email(&[section("Shop", 1, &["TypeError: cart is undefined"])], None);
    assert_eq!(email.subject, "[Shop] New error: TypeError: cart is undefined");
    assert_eq!(
        email.text,
        "New error in Shop\n\nTypeError: cart is undefined\n  2026-11-21 04:16 UTC\n  \
         https://api.example.com/console/error?project=shop&id=e-1\n\n-- \nYou receive this because \
         new error emails are on.\nUnsubscribe: "
            .to_owned()
            + UNSUBSCRIBE_URL
            + "\n"
    );
}

#[test]
fn subjects_contain_the_number_of_several_events() {
    let plot = Plot { title: "a".to_owned(), hours: vec![0, 1_000, 250] };
    let email = error_email(&[section("Shop", 1_000, &["a", "b"])], Some(&plot));
    assert_eq!(email.subject, "[Shop] 1,000 new errors");
    assert!(email.text.starts_with("1,000 new errors in Shop\n\na\n"), "{}", email.text);
    assert!(email.text.contains("\n\nand 998 more\n\n▁█▃\na · 1,250 events in"), "{}", email.text);
    let email = error_email(&[section("Shop", 2, &["a"]), section("Blog", 3, &["b"])], None);
    assert_eq!(email.subject, "[2 projects] 5 new errors");
}

#[test]
fn digests_list_lines_by_project() {
    let week = |number: u128, name: &str, slug: &str, lines: &[(&str, &str, &str)]| {
        let line = |(subject, title, detail): &(&str, &str, &str)| DomainEvent {
            kind: DomainEventKind::WeekEnded,
            visibility: Visibility::Project(ProjectId::new(uuid::Uuid::from_u128(number))),
            subject: (*subject).to_owned(),
            ..domain_event(title).detailed(detail)
        };
        let project = ProjectLink { name: name.to_owned(), slug: slug.to_owned() };
        let count = lines.len().try_into().unwrap();
        ProjectSection { project: Some(project), count, lines: lines.iter().map(line).collect() }
    };
    let digest = |sections: &[ProjectSection], delayed_emails: u64| {
        NotificationEmail {
            kind: DomainEventKind::WeekEnded,
            sections,
            plot: None,
            base_url: "https://api.example.com",
            unsubscribe_url: UNSUBSCRIBE_URL,
            delayed_emails,
        }
        .render()
    };
    let overview = ("overview", "1,204 events, 1 new error", "");
    let error = ("error/e-1", "TypeError", "new error, 1,000 events");
    let shop = week(0, "Shop", "shop", &[overview, error, ("flag/beta", "Beta", "changed flag")]);
    let one = digest(std::slice::from_ref(&shop), 0);
    assert_eq!(one.subject, "[Shop] Weekly digest: 1,204 events, 1 new error");
    assert!(
        one.text.starts_with(
            "Weekly digest for Shop\n\n1,204 events, 1 new error\n  \
             https://api.example.com/console/?project=shop\n\nTypeError\n  new error, 1,000 events\n  \
             https://api.example.com/console/error?project=shop&id=e-1\n\nBeta\n"
        ),
        "{}",
        one.text
    );
    assert!(one.text.contains("/console/flag?project=shop&key=beta\n\n-- \n"), "{}", one.text);
    let delayed = digest(std::slice::from_ref(&shop), 3);
    let footer = "Since the last weekly digest, the hourly limit delayed 3 emails. You receive";
    assert!(delayed.text.contains(footer), "{}", delayed.text);
    let project = |number| week(number, &format!("P{number}"), "p", &[overview, error]);
    let many: Vec<ProjectSection> = (0..12).map(project).collect();
    let all = digest(&many, 0);
    assert_eq!(all.subject, "[12 projects] Weekly digest");
    assert!(all.text.starts_with("Weekly digest for 12 projects\n\n"), "{}", all.text);
    assert_eq!(all.text.matches("/console/").count(), 20);
    assert!(all.text.contains("\n  new error, 1,000 events · P3\n"), "{}", all.text);
    assert!(all.text.contains("\n\nand 2 more projects\n\n"), "{}", all.text);
}

#[test]
fn untrusted_texts_stay_plain_text() {
    for hostile in HOSTILE {
        let email = error_email(&[section(hostile, 1, &[hostile])], None);
        assert!(!email.subject.contains(['\r', '\n', '\u{202e}']), "{:?}", email.subject);
        assert!(!email.text.contains(['\r', '\u{202e}', '\0']), "{:?}", email.text);
        for text in [&email.subject, &email.text, &email.html] {
            assert!(!text.contains(['\u{3164}', '\u{2800}', '\u{34f}', '\u{fe0f}', '\u{ffa0}']));
            let marks = ['\u{300}', '\u{301}', '\u{489}', '\u{e47}'];
            let many = |text: &[char]| text.iter().all(|character| marks.contains(character));
            let characters: Vec<char> = text.chars().collect();
            assert!(!characters.windows(3).any(many), "{text}");
        }
        // Email clients detect no links in the text.
        for line in email.text.lines().filter(|it| !it.contains("https://api.example.com/")) {
            let mut pairs = line.chars().zip(line.chars().skip(1));
            let is_link = |(one, next): (char, char)| match one {
                '.' | '@' => next.is_alphanumeric(),
                ':' => next == '/',
                _ => false,
            };
            assert!(!pairs.any(is_link), "{line:?}");
        }
        let plain = error_email(&[section("Shop", 1, &["plain"])], None);
        let tags = |html: &str| html.matches(['<', '>', '"']).count();
        assert_eq!(tags(&email.html), tags(&plain.html), "{}", email.html);
        // All links in the HTML are Waymark's own.
        for link in email.html.split("href=\"").skip(1) {
            assert!(link.starts_with("https://api.example.com/"), "{link}");
        }
    }
}

#[test]
fn invisible_titles_have_a_placeholder() {
    let plot = Plot { title: "\u{2800}".to_owned(), hours: vec![1] };
    let email = error_email(&[section("\u{3164}", 1, &["\u{3164}"])], Some(&plot));
    assert_eq!(email.subject, "[shop] New error: (no title)");
    assert!(email.text.starts_with("New error in shop\n\n(no title)\n  2026-"), "{}", email.text);
    assert!(email.text.contains("\n(no title) · 1 event in"), "{}", email.text);
}

#[test]
fn emails_load_no_external_resources() {
    let email = error_email(&[section("Shop", 1, &["x"])], None);
    for word in ["<img", "src=", "url(", "@import", "<link", "<script"] {
        assert!(!email.html.contains(word), "{word}");
    }
}

#[test]
fn confirmations_have_no_unsubscribe_link() {
    let email = EmailAddress::parse("mira@example.com").unwrap();
    let url = "https://api.example.com/v0/notifications/confirm?token=x";
    let email = confirmation(&email, "default", Some("Chrome on macOS"), url);
    assert!(email.text.contains("with Chrome on macOS. If"), "{}", email.text);
    assert!(email.text.contains("\nhttps://api.example.com/v0/notifications/confirm?token=x\n"));
    assert!(
        email.html.contains("href=\"https://api.example.com/v0/notifications/confirm?token=x\"")
    );
    assert_eq!(email.unsubscribe_url, None);
}

#[test]
fn security_emails_link_to_the_undo_page() {
    let replaced = ReplacedAddress {
        email: EmailAddress::parse("mira@example.com").unwrap(),
        nonce: Nonce([0; 16]),
        ends: Timestamp::parse_rfc3339("2026-11-24T04:16:00Z").unwrap(),
        is_notified: false,
    };
    let organization = Organization::parse("default").unwrap();
    let name = UserName { organization, user: UserId::parse("mira").unwrap() };
    let url = "https://api.example.com/v0/notifications/confirm?token=x";
    let email = address_changed(&replaced, &name, url);
    assert_eq!(email.subject, "[Waymark] Your notification address changed");
    for part in
        ["user mira of the organization default", "mira@\u{2060}example.", "2026-11-24 04:16 UTC"]
    {
        assert!(email.text.contains(part) && email.html.contains(part), "{part}: {}", email.text);
    }
    assert!(email.text.contains(&format!("Undo change:\n{url}\n")), "{}", email.text);
    assert!(email.html.contains(&format!("href=\"{url}\"")), "{}", email.html);
    assert_eq!(email.unsubscribe_url, None);
}

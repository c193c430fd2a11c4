//! Sentry's User Feedback: items `feedback` and `user_report`.

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use shared::timestamp::Timestamp;

use super::{
    Evidence, MAX_TEXT, Malformed, PainKind, ReplayId, cut, millis_of_seconds, release_of, route,
    text_at, user_agent_of, user_of,
};
use crate::{PainPoint, PainPointId};

/// Most characters of a message: that of an excerpt.
const MAX_MESSAGE: usize = 2_000;

/// A user's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Identifies the message, so that a repeated delivery counts once.
    id: Uuid,
    message: String,
    replay: Option<ReplayId>,
    user: Option<String>,
    route: Option<String>,
    release: Option<String>,
    /// The User-Agent, if the item has one.
    pub user_agent: Option<String>,
    /// Time of the message by the sender's clock, if stated.
    pub claimed: Option<Timestamp>,
}

impl Feedback {
    /// Parses the item `feedback`: an event with a context of this name. `envelope_id` is the ID
    /// in the envelope's header.
    ///
    /// # Errors
    /// [`Malformed`] if there is no message or no ID.
    pub fn read(item: &[u8], envelope_id: Option<&str>) -> Result<Self, Malformed> {
        let event: Value = serde_json::from_slice(item).map_err(|_| Malformed)?;
        let text = |name| text_at(&event, &format!("/contexts/feedback/{name}"));
        let own_id = text_at(&event, "/event_id");
        let url = text("url").or_else(|| text_at(&event, "/request/url"));
        Ok(Self {
            id: id_of(&["feedback", envelope_id.or(own_id).ok_or(Malformed)?]),
            message: message(text("message").unwrap_or_default())?,
            replay: text("replay_id").and_then(ReplayId::parse),
            user: user_of(&event).or_else(|| contact(text("contact_email"))),
            route: url.and_then(route),
            release: release_of(&event),
            user_agent: user_agent_of(&event),
            claimed: event.get("timestamp").and_then(time_of),
        })
    }

    /// Parses the item `user_report` of older SDKs, a message about an event.
    ///
    /// # Errors
    /// [`Malformed`] if there is no message or no ID.
    pub fn read_report(item: &[u8]) -> Result<Self, Malformed> {
        let report: Value = serde_json::from_slice(item).map_err(|_| Malformed)?;
        let comments = text_at(&report, "/comments").unwrap_or_default();
        let event = text_at(&report, "/event_id").ok_or(Malformed)?;
        Ok(Self {
            id: id_of(&["user_report", event, comments]),
            message: message(comments)?,
            replay: None,
            user: contact(text_at(&report, "/email")),
            route: None,
            release: None,
            user_agent: None,
            claimed: None,
        })
    }

    /// Returns the pain point. Without a replay, the message is a session of its own.
    pub fn into_pain_point(self, browser: Option<String>, occurred_at: Timestamp) -> PainPoint {
        let evidence = Evidence {
            kind: PainKind::Feedback,
            route: self.route,
            selector: None,
            element: None,
            browser,
            release: self.release,
            error_id: None,
        };
        let session = self.replay.map(|replay| replay.as_str().to_owned());
        PainPoint {
            id: PainPointId::new(self.id),
            session_id: session.unwrap_or_else(|| self.id.simple().to_string()),
            user_id: self.user,
            occurred_at,
            title: evidence.title(),
            excerpt: self.message,
            evidence: Some(evidence),
        }
    }
}

/// Returns an email address as the identity of a user.
fn contact(email: Option<&str>) -> Option<String> {
    let email = cut(email?.replace('\0', ""), MAX_TEXT);
    (!email.trim().is_empty()).then_some(email)
}

fn message(text: &str) -> Result<String, Malformed> {
    let text = text.replace('\0', "");
    if text.trim().is_empty() { Err(Malformed) } else { Ok(cut(text, MAX_MESSAGE)) }
}

fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(seconds) => millis_of_seconds(seconds.as_f64()?).map(Timestamp::from_millis),
        Value::String(text) => Timestamp::parse_rfc3339(text).ok(),
        _ => None,
    }
}

/// Returns an ID that depends only on these texts: a UUID of version 8.
pub(super) fn id_of(texts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "ac012cadf588491bb76da90129e33c41";

    fn point(item: &Value) -> Result<PainPoint, Malformed> {
        let feedback = Feedback::read(item.to_string().as_bytes(), Some(ID))?;
        Ok(feedback.into_pain_point(None, Timestamp::from_millis(0)))
    }

    #[test]
    fn feedback_is_a_pain_point_of_its_route() {
        let item = json!({"event_id": ID, "timestamp": 1.5, "request": {"url": "https://h/other"},
            "contexts": {"feedback": {"message": "It\nis slow", "contact_email": "a@example.com",
                "url": "https://h/orders/7?x", "replay_id": "bc012cadf588491bb76da90129e33c41"}}});
        let read = point(&item).unwrap();
        assert_eq!(read.title, "Feedback at /orders/:id");
        assert_eq!(
            (read.excerpt.as_str(), read.user_id.as_deref()),
            ("It\nis slow", Some("a@example.com"))
        );
        assert_eq!(read.session_id, "bc012cadf588491bb76da90129e33c41");
        assert_eq!(point(&item).unwrap().id, read.id, "a second delivery has the same ID");
    }

    #[test]
    fn feedback_without_replay_is_its_own_session() {
        let item = json!({"contexts": {"feedback": {"message": "m"}}, "request": {"url": "/a"}});
        let read = point(&item).unwrap();
        assert_eq!(read.session_id, read.id.to_string().replace('-', ""));
        assert_eq!(read.title, "Feedback at /a");
    }

    #[test]
    fn feedback_without_message_is_malformed() {
        for item in [json!({}), json!([]), json!({"contexts": {"feedback": {"message": " "}}})] {
            assert_eq!(point(&item), Err(Malformed), "{item}");
        }
        assert_eq!(Feedback::read(b"{", Some(ID)), Err(Malformed));
        assert_eq!(Feedback::read_report(b"{\"comments\":\"c\"}"), Err(Malformed));
    }

    #[test]
    fn reports_are_feedback_without_route() {
        let report = json!({"event_id": ID, "email": "a@example.com", "comments": "c"});
        let read = Feedback::read_report(report.to_string().as_bytes()).unwrap();
        let point = read.into_pain_point(None, Timestamp::from_millis(0));
        assert_eq!((point.title.as_str(), point.excerpt.as_str()), ("Feedback", "c"));
    }
}

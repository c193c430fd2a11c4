//! The framing of `/envelope/` bodies: a header line, then items of a header line and a payload.

use shared::json::Json;
use shared::timestamp::Timestamp;

use super::occurrence_time::parse_timestamp;
use super::{IngestionFault, lenient_json};
use crate::{EventId, NotAnEventId};

/// Maximum items of an envelope.
pub const MAX_ITEMS: usize = 100;
/// Maximum bytes of a header line of an envelope or an item.
pub const MAX_HEADER_LINE_BYTES: usize = 8 * 1024;
/// Maximum bytes of an envelope's header line with its newline and a byte order mark.
pub const MAX_START_BYTES: usize = BYTE_ORDER_MARK.len() + MAX_HEADER_LINE_BYTES + 1;
/// Maximum bytes of the header lines of an envelope and of its first item. SDKs send an event
/// before its attachments and sessions.
pub const MAX_FIRST_ITEM_BYTES: usize = MAX_START_BYTES + MAX_HEADER_LINE_BYTES + 1;
/// Maximum bytes of an event.
pub const MAX_EVENT_BYTES: usize = 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The relevant content of an envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// The event's id, if the header has one.
    pub event_id: Option<EventId>,
    /// Time of sending, by the SDK's clock.
    pub sent_at: Option<Timestamp>,
    /// The DSN that the envelope was sent to, which contains the key.
    pub dsn: Option<String>,
    /// The payload of the first item of type `event`.
    pub event: Option<&'b [u8]>,
    /// The payload of the first item of type `replay_event`.
    pub replay_event: Option<&'b [u8]>,
    /// The payload of the first item of type `replay_recording`.
    pub replay_recording: Option<&'b [u8]>,
    /// The payload of the first item of type `feedback`.
    pub feedback: Option<&'b [u8]>,
    /// The payload of the first item of type `user_report`.
    pub user_report: Option<&'b [u8]>,
    /// Number of client reports, in which SDKs list items that they dropped.
    pub client_reports: usize,
    /// Number of items that are accepted and not kept: sessions, transactions, attachments and so
    /// on, unknown types, and all events except the first.
    pub dropped_items: usize,
}

enum ItemKind {
    Event,
    ReplayEvent,
    ReplayRecording,
    Feedback,
    UserReport,
    ClientReport,
    Other,
}

impl<'b> Envelope<'b> {
    /// Returns the DSN in the header line of an envelope. The first [`MAX_START_BYTES`] suffice.
    pub fn read_dsn(start: &[u8]) -> Result<Option<String>, IngestionFault> {
        let line = next_header_line(&mut without_byte_order_mark(start))?;
        let text = lenient_json::repair(line);
        Ok(parse_header(&text)?.member_text("dsn").map(str::to_owned))
    }

    /// `true` if an item of type `event` begins within the `start` of an envelope.
    pub fn begins_with_event(start: &[u8]) -> bool {
        Self::begins_with(start, |kind| matches!(kind, ItemKind::Event))
    }

    /// `true` if an item of a replay begins within the `start` of an envelope.
    pub fn begins_with_replay(start: &[u8]) -> bool {
        Self::begins_with(start, |kind| {
            matches!(kind, ItemKind::ReplayEvent | ItemKind::ReplayRecording)
        })
    }

    fn begins_with(start: &[u8], is_wanted: impl Fn(&ItemKind) -> bool) -> bool {
        let mut rest = without_byte_order_mark(start);
        take_line(&mut rest);
        loop {
            rest = rest.trim_ascii_start();
            match read_item_header(take_line(&mut rest)) {
                Ok((kind, _)) if is_wanted(&kind) => return true,
                Ok((_, length)) if take_payload(length, &mut rest).is_ok() => {}
                _ => return false,
            }
        }
    }

    /// Parses an inflated body. A `\r` belongs to the payload, the last newline can be absent, and
    /// empty lines between items are skipped.
    pub fn parse(body: &'b [u8]) -> Result<Self, IngestionFault> {
        let mut rest = without_byte_order_mark(body);
        let line = next_header_line(&mut rest)?;
        let text = lenient_json::repair(line);
        let header = parse_header(&text)?;
        let mut envelope = Self {
            event_id: header_event_id(&header)?,
            sent_at: header.member("sent_at").and_then(parse_timestamp),
            dsn: header.member_text("dsn").map(str::to_owned),
            ..Self::default()
        };
        let mut items = 0_usize;
        loop {
            // Empty lines have no meaning, in any number.
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                break;
            }
            let line = next_header_line(&mut rest)?;
            items += 1;
            if items > MAX_ITEMS {
                return Err(IngestionFault::too_large(format!(
                    "the envelope has more than {MAX_ITEMS} items; send several envelopes"
                )));
            }
            let (kind, length) = read_item_header(line)?;
            envelope.add(&kind, take_payload(length, &mut rest)?)?;
        }
        // Returning 200 and storing nothing would hide a client's mistake permanently.
        if items == 0 && looks_like_event(&header) {
            return Err(IngestionFault::malformed(
                "this is an event, not an envelope; send it to store/",
            ));
        }
        Ok(envelope)
    }

    fn add(&mut self, kind: &ItemKind, payload: &'b [u8]) -> Result<(), IngestionFault> {
        let first = match kind {
            ItemKind::Event => &mut self.event,
            ItemKind::ReplayEvent => &mut self.replay_event,
            ItemKind::ReplayRecording => &mut self.replay_recording,
            ItemKind::Feedback => &mut self.feedback,
            ItemKind::UserReport => &mut self.user_report,
            ItemKind::ClientReport => {
                self.client_reports += 1;
                return Ok(());
            }
            ItemKind::Other => {
                self.dropped_items += 1;
                return Ok(());
            }
        };
        if first.is_some() {
            self.dropped_items += 1;
        } else if matches!(kind, ItemKind::ReplayRecording) {
            // The limits of bodies bound it.
            *first = Some(payload);
        } else {
            check_event_size(payload)?;
            *first = Some(payload);
        }
        Ok(())
    }
}

/// Rejects an event of more than 1 MiB, on both routes.
pub(super) fn check_event_size(payload: &[u8]) -> Result<(), IngestionFault> {
    if payload.len() > MAX_EVENT_BYTES {
        return Err(IngestionFault::too_large(format!(
            "the event has {} bytes; at most {MAX_EVENT_BYTES} are allowed, so attach less data",
            payload.len()
        )));
    }
    Ok(())
}

/// Returns the event id of a header. A wrong id is an error, since ids are compared and stored.
pub(super) fn header_event_id(header: &Json<'_>) -> Result<Option<EventId>, IngestionFault> {
    let id = header.member_text("event_id").map(EventId::parse).transpose();
    id.map_err(|fault: NotAnEventId| IngestionFault::malformed(fault.to_string()))
}

fn without_byte_order_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}

fn next_header_line<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], IngestionFault> {
    let line = take_line(rest);
    if line.len() > MAX_HEADER_LINE_BYTES {
        return Err(IngestionFault::too_large(format!(
            "a header line of the envelope has {} bytes; at most {MAX_HEADER_LINE_BYTES} are \
             allowed",
            line.len()
        )));
    }
    Ok(line)
}

/// Returns the text up to the next newline, which is skipped, or up to the end.
fn take_line<'b>(rest: &mut &'b [u8]) -> &'b [u8] {
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let line = parts.next().unwrap_or_default();
    *rest = parts.next().unwrap_or_default();
    line
}

fn parse_header(text: &str) -> Result<Json<'_>, IngestionFault> {
    match lenient_json::parse(text) {
        Ok(header @ Json::Object(_)) => Ok(header),
        _ => Err(IngestionFault::malformed("a header line of the envelope is not a JSON object")),
    }
}

/// Returns the type of the item that a header line announces, and its length if stated.
fn read_item_header(header_line: &[u8]) -> Result<(ItemKind, Option<usize>), IngestionFault> {
    let text = lenient_json::repair(header_line);
    let header = parse_header(&text)?;
    let kind = match header.member_text("type") {
        Some("event") => ItemKind::Event,
        Some("replay_event") => ItemKind::ReplayEvent,
        Some("replay_recording") => ItemKind::ReplayRecording,
        Some("feedback") => ItemKind::Feedback,
        Some("user_report") => ItemKind::UserReport,
        Some("client_report") => ItemKind::ClientReport,
        Some(_) => ItemKind::Other,
        None => return Err(IngestionFault::malformed("an item of the envelope has no type")),
    };
    let length =
        match header.member("length") {
            None | Some(Json::Null) => None,
            Some(Json::Number(written)) => Some(written.parse().map_err(|_| {
                IngestionFault::malformed("an item's length is not a whole number")
            })?),
            Some(_) => return Err(IngestionFault::malformed("an item's length is not a number")),
        };
    Ok((kind, length))
}

/// Returns a payload up to the end of the line, or of the stated length. A newline or the end must
/// follow.
fn take_payload<'b>(
    length: Option<usize>,
    rest: &mut &'b [u8],
) -> Result<&'b [u8], IngestionFault> {
    let Some(length) = length else { return Ok(take_line(rest)) };
    let (payload, after) = rest
        .split_at_checked(length)
        .ok_or_else(|| IngestionFault::malformed("an item is shorter than its length"))?;
    *rest = match after {
        [] => after,
        [b'\n', after @ ..] => after,
        _ => return Err(IngestionFault::malformed("an item is longer than its length")),
    };
    Ok(payload)
}

fn looks_like_event(header: &Json<'_>) -> bool {
    ["exception", "logentry", "message", "stacktrace"]
        .into_iter()
        .any(|name| header.member(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "ac012cadf588491bb76da90129e33c41";

    fn is_malformed(body: &[u8]) -> bool {
        matches!(Envelope::parse(body), Err(IngestionFault::Malformed(_)))
    }

    fn is_too_large(body: &[u8]) -> bool {
        matches!(Envelope::parse(body), Err(IngestionFault::TooLarge(_)))
    }

    #[test]
    fn reads_the_header() {
        let body = format!(
            "{{\"event_id\":\"{ID}\",\"sent_at\":\"2026-11-21T10:59:53.606631Z\",\
             \"dsn\":\"https://k@h/1\",\"sdk\":{{}}}}\n"
        );
        let envelope = Envelope::parse(body.as_bytes()).unwrap();
        assert_eq!(envelope.event_id.map(|id| id.to_string()), Some(ID.to_owned()));
        assert_eq!(
            envelope.sent_at.map(|at| at.to_string()),
            Some("2026-11-21T10:59:53.606Z".to_owned())
        );
        assert_eq!(envelope.dsn.as_deref(), Some("https://k@h/1"));
        assert_eq!(envelope.event, None);
    }

    #[test]
    fn reads_the_dsn_from_the_start_alone() {
        let padding = "x".repeat(MAX_HEADER_LINE_BYTES);
        let read = |body: &str| {
            let start = body.as_bytes();
            Envelope::read_dsn(&start[..start.len().min(MAX_START_BYTES)])
        };
        let dsn = "https://k@h/1";
        let body = format!("\u{feff}{{\"dsn\":\"{dsn}\"}}\n{padding}{padding}");
        assert_eq!(read(&body), Ok(Some(dsn.to_owned())));
        assert_eq!(read("{}\nx"), Ok(None));
        let longest = |bytes: usize| format!("\u{feff}{{\"a\":\"{}\"}}\n{{", &padding[..bytes - 8]);
        assert_eq!(read(&longest(MAX_HEADER_LINE_BYTES)), Ok(None));
        let result = read(&longest(MAX_HEADER_LINE_BYTES + 1));
        assert!(matches!(result, Err(IngestionFault::TooLarge(_))));
        assert!(matches!(read("x"), Err(IngestionFault::Malformed(_))));
    }

    #[test]
    fn reads_items_with_and_without_length() {
        for body in [
            &b"{}\n{\"type\":\"event\",\"length\":4}\n{\n}\r\n{\"type\":\"x\"}\nabc"[..],
            b"{}\n{\"type\":\"event\",\"length\":4}\n{\n}\r",
            b"{}\n{\"type\":\"session\"}\n{}\n\n{\"type\":\"event\",\"length\":4}\n{\n}\r\n",
        ] {
            assert_eq!(Envelope::parse(body).unwrap().event, Some(&b"{\n}\r"[..]), "{body:?}");
        }
        for body in [
            &b"{}\n{\"type\":\"event\"}\n{}\r"[..],
            b"{}\r\n{\"type\":\"event\",\"a\":1}\r\n{}\r\n",
            b"{}\n\n{\"type\":\"event\",\"length\":null}\n{}\r\n{\"type\":\"event\"}\n{2}",
        ] {
            assert_eq!(Envelope::parse(body).unwrap().event, Some(&b"{}\r"[..]), "{body:?}");
        }
        let empty = Envelope::parse(b"{}\n{\"type\":\"attachment\",\"length\":0}\n\n").unwrap();
        assert_eq!((empty.dropped_items, empty.event), (1, None));
    }

    #[test]
    fn keeps_the_first_event_and_counts_the_rest() {
        let body = b"{}\n{\"type\":\"client_report\"}\n{}\n{\"type\":\"event\"}\n{1}\n\
            {\"type\":\"event\"}\n{2}\n{\"type\":\"session\"}\n{}\n{\"type\":\"new_kind\"}\n{}\n\
            {\"type\":\"client_report\"}\n{}\n";
        let envelope = Envelope::parse(body).unwrap();
        assert_eq!(envelope.event, Some(&b"{1}"[..]));
        assert_eq!((envelope.client_reports, envelope.dropped_items), (2, 3));
    }

    #[test]
    fn rejects_broken_framing() {
        for body in [
            &b""[..],
            b"\n",
            b"x",
            b"[]",
            b"{}\nx",
            b"{}\n{}\n{}",
            b"{}\n{\"type\":\"event\",\"length\":4}\n{}",
            b"{}\n{\"type\":\"event\",\"length\":2}\n{}}\n",
            b"{}\n{\"type\":\"event\",\"length\":-1}\n{}",
            b"{}\n{\"type\":\"event\",\"length\":1.5}\n{}",
            b"{}\n{\"type\":\"event\",\"length\":\"2\"}\n{}",
            b"{}\n{\"type\":\"event\",\"length\":99999999999999999999999}\n{}",
            b"{\"event_id\":\"00000000000000000000000000000000\"}\n",
            b"{\"event_id\":\"xyz\"}\n",
            b"{\"exception\":{\"values\":[]}}",
        ] {
            assert!(is_malformed(body), "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn enforces_the_limits() {
        let items = |count| format!("{{}}\n{}", "{\"type\":\"x\"}\n{}\n".repeat(count));
        assert!(Envelope::parse(items(MAX_ITEMS).as_bytes()).is_ok());
        assert!(is_too_large(items(MAX_ITEMS + 1).as_bytes()));
        let line = |length: usize| format!("{{\"a\":\"{}\"}}\n", "x".repeat(length - 8));
        assert!(Envelope::parse(line(MAX_HEADER_LINE_BYTES).as_bytes()).is_ok());
        assert!(is_too_large(line(MAX_HEADER_LINE_BYTES + 1).as_bytes()));
        let event = |length| format!("{{}}\n{{\"type\":\"event\"}}\n{}", "x".repeat(length));
        assert!(Envelope::parse(event(MAX_EVENT_BYTES).as_bytes()).is_ok());
        assert!(is_too_large(event(MAX_EVENT_BYTES + 1).as_bytes()));
    }

    proptest! {
        #[test]
        fn never_panics(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Envelope::parse(&body);
        }

        #[test]
        fn never_panics_on_nearly_valid_envelopes(
            body in "\\{\\}\n(\\{\"type\":\"event\"(,\"length\":[0-9]{1,3})?\\}\n[a{}\n\"]{0,9}\n?){0,4}",
        ) {
            let _ = Envelope::parse(body.as_bytes());
        }

        #[test]
        fn finds_the_event_at_any_position(
            event in proptest::collection::vec(any::<u8>(), 0..200),
            others in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..4),
            last in any::<bool>(),
        ) {
            let frame = |kind: &str, payload: &[u8]| {
                let header = format!("{{\"type\":\"{kind}\",\"length\":{}}}\n", payload.len());
                [header.as_bytes(), payload, b"\n"].concat()
            };
            let mut items: Vec<_> = others.iter().map(|other| frame("attachment", other)).collect();
            let at = if last { items.len() } else { 0 };
            items.insert(at, frame("event", &event));
            let body = [b"{}\n".to_vec(), items.concat()].concat();
            let envelope = Envelope::parse(&body).unwrap();
            prop_assert_eq!(envelope.event, Some(&event[..]));
            prop_assert_eq!(envelope.dropped_items, others.len());
        }
    }
}

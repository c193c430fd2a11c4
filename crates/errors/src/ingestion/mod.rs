//! Ingestion of official Sentry SDKs' requests, from the bytes to an event that can be stored
//! (`docs/semantics/error-tracking.md`). Nothing here does I/O. The steps are:
//!
//! 1. [`CredentialSources::read`] the key, and look it up. [`Envelope::read_dsn`] can find it in
//!    the output of [`inflate_start`].
//! 2. Count the delivery, by whether it [begins with an event](Envelope::begins_with_event).
//! 3. [`inflate`] the body.
//! 4. For `/envelope/`, [`Envelope::parse`] it.
//! 5. [`EventText::canonicalize`] its event, or that of a `/store/` body.
//! 6. Resolve its frames, and [`CanonicalEvent::normalize`] it.

mod budget;
#[cfg(test)]
mod build_tests;
mod canonical;
mod client;
mod content_encoding;
mod credential;
mod envelope;
mod event;
mod event_attributes;
mod exception;
mod fault;
mod json_text;
mod label;
mod lenient_json;
mod limits;
mod member;
mod occurrence_time;
mod scrubbing;
#[cfg(test)]
mod sdk_tests;
mod trimmed_paths;

pub use budget::MAX_PAYLOAD_BYTES;
pub use content_encoding::{
    MAX_INFLATED_BYTES, MAX_MEMBERS, MAX_WIRE_BYTES, inflate, inflate_start,
};
pub use credential::CredentialSources;
pub use envelope::{
    Envelope, MAX_EVENT_BYTES, MAX_FIRST_ITEM_BYTES, MAX_HEADER_LINE_BYTES, MAX_ITEMS,
    MAX_START_BYTES,
};
#[cfg(test)]
pub(crate) use event::testing;
pub use event::{
    CanonicalEvent, EventReplay, EventText, NormalizedEvent, Received, describe_stored_event,
};
pub use event_attributes::capacity_for_tags;
pub use fault::IngestionFault;
pub use occurrence_time::occurrence_time;
pub use shared::json::members::Members;

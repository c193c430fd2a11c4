//! The Lambda function purge-event-markers.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&purge_event_markers::JOB)
}

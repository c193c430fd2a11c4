//! The Lambda function ingest-error-events.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&ingest_error_events::OPERATION)
}

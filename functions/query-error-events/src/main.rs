//! The Lambda function query-error-events.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&query_error_events::OPERATION)
}

//! The Lambda function list-error-events.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_error_events::OPERATION)
}

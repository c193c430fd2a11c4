//! The Lambda function list-event-markers.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_event_markers::OPERATION)
}

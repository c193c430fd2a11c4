//! The Lambda function list-event-marker-collections.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_event_marker_collections::OPERATION)
}

//! The Lambda function create-event-marker-collection.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_event_marker_collection::OPERATION)
}

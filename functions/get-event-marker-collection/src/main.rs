//! The Lambda function get-event-marker-collection.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_event_marker_collection::OPERATION)
}

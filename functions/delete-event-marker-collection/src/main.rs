//! The Lambda function delete-event-marker-collection.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_event_marker_collection::OPERATION)
}

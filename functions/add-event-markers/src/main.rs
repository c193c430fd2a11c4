//! The Lambda function add-event-markers.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&add_event_markers::OPERATION)
}

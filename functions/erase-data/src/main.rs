//! The Lambda function purge-event-markers.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&erase_data::JOB)
}

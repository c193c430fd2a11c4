//! The Lambda function erase-data.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&erase_data::JOB)
}

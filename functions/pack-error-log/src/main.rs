//! The Lambda function pack-error-log.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&pack_error_log::JOB)
}

//! The Lambda function compact-error-segments.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&compact_error_segments::JOB)
}

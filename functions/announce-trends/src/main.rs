//! Lambda function announce-trends.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&announce_trends::JOB)
}

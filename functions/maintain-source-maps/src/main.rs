//! The Lambda function maintain-source-maps.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve_job(&maintain_source_maps::JOB)
}

//! The Lambda function upload-source-maps.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&upload_source_maps::OPERATION)
}

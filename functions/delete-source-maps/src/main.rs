//! The Lambda function delete-source-maps.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_source_maps::OPERATION)
}

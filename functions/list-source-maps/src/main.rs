//! The Lambda function list-source-maps.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_source_maps::OPERATION)
}

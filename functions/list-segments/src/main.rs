//! The Lambda function list-segments.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_segments::OPERATION)
}

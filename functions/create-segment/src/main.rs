//! The Lambda function create-segment.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_segment::OPERATION)
}

//! The Lambda function update-segment.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_segment::OPERATION)
}

//! The Lambda function get-segment.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_segment::OPERATION)
}

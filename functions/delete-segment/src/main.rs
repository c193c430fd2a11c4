//! The Lambda function delete-segment.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_segment::OPERATION)
}

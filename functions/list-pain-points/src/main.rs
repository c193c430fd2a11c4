//! The Lambda function list-pain-points.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_pain_points::OPERATION)
}

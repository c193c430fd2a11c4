//! The Lambda function add-pain-points.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&add_pain_points::OPERATION)
}

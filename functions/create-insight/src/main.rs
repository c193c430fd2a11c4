//! The Lambda function create-insight.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_insight::OPERATION)
}

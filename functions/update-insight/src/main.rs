//! The Lambda function update-insight.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_insight::OPERATION)
}

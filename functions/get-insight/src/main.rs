//! The Lambda function get-insight.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_insight::OPERATION)
}

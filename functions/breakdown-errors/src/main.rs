//! The Lambda function breakdown-errors.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&breakdown_errors::OPERATION)
}

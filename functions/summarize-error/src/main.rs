//! The Lambda function summarize-error.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&summarize_error::OPERATION)
}

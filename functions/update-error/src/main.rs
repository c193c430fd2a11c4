//! The Lambda function update-error.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_error::OPERATION)
}

//! The Lambda function update-error.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_error::OPERATION)
}

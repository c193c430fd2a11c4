//! The Lambda function get-error.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_error::OPERATION)
}

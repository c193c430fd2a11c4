//! The Lambda function list-errors.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_errors::OPERATION)
}

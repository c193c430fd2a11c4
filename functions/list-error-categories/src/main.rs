//! The Lambda function list-error-categories.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_error_categories::OPERATION)
}

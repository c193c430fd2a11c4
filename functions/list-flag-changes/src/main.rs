//! The Lambda function list-flag-changes.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_flag_changes::OPERATION)
}

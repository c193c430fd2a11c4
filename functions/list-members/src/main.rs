//! The Lambda function list-members.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_members::OPERATION)
}

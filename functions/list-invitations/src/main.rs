//! The Lambda function list-invitations.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_invitations::OPERATION)
}

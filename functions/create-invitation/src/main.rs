//! The Lambda function create-invitation.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_invitation::OPERATION)
}

//! The Lambda function revoke-invitation.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&revoke_invitation::OPERATION)
}

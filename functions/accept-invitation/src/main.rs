//! The Lambda function accept-invitation.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&accept_invitation::OPERATION)
}

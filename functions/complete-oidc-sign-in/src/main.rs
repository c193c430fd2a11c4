//! The Lambda function complete-oidc-sign-in.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&complete_oidc_sign_in::OPERATION)
}

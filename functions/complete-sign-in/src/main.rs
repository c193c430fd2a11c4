//! The Lambda function complete-sign-in.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&complete_sign_in::OPERATION)
}

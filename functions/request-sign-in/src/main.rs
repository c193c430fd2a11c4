//! The Lambda function request-sign-in.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&request_sign_in::OPERATION)
}

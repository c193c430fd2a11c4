//! The Lambda function sign-out.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&sign_out::OPERATION)
}

//! The Lambda function confirm-email-address.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&confirm_email_address::OPERATION)
}

//! The Lambda function set-email-address.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&set_email_address::OPERATION)
}

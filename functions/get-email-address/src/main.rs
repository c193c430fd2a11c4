//! The Lambda function get-email-address.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_email_address::OPERATION)
}

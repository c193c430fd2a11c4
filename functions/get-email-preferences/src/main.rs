//! The Lambda function get-email-preferences.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_email_preferences::OPERATION)
}

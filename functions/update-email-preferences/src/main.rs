//! The Lambda function update-email-preferences.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_email_preferences::OPERATION)
}

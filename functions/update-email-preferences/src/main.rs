//! The Lambda function update-email-preferences.

use shared::app::{StartError, serve};
use update_email_preferences::{OPERATION, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

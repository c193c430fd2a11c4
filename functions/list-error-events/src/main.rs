//! The Lambda function list-error-events.

use list_error_events::{OPERATION, handle};
use shared::app::{StartError, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

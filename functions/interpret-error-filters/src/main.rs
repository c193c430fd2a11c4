//! The Lambda function interpret-error-filters.

use interpret_error_filters::{OPERATION, handle};
use shared::app::{StartError, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

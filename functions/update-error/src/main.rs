//! The Lambda function update-error.

use shared::app::{StartError, serve};
use update_error::{OPERATION, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

//! The Lambda function update-insight.

use shared::app::{StartError, serve};
use update_insight::{OPERATION, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

//! The Lambda function list-feature-flags.

use list_feature_flags::{OPERATION, handle};
use shared::app::{StartError, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

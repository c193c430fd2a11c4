//! The Lambda function update-feature-flag.

use shared::app::{StartError, serve};
use update_feature_flag::{OPERATION, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

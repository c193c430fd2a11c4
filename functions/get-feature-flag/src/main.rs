//! The Lambda function get-feature-flag.

use get_feature_flag::{OPERATION, handle};
use shared::app::{StartError, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

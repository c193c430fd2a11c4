//! The Lambda function query-error-timeseries.

use query_error_timeseries::{OPERATION, handle};
use shared::app::{StartError, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming))).await
}

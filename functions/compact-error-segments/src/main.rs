//! The Lambda function compact-error-segments.

use compact_error_segments::{OPERATION, run};
use shared::app::{StartError, serve_schedule};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    serve_schedule(OPERATION, |app, deadline| Box::pin(run(app, deadline))).await
}

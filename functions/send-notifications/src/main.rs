//! Lambda function send-notifications.

use shared::app::{StartError, serve_job};
use shared::telemetry;

fn main() -> Result<(), StartError> {
    telemetry::start();
    send_notifications::configure()?;
    serve_job(&send_notifications::JOB)
}

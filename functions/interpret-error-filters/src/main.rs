//! The Lambda function interpret-error-filters.

use shared::app::{StartError, serve};
use shared::telemetry;

fn main() -> Result<(), StartError> {
    telemetry::start();
    interpret_error_filters::model_fallback::configure()?;
    serve(&interpret_error_filters::OPERATION)
}

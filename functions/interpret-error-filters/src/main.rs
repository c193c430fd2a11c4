//! The Lambda function interpret-error-filters.

use std::sync::OnceLock;

use interpret_error_filters::second_opinion::Model;
use interpret_error_filters::{OPERATION, handle};
use shared::app::{StartError, serve};
use shared::telemetry;

static MODEL: OnceLock<Model> = OnceLock::new();

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    telemetry::start();
    if let Some(model) = Model::from_environment()? {
        MODEL.get_or_init(|| model);
    }
    serve(OPERATION, |app, incoming| Box::pin(handle(app, incoming, MODEL.get()))).await
}

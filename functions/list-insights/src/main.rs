//! The Lambda function list-insights.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_insights::OPERATION)
}

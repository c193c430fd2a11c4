//! The Lambda function merge-insights.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&merge_insights::OPERATION)
}

//! The Lambda function split-insight.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&split_insight::OPERATION)
}

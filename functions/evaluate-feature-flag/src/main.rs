//! The Lambda function evaluate-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&evaluate_feature_flag::OPERATION)
}

//! The Lambda function evaluate-feature-flags.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&evaluate_feature_flags::OPERATION)
}

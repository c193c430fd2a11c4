//! The Lambda function test-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&test_feature_flag::OPERATION)
}

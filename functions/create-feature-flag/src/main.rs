//! The Lambda function create-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_feature_flag::OPERATION)
}

//! The Lambda function update-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_feature_flag::OPERATION)
}

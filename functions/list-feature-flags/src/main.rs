//! The Lambda function list-feature-flags.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_feature_flags::OPERATION)
}

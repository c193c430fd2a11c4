//! The Lambda function delete-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_feature_flag::OPERATION)
}

//! The Lambda function get-feature-flag.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_feature_flag::OPERATION)
}

//! The Lambda function create-api-key.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_api_key::OPERATION)
}

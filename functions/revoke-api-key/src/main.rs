//! The Lambda function revoke-api-key.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&revoke_api_key::OPERATION)
}

//! The Lambda function list-api-keys.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_api_keys::OPERATION)
}

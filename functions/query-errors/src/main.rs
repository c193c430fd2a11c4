//! The Lambda function query-errors.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&query_errors::OPERATION)
}

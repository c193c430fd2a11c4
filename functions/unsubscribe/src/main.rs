//! The Lambda function unsubscribe.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&unsubscribe::OPERATION)
}

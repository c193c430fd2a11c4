//! The Lambda function get-caller.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_caller::OPERATION)
}

//! The Lambda function remove-member.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&remove_member::OPERATION)
}

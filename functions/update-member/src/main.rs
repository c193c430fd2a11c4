//! The Lambda function update-member.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_member::OPERATION)
}

//! The Lambda function update-session.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_session::OPERATION)
}

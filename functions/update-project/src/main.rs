//! The Lambda function update-project.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&update_project::OPERATION)
}

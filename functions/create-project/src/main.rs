//! The Lambda function create-project.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&create_project::OPERATION)
}

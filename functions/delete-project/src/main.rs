//! The Lambda function delete-project.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&delete_project::OPERATION)
}

//! The Lambda function list-projects.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_projects::OPERATION)
}

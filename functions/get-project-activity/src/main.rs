//! The Lambda function get-project-activity.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_project_activity::OPERATION)
}

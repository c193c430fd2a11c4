//! The Lambda function serve-console.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&serve_console::OPERATION)
}

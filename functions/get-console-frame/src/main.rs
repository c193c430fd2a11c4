//! The Lambda function get-console-frame.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_console_frame::OPERATION)
}

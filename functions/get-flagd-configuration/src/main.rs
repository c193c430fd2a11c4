//! The Lambda function get-flagd-configuration.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&get_flagd_configuration::OPERATION)
}

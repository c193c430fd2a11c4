//! The Lambda function query-error-timeseries.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&query_error_timeseries::OPERATION)
}

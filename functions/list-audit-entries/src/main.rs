//! The Lambda function list-audit-entries.

fn main() -> Result<(), shared::app::StartError> {
    shared::app::serve(&list_audit_entries::OPERATION)
}

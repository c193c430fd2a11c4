//! `waymark flags import`.

use serde::Serialize;

use flags::store::ListedFlags;
use flags::{FlagKey, SegmentKey};
use shared::app::{Clock, Ids};
use shared::dynamodb::Store;

use super::apply::apply;
use super::conflict::Conflicts;
use super::plan::{Plan, plan};
use super::planned::PlanEntry;
use super::segments::SegmentPlan;
use super::{ImportOptions, all_flags, all_segments, document};
use crate::error::CliError;
use crate::output::{Output, note, write};
use crate::project::find;

/// The JSON output of an import.
#[derive(Serialize)]
struct Shown<'p> {
    applied: bool,
    segments: Vec<PlanEntry<'p, SegmentKey>>,
    flags: Vec<PlanEntry<'p, FlagKey>>,
}

pub(super) async fn run(
    options: ImportOptions,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    // The file is read first: an unusable file causes no request to the tables.
    let text = options.file.read()?;
    let project = find(&options.project, store).await?;
    let now = Clock::System.now();
    let document =
        document::read(&text, project.id, now, || Ids::Random.new_uuid(now)).map_err(|error| {
            CliError::Document { place: options.file.to_string(), error: Box::new(error) }
        })?;
    if document.project != project.slug.as_str() {
        let (from, to) = (&document.project, &project.slug);
        note(&format!("The flags were exported from project {from}; importing into {to}."));
    }
    let stored = all_flags(project.id, ListedFlags::All, store).await?;
    let segments = SegmentPlan::new(all_segments(project.id, store).await?, document.segments, now);
    let plan = plan(stored, document.flags, &segments, options.archive_missing, now)
        .map_err(CliError::ImportRejected)?;

    let changes = segments.count_changes() + plan.count_changes();
    let shown = Shown { applied: options.apply, segments: segments.shown(), flags: plan.shown() };
    let is_last = !options.apply || changes == 0;
    if !output.is_json() {
        let summary = summary(&segments, &plan, is_last.then_some(changes));
        let text = format!("{segments}{plan}{summary}");
        match write(text.trim_start()) {
            // The reader closed the pipe, which does not cancel the import.
            Err(error) if options.apply && error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written?,
        }
    }
    if is_last {
        return Ok(output.show(&shown, "")?);
    }
    let shown = serde_json::to_value(&shown).map_err(std::io::Error::from)?;
    let (of_segments, mut conflicts) = segments.apply(store).await?;
    let (of_flags, more) = apply(plan.changes(), store).await?;
    let done = of_segments + of_flags;
    conflicts.extend(more.0);
    if !conflicts.is_empty() {
        let conflicts = Conflicts(conflicts);
        return Err(CliError::ImportIncomplete { done, total: changes, conflicts });
    }
    let text = format!("All {done} changes were applied.");
    Ok(output.show(&shown, &text)?)
}

/// Returns the counts of a plan and, with `changes_left`, the next step.
fn summary(segments: &SegmentPlan, plan: &Plan, changes_left: Option<usize>) -> String {
    let next = match changes_left {
        None => "",
        Some(0) => " No changes are needed.",
        Some(_) => " Nothing was written; run the command with --apply to apply the changes.",
    };
    let of_segments = if segments.0.is_empty() {
        String::new()
    } else {
        format!("Segments: {}.\n", segments.counts())
    };
    format!("\n{of_segments}Flags: {}.{next}\n", plan.counts())
}

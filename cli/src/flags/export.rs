//! `waymark flags export`.

use flags::flagd::Layout;
use flags::store::ListedFlags;
use flags::{FeatureFlag, flagd};
use shared::dynamodb::Store;

use super::{ExportOptions, Format, all_flags, all_segments, document};
use crate::error::CliError;
use crate::output::{note, write};
use crate::project::find;

pub(super) async fn run(options: ExportOptions, store: &Store) -> Result<(), CliError> {
    let project = find(&options.project, store).await?;
    let text = match options.format {
        Format::Waymark => {
            let flags = all_flags(project.id, ListedFlags::All, store).await?;
            let segments = all_segments(project.id, store).await?;
            document::write(&project.slug, &segments, &flags).map_err(std::io::Error::from)?
        }
        Format::Flagd => {
            let flags = all_flags(project.id, ListedFlags::Live, store).await?;
            let segments = all_segments(project.id, store).await?;
            let export = flagd::export(project.id, &flags, &segments, Layout::Indented);
            report_differences(&export.differences, &flags);
            export.document + "\n"
        }
    };
    match options.output {
        None => Ok(write(&text)?),
        Some(file) => file.write(&text),
    }
}

/// Reports flags and fields that flagd evaluates differently or that are left out.
fn report_differences(differences: &[flagd::ExportGap], flags: &[FeatureFlag]) {
    for flagd::ExportGap { flag_key, pointer, left_out, reason } in differences {
        let what = if *left_out { "left out" } else { "differs" };
        note(&format!("{flag_key}: {what}, {pointer}: {reason}"));
    }
    let mut left_out: Vec<_> =
        differences.iter().filter(|it| it.left_out).map(|it| &it.flag_key).collect();
    left_out.dedup();
    if !left_out.is_empty() {
        note(&format!("{} of {} flags are left out.", left_out.len(), flags.len()));
    }
}

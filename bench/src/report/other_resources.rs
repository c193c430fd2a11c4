//! The report of the functions for event markers and insights.

use super::Figures;
use super::units::{kilobytes, ms, range, times};
use crate::event_markers::{EVENTS, EventMarkers};
use crate::insights::{Insights, LARGE, SMALL, Size, Splits};
use crate::statistics::grouped;

impl Figures {
    pub(super) fn print_event_markers(&self) {
        let EventMarkers { empty, large, purge, .. } = &self.event_markers;
        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        println!("\ndelete-event-marker-collection, warm");
        line("an empty collection, p50", range(empty));
        line(&format!("a collection with {} events", grouped(EVENTS)), range(large));
        let ratio = self.event_markers.ratio();
        line("  as a multiple of the empty one's", times(ratio));
        println!("\npurge-event-markers, with the embedded engine instead of DynamoDB");
        let (rate, seconds) = (purge.events_per_second(), purge.time.as_secs_f64());
        let invocations = purge.invocations;
        let all = format!("{rate:.0} events/s   {seconds:.1} s   invocations {invocations}");
        line(&format!("{} events", grouped(purge.events)), all);
        line("  CPU time per 1,000 events", ms(purge.cpu_of_1000()));
    }

    pub(super) fn print_splits(&self) {
        let Insights { small, large, .. } = &self.insights;
        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        let print = |Size { members, moved }, splits: &Splits| {
            let Splits { latency, cost } = splits;
            let (cpu, dynamodb, sent) = (&cost.cpu, &cost.dynamodb, &cost.sent);
            line(&format!("{moved} of {} pain points", grouped(members)), range(latency));
            line("  CPU time", ms(cpu.median()));
            line("  embedded DynamoDB's time", ms(dynamodb.median()));
            let (item, transaction) = (kilobytes(sent.item), kilobytes(sent.transaction));
            line("  round trips, most", sent.calls.to_string());
            line("  largest item", format!("{item:.1} kB"));
            let transaction = format!("{transaction:.1} kB in {} actions", sent.actions);
            line("  largest transaction", transaction);
        };
        println!("\nsplit-insight, warm");
        print(SMALL, small);
        print(LARGE, large);
        line("  as a multiple of the small one's", times(self.insights.ratio()));
    }
}

//! The report of flag evaluation.

use super::Figures;
use super::units::{ms, range};
use crate::evaluation::{Evaluations, FLAGS, RULES};
use crate::statistics::grouped;

impl Figures {
    pub(super) fn print_evaluations(&self) {
        let Evaluations { rules_alone, single, bulk, uncached, .. } = &self.evaluations;
        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        println!("\nevaluation of flags with {RULES} rules, 5 conditions each");
        let micros = (rules_alone.median(), rules_alone.percentile(90));
        let alone = format!("{:.2} µs   90th percentile {:.2} µs", micros.0, micros.1);
        line("the rules alone, one flag", alone);
        line("one flag, cached", range(&single.latency));
        line("  CPU time", ms(single.median_cpu()));
        line(&format!("{} flags, cached", grouped(FLAGS)), range(&bulk.latency));
        line("  CPU time", ms(bulk.median_cpu()));
        line("  uncached", range(uncached));
    }
}

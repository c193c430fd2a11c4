//! The manifest of a day: its counted runs, and the runs to compact next.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use shared::id::random_bytes;
use shared::timestamp::Timestamp;

use super::day::Day;
use super::run::{ColumnName, Damaged, Totals, Unread, put_bytes, put_number, put_wide_number};

/// Number of runs of one level that triggers their compaction.
const FAN_IN: usize = 16;
/// Minimum events of a day for compacting all of its runs after the day: reading fewer events costs
/// less than rewriting them.
const COMPACTION_MIN_EVENTS: u64 = 1_000;
/// Minimum runs of a day for compacting them after the day, even if they have few events.
const COMPACTION_MIN_RUNS: usize = 4;
/// Maximum runs of one compaction: an expression names each of them, and DynamoDB limits it to 4
/// kB.
const MAX_COMPACTED_RUNS: usize = 40;
/// The level of a run that was compacted after its day. The other levels grow by one with each
/// compaction.
const FINAL_LEVEL: u8 = 100;
/// Delay between the end of a day and the compaction of all its runs: most late events have arrived
/// by then.
const DAY_CLOSE_DELAY: Duration = Duration::from_hours(48);

/// Limits of a compacted run: one function reads and builds it in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionLimits {
    /// Maximum events.
    pub events: u64,
    /// Maximum bytes of the columns.
    pub bytes: u64,
    /// Maximum bytes of the distinct values before compression, which can be a hundred times the
    /// bytes of the columns.
    pub values: u64,
    /// Number of runs of one level that triggers their compaction.
    pub fan_in: usize,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self { events: 200_000, bytes: 8_000_000, values: 32_000_000, fan_in: FAN_IN }
    }
}

/// The ID of a run, which is never reused. Displays as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 8]);

impl RunId {
    /// Returns a new ID.
    pub fn random() -> Self {
        Self(random_bytes())
    }

    /// Parses the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self(u64::from_str_radix(text, 16).ok()?.to_be_bytes());
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// The items that store the columns of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunLayout {
    /// One item stores all columns.
    Bundle,
    /// Each column has its own item. The map has the number of items of columns with several, and
    /// of all tags.
    Columns(BTreeMap<ColumnName, usize>),
}

/// The manifest's entry of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The ID.
    pub id: RunId,
    /// The pack step of the oldest events.
    pub first_step: u64,
    /// The pack step of the latest events.
    pub last_step: u64,
    /// A time by which all events had been received.
    pub until: Timestamp,
    /// The number of compactions of the events. The compaction after the day sets a final level.
    pub level: u8,
    /// The bytes of the columns.
    pub bytes: u64,
    /// The bytes of the distinct values before compression.
    pub values: u64,
    /// The items of the columns.
    pub form: RunLayout,
    /// The numbers of events and errors.
    pub totals: Totals,
}

impl Run {
    /// Returns the number of events.
    pub fn events(&self) -> u64 {
        u64::from(self.totals.whole().events)
    }

    /// Returns the names of all columns. The item of a bundle has further ones of tags.
    pub fn columns(&self) -> impl Iterator<Item = ColumnName> {
        let tags = match &self.form {
            RunLayout::Bundle => None,
            RunLayout::Columns(parts) => Some(parts.keys().copied().filter(|it| it.is_tag())),
        };
        ColumnName::all().chain(tags.into_iter().flatten())
    }

    /// Encodes all fields except the ID in about 20 to 150 bytes, and up to 40 for each tag with its
    /// own item. The format version comes first, the columns with several items and the tags last.
    ///
    /// Readers ignore bytes that a later release adds at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT, self.level];
        // Only the time of backfilled runs is before 1970: they come from no log.
        let until = self.until.as_millis().max(0).unsigned_abs();
        for number in [self.first_step, self.last_step, until, self.bytes, self.values] {
            put_wide_number(number, &mut bytes);
        }
        put_bytes(&self.totals.to_bytes(), &mut bytes);
        match &self.form {
            RunLayout::Bundle => bytes.push(BUNDLE),
            RunLayout::Columns(parts) => {
                bytes.push(COLUMNS);
                let listed = || parts.iter().filter(|(name, parts)| name.is_tag() || **parts > 1);
                put_number(listed().count(), &mut bytes);
                for (name, parts) in listed() {
                    put_bytes(name.name().as_bytes(), &mut bytes);
                    put_number(*parts, &mut bytes);
                }
            }
        }
        bytes
    }

    /// Decodes the output of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    ///
    /// [`Damaged`] if the bytes are not a valid encoding.
    pub fn from_bytes(id: RunId, bytes: &[u8]) -> Result<Self, Damaged> {
        let Some(([FORMAT, level], rest)) = bytes.split_first_chunk() else {
            return Err(Damaged("a run in a manifest has an unknown format"));
        };
        let (level, mut unread) = (*level, Unread::part(rest));
        let first_step = unread.wide_number()?;
        let last_step = unread.wide_number()?;
        let until = i64::try_from(unread.wide_number()?).unwrap_or(i64::MAX);
        let until = Timestamp::from_millis(until);
        let (bytes, values) = (unread.wide_number()?, unread.wide_number()?);
        let totals = Totals::from_bytes(unread.bytes()?)?;
        let form = match unread.take(1)? {
            [BUNDLE] => RunLayout::Bundle,
            [COLUMNS] => RunLayout::Columns(take_parts(&mut unread)?),
            _ => return Err(Damaged("a run is neither a bundle nor columns")),
        };
        Ok(Self { id, first_step, last_step, until, level, bytes, values, form, totals })
    }
}

/// The format version, the first byte of [`Run::to_bytes`].
const FORMAT: u8 = 1;
const BUNDLE: u8 = 0;
const COLUMNS: u8 = 1;

fn take_parts(unread: &mut Unread<'_>) -> Result<BTreeMap<ColumnName, usize>, Damaged> {
    let mut parts = BTreeMap::new();
    for _ in 0..unread.length()? {
        let (name, number) = (unread.bytes()?, unread.length()?);
        // Queries read every item, and a valid column has a few dozen at most.
        if number > usize::from(u8::MAX) {
            return Err(Damaged("a column has too many items"));
        }
        // A later release can add columns: ignore unknown names.
        let name = str::from_utf8(name).ok().and_then(ColumnName::parse);
        let is_listed = |name: &ColumnName| name.is_tag() || number > 1;
        parts.extend(name.filter(is_listed).map(|name| (name, number)));
    }
    Ok(parts)
}

/// The counted and the replaced runs of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The day of the events.
    pub day: Day,
    /// The counted runs.
    pub runs: Vec<Run>,
    /// Runs that were compacted into others, and when. Queries with an older manifest still read
    /// them.
    pub replaced: Vec<(Run, Timestamp)>,
}

impl Manifest {
    /// Returns groups of runs to compact at `now`, and the level of the run that each becomes.
    ///
    /// Groups contain only runs up to the step `readable`. The caller compacts the first group
    /// whose runs can be read.
    ///
    /// Runs of one level are compacted once there are many, so each event is rewritten only
    /// a few times. After the day, all of its small runs are compacted.
    pub fn next_compactions(
        &self,
        readable: u64,
        limits: &CompactionLimits,
        now: Timestamp,
    ) -> Vec<(u8, Vec<&Run>)> {
        let is_small = |run: &&Run| {
            // Two runs over half a limit do not fit into one.
            run.last_step <= readable
                && run.events() < limits.events / 2
                && run.bytes < limits.bytes / 2
                && run.values < limits.values / 2
        };
        let mut levels: BTreeMap<u8, Vec<&Run>> = BTreeMap::new();
        for run in self.runs.iter().filter(is_small) {
            levels.entry(run.level).or_default().push(run);
        }
        let is_closed = self.runs.iter().any(|run| run.level >= FINAL_LEVEL);
        let events: u64 = self.runs.iter().map(Run::events).sum();
        let is_worth_it = self.runs.len() >= COMPACTION_MIN_RUNS
            || self.runs.len() > 1 && events >= COMPACTION_MIN_EVENTS;
        if now >= self.day.next().start().plus(DAY_CLOSE_DELAY) && !is_closed && is_worth_it {
            let all = levels.values().flatten().copied().collect();
            return fitting(all, limits).map(|runs| (FINAL_LEVEL, runs)).into_iter().collect();
        }
        let many = levels.into_iter().filter(|(_, runs)| runs.len() >= limits.fan_in);
        let compacted =
            |(level, runs): (u8, Vec<_>)| Some((level.saturating_add(1), fitting(runs, limits)?));
        many.filter_map(compacted).collect()
    }
}

/// Returns as many runs as one run can hold, the smallest first. `None` if fewer than two fit.
fn fitting<'m>(mut runs: Vec<&'m Run>, limits: &CompactionLimits) -> Option<Vec<&'m Run>> {
    runs.sort_by_key(|run| (run.bytes, run.id));
    let (mut events, mut bytes, mut values) = (0, 0, 0);
    let fits = |run: &&Run| {
        events += run.events();
        bytes += run.bytes;
        // An upper bound: values that several runs share are summed several times.
        values += run.values;
        events <= limits.events && bytes <= limits.bytes && values <= limits.values
    };
    let fitting: Vec<&Run> = runs.into_iter().take_while(fits).take(MAX_COMPACTED_RUNS).collect();
    (fitting.len() >= 2).then_some(fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::attribute::Attribute;
    use crate::category::Attributes;
    use crate::grouping::Fingerprint;
    use crate::log::row::EventRow;
    use crate::log::run::{Base, Decoder, pack};

    const BASE: ColumnName = ColumnName::Base;

    fn start() -> Timestamp {
        Timestamp::parse_rfc3339("2026-11-21T00:00:00Z").unwrap()
    }

    fn run(level: u8, events: usize, bytes: u64, step: u64) -> Run {
        let (occurred_at, fingerprint) = (start(), Fingerprint([0; 16]));
        let row = EventRow { occurred_at, fingerprint, attributes: Attributes::default() };
        let columns = pack(Day::of(start()), &vec![row; events]).unwrap();
        let base = columns.get(ColumnName::Base).unwrap();
        let totals = Base::decode(&mut Decoder::new(), base).unwrap().totals();
        let (first_step, last_step) = (step, step);
        let (id, until, values, form) = (RunId::random(), start(), 0, RunLayout::Bundle);
        Run { id, first_step, last_step, until, level, bytes, values, form, totals }
    }

    fn manifest(runs: Vec<Run>) -> Manifest {
        Manifest { day: Day::of(start()), runs, replaced: Vec::new() }
    }

    fn count(manifest: &Manifest, readable: u64, hours: u64) -> usize {
        let now = start().plus(Duration::from_hours(hours));
        let compactions = manifest.next_compactions(readable, &CompactionLimits::default(), now);
        compactions.first().map_or(0, |(_, runs)| runs.len())
    }

    #[test]
    fn many_runs_of_one_level_are_compacted() {
        let mut manifest = manifest((1..16).map(|step| run(0, 1, 100, step)).collect());
        assert_eq!(count(&manifest, 99, 1), 0);
        manifest.runs.push(run(1, 1, 100, 16));
        assert_eq!(count(&manifest, 99, 1), 0, "the new run has another level");
        manifest.runs.push(run(0, 1, 100, 17));
        assert_eq!(count(&manifest, 99, 1), 16);
        assert_eq!(count(&manifest, 16, 1), 0, "one run is not yet readable");
    }

    #[test]
    fn finished_days_are_compacted_once() {
        let mut manifest = manifest((0..4).map(|level| run(level, 1, 100, 1)).collect());
        assert_eq!((count(&manifest, 1, 71), count(&manifest, 1, 72)), (0, 4));
        manifest.runs = vec![run(FINAL_LEVEL, 4, 300, 1), run(0, 1, 100, 2), run(1, 1, 100, 2)];
        manifest.runs.push(run(2, 1, 100, 2));
        assert_eq!(count(&manifest, 2, 72), 0, "later runs are compacted by level");
        manifest.runs.truncate(3);
        manifest.runs.remove(0);
        assert_eq!(count(&manifest, 2, 72), 0, "few runs with few events stay");
        manifest.runs[0] = run(0, 999, 100, 2);
        assert_eq!(count(&manifest, 2, 72), 2, "few runs with many events are compacted");
    }

    #[test]
    fn one_compaction_takes_at_most_40_runs() {
        let manifest = manifest((0..500).map(|step| run(0, 1, 100, step)).collect());
        assert_eq!((count(&manifest, 999, 1), count(&manifest, 999, 99)), (40, 40));
    }

    #[test]
    fn full_runs_are_not_compacted() {
        let full = |_| run(0, 1, 4_000_000, 1);
        assert_eq!(count(&manifest((0..20).map(full).collect()), 1, 1), 0);
        let third = |_| run(0, 1, 3_000_000, 1);
        assert_eq!(count(&manifest((0..20).map(third).collect()), 1, 1), 2);
    }

    #[test]
    fn runs_with_too_many_values_stay_separate() {
        let long = |values| move |_| Run { values, ..run(0, 1, 100, 1) };
        assert_eq!(count(&manifest((0..20).map(long(16_000_000)).collect()), 1, 1), 0);
        assert_eq!(count(&manifest((0..20).map(long(15_000_000)).collect()), 1, 1), 2);
    }

    #[test]
    fn runs_are_grouped_by_level() {
        let runs = (0..40).map(|number| run(number % 2, 1, 100, 1)).collect();
        let manifest = manifest(runs);
        let groups = manifest.next_compactions(1, &CompactionLimits::default(), start());
        let sizes: Vec<_> = groups.iter().map(|(level, runs)| (*level, runs.len())).collect();
        assert_eq!(sizes, [(1, 20), (2, 20)]);
        let is_next =
            |(level, runs): &(u8, Vec<&Run>)| runs.iter().all(|it| it.level + 1 == *level);
        assert!(groups.iter().all(is_next));
    }

    fn several_items(names: &[(ColumnName, usize)]) -> RunLayout {
        RunLayout::Columns(names.iter().copied().collect())
    }

    #[test]
    fn encoded_runs_decode_unchanged() {
        let url = ColumnName::Category(Attribute::Url.into());
        for form in [RunLayout::Bundle, several_items(&[]), several_items(&[(url, 2), (BASE, 255)])]
        {
            for step in [0, 127, u64::MAX] {
                let run =
                    Run { form: form.clone(), values: step, ..run(FINAL_LEVEL, 3, step, step) };
                assert_eq!(Run::from_bytes(run.id, &run.to_bytes()), Ok(run));
            }
        }
    }

    /// Runs are kept for 400 days, so later releases must read the bytes of this one.
    #[test]
    fn encoding_is_stable() {
        let form = several_items(&[(BASE, 3), (ColumnName::Minutes, 1)]);
        let run = Run { form, values: 300, ..run(2, 2, 5, 7) };
        let expected = b"\x01\x02\x07\x07\x80\xb0\x9c\xdb\x9f4\x05\xac\x02\
            \x05\x01\x01\x02\x01\x01\x01\x01\x04base\x03";
        assert_eq!(run.to_bytes().escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn bytes_of_later_releases_are_ignored() {
        let mut later = run(0, 1, 100, 1);
        later.form = RunLayout::Columns(BTreeMap::new());
        let mut bytes = later.to_bytes();
        assert_eq!(bytes.pop(), Some(0));
        bytes.extend(b"\x01\x07unknown\x02and more");
        assert_eq!(Run::from_bytes(later.id, &bytes), Ok(later));
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let run = Run { form: several_items(&[(BASE, 3)]), ..run(2, 2, 5, 7) };
        let whole = run.to_bytes();
        for length in 0..whole.len() {
            assert!(Run::from_bytes(run.id, &whole[..length]).is_err(), "{length} bytes");
        }
        let other_form = [&[FORMAT + 1], &whole[1..]].concat();
        assert!(Run::from_bytes(run.id, &other_form).is_err());
        let too_many = [&whole[..whole.len() - 1], &[0x80, 2]].concat();
        assert!(Run::from_bytes(run.id, &too_many).is_err());
    }

    proptest! {
        #[test]
        fn changed_bytes_decode_or_are_rejected(at in any::<Index>(), byte in any::<u8>()) {
            let run = Run { form: several_items(&[(BASE, 3)]), ..run(2, 2, 5, 7) };
            let mut bytes = run.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(changed) = Run::from_bytes(run.id, &bytes) {
                prop_assert_eq!(Run::from_bytes(run.id, &changed.to_bytes()), Ok(changed));
            }
        }
    }

    #[test]
    fn run_ids_parse_their_display() {
        let id = RunId::random();
        assert_eq!(RunId::parse(&id.to_string()), Some(id));
        assert_eq!(RunId::parse("1"), None);
    }
}

//! Which runs of a day count, and which of them are merged next.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use shared::id::random_bytes;
use shared::timestamp::Timestamp;

use super::day::Day;
use super::run::{ColumnName, Damaged, Totals, Unread, put_bytes, put_number, put_wide_number};

/// How many runs of one level are merged at once.
const FAN_IN: usize = 16;
/// From how many events on all of a day's runs are merged when the day is over: reading fewer than these
/// costs less than writing them anew.
const COMPACTION_MIN_EVENTS: u64 = 1_000;
/// From how many runs on they are merged however few events they have.
const COMPACTION_MIN_RUNS: usize = 4;
/// The most runs that are merged at once: DynamoDB takes 4 kB of an expression that names them.
const MOST_AT_ONCE: usize = 40;
/// The level of what is merged when its day is over. The other levels grow by one with each merging.
const FINAL_LEVEL: u8 = 100;
/// How long after its end a day is merged as a whole: most late events have come by then.
const DAY_CLOSE_DELAY: Duration = Duration::from_hours(48);

/// How large a merged run becomes: it is read and made in the memory of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionLimits {
    /// The most events.
    pub events: u64,
    /// The most bytes of its columns.
    pub bytes: u64,
    /// The most bytes of its distinct values before they are compressed. Some hundred times as much may be
    /// in so many bytes of columns.
    pub values: u64,
    /// How many runs of one level are merged at once.
    pub fan_in: usize,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self { events: 1_000_000, bytes: 8_000_000, values: 32_000_000, fan_in: FAN_IN }
    }
}

/// The identity of a run: displays as 16 hexadecimal digits, and is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 8]);

impl RunId {
    /// A new identity.
    pub fn random() -> Self {
        Self(random_bytes())
    }

    /// Reads what [`fmt::Display`] writes.
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

/// Into how many items the columns of a run are split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunLayout {
    /// All of them are in one.
    Bundle,
    /// Each has one of its own, and those that are named have so many.
    Columns(BTreeMap<ColumnName, usize>),
}

/// A run, as its manifest refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which one.
    pub id: RunId,
    /// The step of packing that the oldest of its events are from.
    pub first_step: u64,
    /// The step that the latest of them are from.
    pub last_step: u64,
    /// When all of its events had been received.
    pub until: Timestamp,
    /// How often its events were merged.
    pub level: u8,
    /// The bytes of its columns.
    pub bytes: u64,
    /// The bytes of its distinct values before they are compressed.
    pub values: u64,
    /// The items of its columns.
    pub form: RunLayout,
    /// How many events and errors it has.
    pub totals: Totals,
}

impl Run {
    /// How many events it has.
    pub fn events(&self) -> u64 {
        u64::from(self.totals.whole().events)
    }

    /// All but its identity, in some 20 to 150 bytes: a byte for the form of what follows, its steps, times
    /// and sizes, its totals, and the columns that have several items. What a later release adds at the end
    /// is left unread.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM, self.level];
        // Earlier than 1970 is only what was imported, which is in no log.
        let until = self.until.as_millis().max(0).unsigned_abs();
        for number in [self.first_step, self.last_step, until, self.bytes, self.values] {
            put_wide_number(number, &mut bytes);
        }
        put_bytes(&self.totals.to_bytes(), &mut bytes);
        match &self.form {
            RunLayout::Bundle => bytes.push(BUNDLE),
            RunLayout::Columns(parts) => {
                bytes.push(COLUMNS);
                let several = || parts.iter().filter(|(_, parts)| **parts > 1);
                put_number(several().count(), &mut bytes);
                for (name, parts) in several() {
                    put_bytes(name.name().as_bytes(), &mut bytes);
                    put_number(*parts, &mut bytes);
                }
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) made.
    ///
    /// # Errors
    ///
    /// [`Damaged`], if these are not its bytes.
    pub fn from_bytes(id: RunId, bytes: &[u8]) -> Result<Self, Damaged> {
        let Some(([FORM, level], rest)) = bytes.split_first_chunk() else {
            return Err(Damaged("a run in a manifest has an unknown form"));
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

/// The first byte of what [`Run::to_bytes`] writes.
const FORM: u8 = 1;
const BUNDLE: u8 = 0;
const COLUMNS: u8 = 1;

fn take_parts(unread: &mut Unread<'_>) -> Result<BTreeMap<ColumnName, usize>, Damaged> {
    let mut parts = BTreeMap::new();
    for _ in 0..unread.length()? {
        let (name, number) = (unread.bytes()?, unread.length()?);
        // Each item is read: a column has some dozens at most.
        if number > usize::from(u8::MAX) {
            return Err(Damaged("a column has too many items"));
        }
        // A column that a later release adds is not read by this one.
        let name = ColumnName::all().find(|it| it.name().as_bytes() == name);
        parts.extend(name.filter(|_| number > 1).map(|name| (name, number)));
    }
    Ok(parts)
}

/// Which runs of a day count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The day in which the events occurred.
    pub day: Day,
    /// The runs that count.
    pub runs: Vec<Run>,
    /// Runs that were merged into others, and when: those who have read an older manifest read them.
    pub replaced: Vec<(Run, Timestamp)>,
}

impl Manifest {
    /// Runs of which each group is to be merged into one at `now`, of those that are `readable`; none if
    /// there is nothing to merge. The first group whose runs can be read is enough at a time. The level of
    /// what it becomes is [`merged_level`](Self::merged_level).
    ///
    /// Runs of one level are merged when there are many of them, so that each event is written again
    /// a few times only; and all of a day once it is over.
    pub fn next_mergings(
        &self,
        readable: u64,
        limits: &CompactionLimits,
        now: Timestamp,
    ) -> Vec<Vec<&Run>> {
        let is_small = |run: &&Run| {
            // Two halves make a whole: what is larger than half finds nothing to be merged with.
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
            return fitting(all, limits).into_iter().collect();
        }
        let many = levels.into_values().filter(|runs| runs.len() >= limits.fan_in);
        many.filter_map(|runs| fitting(runs, limits)).collect()
    }

    /// The level of what these runs are merged into at `now`.
    pub fn merged_level(&self, runs: &[&Run], now: Timestamp) -> u8 {
        if now >= self.day.next().start().plus(DAY_CLOSE_DELAY)
            && !self.runs.iter().any(|run| run.level >= FINAL_LEVEL)
        {
            return FINAL_LEVEL;
        }
        let highest = runs.iter().map(|run| run.level).max().unwrap_or_default();
        highest.saturating_add(1)
    }
}

/// As many of the runs as one holds, the smallest first; none if these are not at least two.
fn fitting<'m>(mut runs: Vec<&'m Run>, limits: &CompactionLimits) -> Option<Vec<&'m Run>> {
    runs.sort_by_key(|run| (run.bytes, run.id));
    let (mut events, mut bytes, mut values) = (0, 0, 0);
    let fits = |run: &&Run| {
        events += run.events();
        bytes += run.bytes;
        // Values that several have are in the sum several times: it is as many as there can be.
        values += run.values;
        events <= limits.events && bytes <= limits.bytes && values <= limits.values
    };
    let fitting: Vec<&Run> = runs.into_iter().take_while(fits).take(MOST_AT_ONCE).collect();
    (fitting.len() >= 2).then_some(fitting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::attribute::{Attribute, Attributes};
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
        let mergings = manifest.next_mergings(readable, &CompactionLimits::default(), now);
        mergings.first().map_or(0, Vec::len)
    }

    #[test]
    fn many_runs_of_one_level_are_merged() {
        let mut manifest = manifest((1..16).map(|step| run(0, 1, 100, step)).collect());
        assert_eq!(count(&manifest, 99, 1), 0);
        manifest.runs.push(run(1, 1, 100, 16));
        assert_eq!(count(&manifest, 99, 1), 0, "another level");
        manifest.runs.push(run(0, 1, 100, 17));
        assert_eq!(count(&manifest, 99, 1), 16);
        assert_eq!(count(&manifest, 16, 1), 0, "one of them is not yet readable");
    }

    #[test]
    fn a_day_that_is_over_is_merged_once() {
        let mut manifest = manifest((0..4).map(|level| run(level, 1, 100, 1)).collect());
        assert_eq!((count(&manifest, 1, 71), count(&manifest, 1, 72)), (0, 4));
        manifest.runs = vec![run(FINAL_LEVEL, 4, 300, 1), run(0, 1, 100, 2), run(1, 1, 100, 2)];
        manifest.runs.push(run(2, 1, 100, 2));
        assert_eq!(count(&manifest, 2, 72), 0, "what came since is merged by levels");
        manifest.runs.truncate(3);
        manifest.runs.remove(0);
        assert_eq!(count(&manifest, 2, 72), 0, "few runs of few events are left as they are");
        manifest.runs[0] = run(0, 999, 100, 2);
        assert_eq!(count(&manifest, 2, 72), 2, "few runs of many events are not");
    }

    #[test]
    fn no_more_runs_are_merged_at_once_than_one_write_can_name() {
        let manifest = manifest((0..500).map(|step| run(0, 1, 100, step)).collect());
        assert_eq!((count(&manifest, 999, 1), count(&manifest, 999, 99)), (40, 40));
    }

    #[test]
    fn what_is_full_is_left_as_it_is() {
        let full = |_| run(0, 1, 4_000_000, 1);
        assert_eq!(count(&manifest((0..20).map(full).collect()), 1, 1), 0);
        let third = |_| run(0, 1, 3_000_000, 1);
        assert_eq!(count(&manifest((0..20).map(third).collect()), 1, 1), 2);
    }

    #[test]
    fn runs_are_not_merged_whose_values_are_too_long_together() {
        let long = |values| move |_| Run { values, ..run(0, 1, 100, 1) };
        assert_eq!(count(&manifest((0..20).map(long(16_000_000)).collect()), 1, 1), 0);
        assert_eq!(count(&manifest((0..20).map(long(15_000_000)).collect()), 1, 1), 2);
    }

    #[test]
    fn runs_of_each_level_that_has_many_are_a_group() {
        let runs = (0..40).map(|number| run(number % 2, 1, 100, 1)).collect();
        let manifest = manifest(runs);
        let groups = manifest.next_mergings(1, &CompactionLimits::default(), start());
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20]);
        assert!(groups.iter().all(|runs| runs.iter().all(|run| run.level == runs[0].level)));
    }

    fn several_items(names: &[(ColumnName, usize)]) -> RunLayout {
        RunLayout::Columns(names.iter().copied().collect())
    }

    #[test]
    fn what_is_written_is_read() {
        let url = ColumnName::Attribute(Attribute::Url);
        for form in [RunLayout::Bundle, several_items(&[]), several_items(&[(url, 2), (BASE, 255)])]
        {
            for step in [0, 127, u64::MAX] {
                let run =
                    Run { form: form.clone(), values: step, ..run(FINAL_LEVEL, 3, step, step) };
                assert_eq!(Run::from_bytes(run.id, &run.to_bytes()), Ok(run));
            }
        }
    }

    /// Runs are there for 400 days: what is written today must be read by what is written tomorrow.
    #[test]
    fn the_form_stays() {
        let form = several_items(&[(BASE, 3), (ColumnName::Minutes, 1)]);
        let run = Run { form, values: 300, ..run(2, 2, 5, 7) };
        let expected = b"\x01\x02\x07\x07\x80\xb0\x9c\xdb\x9f4\x05\xac\x02\
            \x05\x01\x01\x02\x01\x01\x01\x01\x04base\x03";
        assert_eq!(run.to_bytes().escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn what_a_later_release_adds_is_left_unread() {
        let mut later = run(0, 1, 100, 1);
        later.form = RunLayout::Columns(BTreeMap::new());
        let mut bytes = later.to_bytes();
        assert_eq!(bytes.pop(), Some(0));
        bytes.extend(b"\x01\x07unknown\x02and more");
        assert_eq!(Run::from_bytes(later.id, &bytes), Ok(later));
    }

    #[test]
    fn damaged_bytes_are_told() {
        let run = Run { form: several_items(&[(BASE, 3)]), ..run(2, 2, 5, 7) };
        let whole = run.to_bytes();
        for length in 0..whole.len() {
            assert!(Run::from_bytes(run.id, &whole[..length]).is_err(), "{length} bytes");
        }
        let other_form = [&[FORM + 1], &whole[1..]].concat();
        assert!(Run::from_bytes(run.id, &other_form).is_err());
        let too_many = [&whole[..whole.len() - 1], &[0x80, 2]].concat();
        assert!(Run::from_bytes(run.id, &too_many).is_err());
    }

    proptest! {
        #[test]
        fn changed_bytes_are_read_or_told_damaged(at in any::<Index>(), byte in any::<u8>()) {
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
    fn an_id_is_read_as_it_is_shown() {
        let id = RunId::random();
        assert_eq!(RunId::parse(&id.to_string()), Some(id));
        assert_eq!(RunId::parse("1"), None);
    }
}

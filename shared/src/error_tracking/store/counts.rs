//! Reading what a query counts, in table `errors`: as little of it as tells the answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::error_tracking::ErrorRecord;
use crate::error_tracking::log::day::{Day, Hours};
use crate::error_tracking::log::day_state::{DayState, SegmentState};
use crate::error_tracking::log::row::{EventRow, Fingerprint};
use crate::error_tracking::log::segment::{Base, ColumnName, Columns, Decoder};
use crate::error_tracking::query::count::{CountedErrors, Counter};
use crate::error_tracking::query::day_plan::{DayPlan, Demand, SegmentPlan};
use crate::error_tracking::query::search::SearchedError;
use crate::error_tracking::query::timeseries::TimeseriesQuery;
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::days::{MAX_SEGMENT_BYTES, ReadColumns};
use super::errors::TABLE;
use super::events::EVENT_RETENTION;
use super::packing::{NewErrorId, PackingLimits};
use crate::dynamodb::{Store, StoreError};

/// Queries under way at once for one project.
const PARALLEL: usize = 8;

/// How many days of a project a query packs before it reads, at most: the schedule does the rest.
const DAYS_PACKED_BY_A_QUERY: usize = 2;

/// How much of a day it packs: several projects are read at once.
const PACKED_BY_A_QUERY: PackingLimits =
    PackingLimits { rows: 60_000, bytes: MAX_SEGMENT_BYTES, sets_aside: false };

/// How long it takes for that, at most.
const PACKING_BUDGET: Duration = Duration::from_secs(1);

/// What is known of the events of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// How many can still be listed.
    pub events: u64,
    /// When the latest of these occurred.
    pub latest: Option<Timestamp>,
}

/// What was read of a project to answer a query.
pub struct ProjectEvents {
    errors: CountedErrors,
    days: Vec<DayEvents>,
}

/// What was read of a day.
struct DayEvents {
    state: DayState,
    segments: Vec<SegmentPlan>,
    columns: Vec<Option<Columns>>,
    rows: Vec<EventRow>,
}

impl ProjectEvents {
    /// Counts what was read.
    pub fn count(mut self, counter: &mut Counter<'_>) -> Result<(), StoreError> {
        for day in self.days {
            let mut counting = counter.day(&mut self.errors, day.state.day);
            let parts = day.state.segments.iter().zip(&day.segments).zip(&day.columns);
            for ((segment, plan), columns) in parts {
                match (plan, columns) {
                    (SegmentPlan::Totals(hours), _) => {
                        counting.add_totals(*hours, &segment.totals);
                    }
                    (SegmentPlan::Columns(hours, _), Some(columns)) => {
                        counting.add_segment(*hours, columns).map_err(|_| damaged())?;
                    }
                    _ => {}
                }
            }
            counting.add_rows(&day.rows);
        }
        Ok(())
    }
}

impl Store {
    /// Reads what a query counts of a project. Strongly consistent, but for segments, which say
    /// themselves whether they are the ones that are asked for: what was acknowledged is counted.
    pub async fn read_project_events(
        &self,
        project: ProjectId,
        query: &TimeseriesQuery,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<ProjectEvents, StoreError> {
        let range = &query.range;
        let (Some(first), Some(last)) = (range.days().next(), range.days().last()) else {
            return Ok(ProjectEvents { errors: CountedErrors::default(), days: Vec::new() });
        };
        let counts_every_error = query.status.is_none() && query.search.matches_every_error();
        let read_errors = async {
            if counts_every_error {
                return Ok::<_, StoreError>(CountedErrors::default());
            }
            let wanted = |error: &ErrorRecord| is_wanted(error, query);
            self.find_errors_that(project, wanted).await.map(CountedErrors::only)
        };
        let (mut days, errors) =
            tokio::try_join!(self.list_days(project, first, last, now), read_errors)?;
        let packing = self.pack_some_days(project, &mut days, new_error_id, now);
        // What is not packed in time is counted from rows.
        let _ = tokio::time::timeout(PACKING_BUDGET, packing).await;
        let demand = Demand {
            range,
            filters: &query.event_filters,
            every_fingerprint_counts: counts_every_error,
        };
        let plans = days.into_iter().map(|state| {
            let hours: Vec<Hours> = state.segments.iter().map(|segment| segment.hours).collect();
            let plan = DayPlan::new(&demand, state.day, &hours, state.dirty());
            (state, plan)
        });
        let days = self.read_days(project, plans.collect(), now).await?;
        Ok(ProjectEvents { errors, days })
    }

    /// Packs what the schedule has not packed yet. What cannot be packed is counted from rows.
    async fn pack_some_days(
        &self,
        project: ProjectId,
        days: &mut [DayState],
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) {
        let unpacked = days.iter_mut().filter(|state| !state.to_pack(now).is_empty());
        for state in unpacked.take(DAYS_PACKED_BY_A_QUERY) {
            let packed = self.pack_day(project, state.day, &PACKED_BY_A_QUERY, new_error_id, now);
            if let Ok(packed) = packed.await {
                *state = packed;
            }
        }
    }

    /// What is known of the events of an error.
    pub async fn find_activity(
        &self,
        project: ProjectId,
        error: &ErrorRecord,
        now: Timestamp,
    ) -> Result<Activity, StoreError> {
        let fingerprint = error.description.fingerprint;
        let (counts, latest) = tokio::try_join!(
            self.count_events_by_error(project, now),
            self.latest_events(project, std::iter::once(fingerprint), now)
        )?;
        Ok(Activity {
            events: counts.get(&fingerprint).copied().unwrap_or_default(),
            latest: latest.get(&fingerprint).copied(),
        })
    }

    async fn read_days(
        &self,
        project: ProjectId,
        plans: Vec<(DayState, DayPlan)>,
        now: Timestamp,
    ) -> Result<Vec<DayEvents>, StoreError> {
        let mut columns = self.read_planned_columns(project, &plans).await?;
        let mut days = Vec::with_capacity(plans.len());
        for (state, mut plan) in plans {
            let mut read = Vec::with_capacity(plan.segments.len());
            for (segment, planned) in state.segments.iter().zip(&mut plan.segments) {
                let found = match &*planned {
                    SegmentPlan::Columns(_, names) => {
                        take_columns(&mut columns, &state, segment, names)
                    }
                    _ => None,
                };
                if let (SegmentPlan::Columns(hours, _), None) = (&*planned, &found) {
                    // The segment is just being written anew. Its rows are still there.
                    plan.rows = plan.rows.with(*hours);
                    *planned = SegmentPlan::Skipped;
                }
                read.push(found);
            }
            days.push((state, plan, read));
        }
        let days: Vec<_> = days
            .into_iter()
            .map(|(state, plan, columns)| self.read_rows_of(project, state, plan, columns, now))
            .collect();
        stream::iter(days).buffered(PARALLEL).try_collect().await
    }

    async fn read_rows_of(
        &self,
        project: ProjectId,
        state: DayState,
        plan: DayPlan,
        columns: Vec<Option<Columns>>,
        now: Timestamp,
    ) -> Result<DayEvents, StoreError> {
        // No event has a time that far in the future.
        let begun = plan.rows.iter().filter(|hour| {
            let begins = state.day.start().plus(Duration::from_hours(u64::from(*hour)));
            begins <= now.plus(Duration::from_hours(1))
        });
        let rows = self.read_rows(project, state.day, state.shards, begun.collect(), now).await?;
        Ok(DayEvents { state, segments: plan.segments, columns, rows })
    }

    /// Reads the columns that plans name, each in as few queries as there are gaps between its days.
    async fn read_planned_columns(
        &self,
        project: ProjectId,
        plans: &[(DayState, DayPlan)],
    ) -> Result<HashMap<ColumnName, ReadColumns>, StoreError> {
        let mut wanted: BTreeMap<ColumnName, BTreeSet<Day>> = BTreeMap::new();
        for (state, plan) in plans {
            for segment in &plan.segments {
                let SegmentPlan::Columns(_, names) = segment else { continue };
                for name in names {
                    wanted.entry(*name).or_default().insert(state.day);
                }
            }
        }
        let reads: Vec<_> = wanted
            .into_iter()
            .flat_map(|(name, days)| {
                spans(days).into_iter().map(move |(first, last)| async move {
                    let read = self.read_column(project, name, first, last).await?;
                    Ok::<_, StoreError>((name, read))
                })
            })
            .collect();
        let mut reads = stream::iter(reads).buffer_unordered(PARALLEL);
        let mut columns: HashMap<ColumnName, ReadColumns> = HashMap::new();
        while let Some((name, read)) = reads.try_next().await? {
            columns.entry(name).or_default().extend(read);
        }
        Ok(columns)
    }

    /// How many events each error of a project has that can still be listed.
    pub async fn count_events_by_error(
        &self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<HashMap<Fingerprint, u64>, StoreError> {
        let (first, last) = (Day::of(now.minus(EVENT_RETENTION)), Day::of(now).next());
        let days = self.list_days(project, first, last, now).await?;
        let plans = days.into_iter().map(|state| {
            let dirty = state.dirty();
            let plan = |segment: &SegmentState| {
                SegmentPlan::Columns(segment.hours.without(dirty), vec![ColumnName::Base])
            };
            let segments = state.segments.iter().map(plan).collect();
            let rows = Hours::ALL.without(state.packed()).with(dirty);
            (state, DayPlan { segments, rows })
        });
        let mut counts = HashMap::new();
        let mut decoder = Decoder::new();
        for day in self.read_days(project, plans.collect(), now).await? {
            for (plan, columns) in day.segments.iter().zip(&day.columns) {
                let (SegmentPlan::Columns(hours, _), Some(columns)) = (plan, columns) else {
                    continue;
                };
                let base = columns.get(ColumnName::Base).map_err(|_| damaged())?;
                let base = Base::decode(&mut decoder, base).map_err(|_| damaged())?;
                for (fingerprint, events) in base.events_by_fingerprint(*hours) {
                    *counts.entry(fingerprint).or_default() += events;
                }
            }
            for row in &day.rows {
                *counts.entry(row.fingerprint).or_default() += 1;
            }
        }
        Ok(counts)
    }
}

fn is_wanted(error: &ErrorRecord, query: &TimeseriesQuery) -> bool {
    let description = &error.description;
    query.status.is_none_or(|status| status == error.status)
        && query.search.matches(&SearchedError {
            error_type: &description.error_type,
            message: &description.message,
            title: &description.title,
            culprit: &description.culprit,
        })
}

/// The columns of a segment, if all of them were read in its generation.
fn take_columns(
    columns: &mut HashMap<ColumnName, ReadColumns>,
    state: &DayState,
    segment: &SegmentState,
    names: &[ColumnName],
) -> Option<Columns> {
    let place = (state.day, segment.hours.iter().next()?);
    let take = |name: &ColumnName| {
        let (generation, bytes) = columns.get_mut(name)?.remove(&place)?;
        (generation == segment.generation).then_some((*name, bytes))
    };
    names.iter().map(take).collect()
}

/// The runs of neighbouring days, each with its last.
fn spans(days: BTreeSet<Day>) -> Vec<(Day, Day)> {
    let mut spans: Vec<(Day, Day)> = Vec::new();
    for day in days {
        match spans.last_mut() {
            Some((_, last)) if last.next() == day => *last = day,
            _ => spans.push((day, day)),
        }
    }
    spans
}

fn damaged() -> StoreError {
    StoreError::Damaged { table: TABLE, attribute: "bytes" }
}

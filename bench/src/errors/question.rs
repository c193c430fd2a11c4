//! What is asked of the data set, of a function and of `PostgreSQL`.

use serde_json::{Value as Json, json};
use shared::error_tracking::ErrorStatus;
use shared::error_tracking::attribute::Attribute;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{DataSet, PROJECTS};
use crate::Result;

/// How many events and errors each day of the data set has.
pub(super) struct Question {
    data_set: DataSet,
    /// Only events with these values.
    filters: Vec<(Attribute, String)>,
    /// Only errors with this status.
    status: Option<ErrorStatus>,
}

/// What there was in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DayCount {
    /// The start, in milliseconds since the Unix epoch.
    pub(super) start: i64,
    pub(super) events: u64,
    pub(super) errors: u64,
}

impl Question {
    /// Counts everything.
    pub(super) fn unfiltered(data_set: DataSet) -> Self {
        Self { data_set, filters: Vec::new(), status: None }
    }

    /// Counts events of a browser and a release, whose errors are open.
    pub(super) fn filtered(data_set: DataSet) -> Result<Self> {
        let filters = data_set.filters()?.into();
        Ok(Self { data_set, filters, status: Some(ErrorStatus::Open) })
    }

    /// Whether some events are not asked for.
    pub(super) fn is_filtered(&self) -> bool {
        !self.filters.is_empty() || self.status.is_some()
    }

    /// The body of a request that asks this.
    pub(super) fn body(&self, projects: &[ProjectId]) -> Json {
        let DataSet { from, to } = self.data_set;
        let filter = |(attribute, value): &(Attribute, String)| json!({"categoryId": attribute.name(), "operator": "is", "value": value});
        json!({
            "projectIds": projects,
            "from": from.as_millis(),
            "to": to.as_millis(),
            "filters": self.filters.iter().map(filter).collect::<Vec<_>>(),
            "status": self.status.map(ErrorStatus::as_str),
        })
    }

    /// A statement that asks this. `count(DISTINCT)` would sort all events; grouping by errors first
    /// takes half the time.
    pub(super) fn statement(&self) -> String {
        let DataSet { from, to } = self.data_set;
        let projects: Vec<String> = (0..PROJECTS).map(|project| project.to_string()).collect();
        let mut conditions = vec![
            format!("project_id = ANY (ARRAY[{}])", projects.join(", ")),
            format!("occurred_at >= '{from}'"),
            format!("occurred_at < '{to}'"),
        ];
        for (attribute, value) in &self.filters {
            conditions.push(format!("{} = '{value}'", attribute.name()));
        }
        let mut source = "error_events".to_owned();
        if let Some(status) = self.status {
            source.push_str(" JOIN errors ON errors.id = error_id");
            conditions.push(format!("status = '{}'", status.as_str()));
        }
        let conditions = conditions.join(" AND ");
        format!(
            "SELECT (extract(epoch FROM day) * 1000)::bigint, sum(events)::bigint, count(*)
             FROM (
                 SELECT date_bin('1 day', occurred_at, '1970-01-01T00:00:00Z') AS day, error_id,
                     count(*) AS events
                 FROM {source} WHERE {conditions}
                 GROUP BY day, error_id
             ) AS errors_of_days
             GROUP BY day ORDER BY day"
        )
    }
}

/// The days of an answer that have events.
pub(super) fn read_answer(answer: &str) -> Result<Vec<DayCount>> {
    let buckets: Vec<Json> = serde_json::from_str(answer)?;
    let mut days = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let start = bucket["bucketStart"].as_str().ok_or("a bucket has no start")?;
        let count = |name: &str| bucket[name].as_u64().ok_or("a bucket has no count");
        days.push(DayCount {
            start: Timestamp::parse_rfc3339(start)?.as_millis(),
            events: count("errors")?,
            errors: count("uniqueErrors")?,
        });
    }
    days.retain(|day| day.events > 0);
    Ok(days)
}

//! Questions about the data set, as requests to functions and as `PostgreSQL` statements.

use serde_json::{Value as Json, json};

use errors::ErrorStatus;
use errors::attribute::Attribute;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{DataSet, PROJECTS};
use crate::Result;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// A selection of the data set's events.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The start, a whole minute.
    pub(super) from: Timestamp,
    /// The end, a whole minute, exclusive.
    pub(super) to: Timestamp,
    /// The numbers of the projects.
    pub(super) projects: Vec<u8>,
    /// At most one filter per attribute.
    pub(super) filters: Vec<Filter>,
    /// Only errors with this status.
    pub(super) status: Option<ErrorStatus>,
}

/// A filter of events.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) attribute: Attribute,
    pub(super) operator: Operator,
    /// The value; `""` if the operator takes none.
    pub(super) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Is,
    IsNot,
    Contains,
    NotContains,
    IsSet,
    IsNotSet,
}

impl Operator {
    pub(super) const ALL: [Self; 6] =
        [Self::Is, Self::IsNot, Self::Contains, Self::NotContains, Self::IsSet, Self::IsNotSet];

    fn name(self) -> &'static str {
        match self {
            Self::Is => "is",
            Self::IsNot => "is_not",
            Self::Contains => "contains",
            Self::NotContains => "not_contains",
            Self::IsSet => "is_set",
            Self::IsNotSet => "is_not_set",
        }
    }

    pub(super) fn takes_value(self) -> bool {
        !matches!(self, Self::IsSet | Self::IsNotSet)
    }
}

/// The counts of a time bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketCount {
    /// The start, in milliseconds since the Unix epoch.
    pub(super) start: i64,
    pub(super) events: u64,
    pub(super) errors: u64,
}

impl Question {
    /// Returns the question that selects all events.
    pub(super) fn unfiltered(DataSet { from, to }: DataSet) -> Self {
        let projects = (0..PROJECTS).collect();
        Self { from, to, projects, filters: Vec::new(), status: None }
    }

    /// Returns the question that selects events of one browser and one release with open errors.
    pub(super) fn filtered(data_set: DataSet) -> Result<Self> {
        let is = |(attribute, value)| Filter { attribute, operator: Operator::Is, value };
        let filters = data_set.filters()?.map(is).into();
        Ok(Self { filters, status: Some(ErrorStatus::Open), ..Self::unfiltered(data_set) })
    }

    /// `true` if the question has filters or a status.
    pub(super) fn is_filtered(&self) -> bool {
        !self.filters.is_empty() || self.status.is_some()
    }

    /// Returns the request body for one project, which the path names.
    pub(super) fn body(&self) -> Json {
        let filter = |Filter { attribute, operator, value }: &Filter| json!({"categoryId": attribute.name(), "operator": operator.name(), "value": value});
        json!({
            "from": self.from.as_millis(),
            "to": self.to.as_millis(),
            "filters": self.filters.iter().map(filter).collect::<Vec<_>>(),
            "status": self.status.map(ErrorStatus::as_str),
        })
    }

    /// Returns the request body for the question's projects. `projects` has all projects of the
    /// data set.
    pub(super) fn body_of_projects(&self, projects: &[ProjectId]) -> Json {
        let id = |number: &u8| projects.get(usize::from(*number));
        let mut body = self.body();
        body["projectIds"] = json!(self.projects.iter().filter_map(id).collect::<Vec<_>>());
        body
    }

    /// Returns a statement that counts events and errors per bucket. It groups by error first,
    /// which takes half the time of `count(DISTINCT)`, which sorts all events.
    pub(super) fn timeseries(&self) -> String {
        let (source, seconds) = (self.source(), self.bucket_seconds());
        format!(
            "SELECT (extract(epoch FROM bucket) * 1000)::bigint, sum(events)::bigint, count(*)
             FROM (
                 SELECT date_bin('{seconds} seconds', occurred_at, '1970-01-01T00:00:00Z') AS bucket,
                     error_id, count(*) AS events
                 FROM {source}
                 GROUP BY bucket, error_id
             ) AS errors_of_buckets
             GROUP BY bucket ORDER BY bucket"
        )
    }

    /// Returns a statement that counts events and errors of the `limit` most frequent values of a
    /// category, and of all other values together.
    pub(super) fn breakdown(&self, by: Attribute, limit: u8) -> String {
        let (source, by) = (self.source(), by.name());
        format!(
            "WITH counted AS MATERIALIZED (
                 SELECT {by} AS value, error_id, count(*) AS events FROM {source} GROUP BY 1, 2
             ), top AS (
                 SELECT value, sum(events)::bigint AS events, count(*) AS errors FROM counted
                 GROUP BY value ORDER BY events DESC, value NULLS LAST LIMIT {limit}
             )
             SELECT value, events, errors, false FROM top
             UNION ALL
             SELECT NULL, sum(events)::bigint, count(DISTINCT error_id), true FROM counted
             WHERE NOT EXISTS (SELECT FROM top WHERE top.value IS NOT DISTINCT FROM counted.value)
             HAVING count(*) > 0"
        )
    }

    /// Returns a statement that counts events and users of each error.
    pub(super) fn errors(&self) -> String {
        let source = self.source();
        format!(
            "SELECT (SELECT fingerprint FROM errors WHERE id = error_id), count(*),
                 count(DISTINCT user_hash)
             FROM {source} GROUP BY error_id"
        )
    }

    /// Returns the bucket length of a timeseries (`docs/semantics/error-tracking.md`,
    /// "Timeseries").
    fn bucket_seconds(&self) -> i64 {
        match (self.to.as_millis() - self.from.as_millis()) / 60_000 {
            ..=120 => 60,
            121..=720 => 300,
            721..=2_880 => 1_800,
            2_881..=20_160 => 3_600,
            _ => DAY_SECONDS,
        }
    }

    /// Returns the table and conditions of a statement that select the events.
    fn source(&self) -> String {
        let projects: Vec<String> = self.projects.iter().map(u8::to_string).collect();
        let mut conditions = vec![
            format!("project_id = ANY (ARRAY[{}])", projects.join(", ")),
            format!("occurred_at >= '{}'", self.from),
            format!("occurred_at < '{}'", self.to),
        ];
        conditions.extend(self.filters.iter().map(Filter::condition));
        let mut source = "error_events".to_owned();
        if let Some(status) = self.status {
            source.push_str(" JOIN errors ON errors.id = error_id");
            conditions.push(format!("status = '{}'", status.as_str()));
        }
        format!("{source} WHERE {}", conditions.join(" AND "))
    }
}

impl Filter {
    fn condition(&self) -> String {
        let (column, value) = (self.attribute.name(), &self.value);
        let contains = format!("strpos(lower({column}), lower('{value}')) > 0");
        match self.operator {
            Operator::Is => format!("{column} = '{value}'"),
            Operator::IsNot => format!("{column} IS DISTINCT FROM '{value}'"),
            Operator::Contains => contains,
            Operator::NotContains => format!("({contains}) IS NOT TRUE"),
            Operator::IsSet => format!("{column} IS NOT NULL"),
            Operator::IsNotSet => format!("{column} IS NULL"),
        }
    }
}

/// Returns the buckets of a response that have events.
pub(super) fn read_timeseries(body: &str) -> Result<Vec<BucketCount>> {
    let buckets: Vec<Json> = serde_json::from_str(body)?;
    let mut counts = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let start = bucket["bucketStart"].as_str().ok_or("a bucket has no start")?;
        counts.push(BucketCount {
            start: Timestamp::parse_rfc3339(start)?.as_millis(),
            events: number_of(&bucket, "errors")?,
            errors: number_of(&bucket, "uniqueErrors")?,
        });
    }
    counts.retain(|bucket| bucket.events > 0);
    Ok(counts)
}

/// Returns the number in a field of a response.
pub(super) fn number_of(of: &Json, name: &str) -> Result<u64> {
    of[name].as_u64().ok_or_else(|| format!("a response has no {name}: {of}").into())
}

//! What is asked and what is answered, as types.

use std::fmt;
use std::ops::Range;

/// The most characters of an id, a label, an operator or a value. A value that a query gave can be
/// as long as the query.
pub const MAX_VALUE_CHARACTERS: usize = 500;

/// One request: a query that edits the current filters over the request's own categories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// What the user typed or said.
    pub query: String,
    /// The categories that a filter may name. Their ids are unique.
    pub categories: Vec<Category>,
    /// The filters that hold before the query.
    pub current_filters: Vec<Filter>,
}

/// One attribute of an error that can be filtered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// The name that a filter gives back as `category_id`.
    pub id: String,
    /// What users call it.
    pub label: String,
    /// The closed list of its values; empty when any value is possible.
    pub values: Vec<String>,
    /// What its values are.
    pub kind: Kind,
}

impl Category {
    /// Whether any text may be a value.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Array) && self.values.is_empty()
    }

    /// The label without what stands in brackets.
    pub(crate) fn plain_label(&self) -> &str {
        self.label.split(['(', '[']).next().unwrap_or_default()
    }
}

/// What the values of a category are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One text: from the closed list, or any when the list is empty.
    Text,
    /// One decimal number.
    Numeric,
    /// `true` or `false`.
    Boolean,
    /// Several texts at once, such as tags.
    Array,
}

impl Kind {
    /// The kind that the three flags of a category mean. Where several are set, the narrowest
    /// set of values wins: boolean, then numeric, then array.
    pub fn from_flags(is_numeric: bool, is_boolean: bool, is_array: bool) -> Self {
        match (is_boolean, is_numeric, is_array) {
            (true, _, _) => Self::Boolean,
            (_, true, _) => Self::Numeric,
            (_, _, true) => Self::Array,
            _ => Self::Text,
        }
    }
}

/// One condition on one category.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    /// The id of the category.
    pub category_id: String,
    /// How the value is compared.
    pub operator: Operator,
    /// What is compared with; empty for [`Operator::IsSet`] and [`Operator::IsNotSet`].
    pub value: String,
}

/// How a category is compared with a value (rule 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Equal.
    Is,
    /// Not equal.
    IsNot,
    /// Has the text, or the element, in it.
    Contains,
    /// Has it not.
    NotContains,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Gte,
    /// Less than.
    Lt,
    /// Less than or equal.
    Lte,
    /// Has a value at all.
    IsSet,
    /// Has none.
    IsNotSet,
}

impl Operator {
    /// All operators, in the order of rule 3.
    pub const ALL: [Self; 10] = [
        Self::Is,
        Self::IsNot,
        Self::Contains,
        Self::NotContains,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::IsSet,
        Self::IsNotSet,
    ];

    /// The operator of this name; none when there is no such.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == name)
    }

    /// Its name in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Is => "is",
            Self::IsNot => "is_not",
            Self::Contains => "contains",
            Self::NotContains => "not_contains",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::IsSet => "is_set",
            Self::IsNotSet => "is_not_set",
        }
    }

    /// The operator that holds exactly where this one does not.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Is => Self::IsNot,
            Self::IsNot => Self::Is,
            Self::Contains => Self::NotContains,
            Self::NotContains => Self::Contains,
            Self::Gt => Self::Lte,
            Self::Gte => Self::Lt,
            Self::Lt => Self::Gte,
            Self::Lte => Self::Gt,
            Self::IsSet => Self::IsNotSet,
            Self::IsNotSet => Self::IsSet,
        }
    }

    /// Whether it gives a number a bound.
    pub(crate) fn is_bound(self) -> bool {
        matches!(self, Self::Gt | Self::Gte | Self::Lt | Self::Lte)
    }

    /// Whether it denies: its conditions on one category are all to hold (rule 2).
    pub fn is_negative(self) -> bool {
        matches!(self, Self::IsNot | Self::NotContains | Self::IsNotSet)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a query means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interpretation {
    /// The complete filter list that holds after the query.
    pub filters: Vec<Filter>,
    /// The content words of the query that explain nothing in `filters`, as typed. Where there
    /// are any, a second opinion may be worth its price.
    pub unexplained: Vec<String>,
    /// What the query says, by its words.
    pub understood: Vec<Understood>,
    /// The places, in bytes of the query, of words that carry meaning but led to nothing.
    pub ignored: Vec<Range<usize>>,
    /// The rules that fired, in order, and the words on which each did.
    pub trace: Vec<(&'static str, String)>,
}

/// Some words of a query and what rests on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    /// Their place, in bytes of the query.
    pub span: Range<usize>,
    /// The conditions that rest on them; none where they only edit.
    pub filters: Vec<Filter>,
}

//! Requests and interpretations.

use std::fmt;
use std::ops::Range;

/// Maximum characters of an id, a label, an operator or a value. A value from the query can be as
/// long as the query.
pub const MAX_VALUE_CHARACTERS: usize = 500;

/// A query that edits the current filters, and the request's own categories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The query, as typed or dictated.
    pub query: String,
    /// The categories that a filter can name. Their ids are unique.
    pub categories: Vec<Category>,
    /// The filters before the query.
    pub current_filters: Vec<Filter>,
}

/// A filterable attribute of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Category {
    /// The id, which filters contain as `category_id`.
    pub id: String,
    /// The name that users know.
    pub label: String,
    /// The closed list of values. Empty: any value.
    pub values: Vec<String>,
    /// The type of the values.
    pub kind: Kind,
}

impl Category {
    /// `true` if any text can be a value.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Array) && self.values.is_empty()
    }

    /// Returns the label up to its first bracket.
    pub(crate) fn plain_label(&self) -> &str {
        self.label.split(['(', '[']).next().unwrap_or_default()
    }
}

/// The type of a category's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One text: from the closed list, or any text if the list is empty.
    Text,
    /// One decimal number.
    Numeric,
    /// `true` or `false`.
    Boolean,
    /// Several texts at once, such as tags.
    Array,
}

impl Kind {
    /// Returns the kind for the three flags of a category. If several are set, the narrowest type
    /// wins: boolean, then numeric, then array.
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
    /// The comparison of values.
    pub operator: Operator,
    /// The value to compare with. Empty for [`Operator::IsSet`] and [`Operator::IsNotSet`].
    pub value: String,
}

/// Defines the operators, in the order of rule 3, each with its name in requests and responses, and
/// the operator that holds exactly if it does not.
macro_rules! operators {
    ($($(#[$doc:meta])* $operator:ident = $name:literal, not $negated:ident;)*) => {
        /// A comparison of a category with a value (rule 3).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operator { $($(#[$doc])* $operator,)* }

        impl Operator {
            /// All operators, in the order of rule 3.
            pub const ALL: [Self; 10] = [$(Self::$operator),*];

            /// Returns the name in requests and responses.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$operator => $name,)* }
            }

            /// Returns the operator that holds exactly if this one does not.
            #[must_use]
            pub fn negated(self) -> Self {
                match self { $(Self::$operator => Self::$negated,)* }
            }
        }
    };
}

operators! {
    /// Equal.
    Is = "is", not IsNot;
    /// Not equal.
    IsNot = "is_not", not Is;
    /// Contains the text or the element.
    Contains = "contains", not NotContains;
    /// Does not contain the text or the element.
    NotContains = "not_contains", not Contains;
    /// Greater than.
    Gt = "gt", not Lte;
    /// Greater than or equal.
    Gte = "gte", not Lt;
    /// Less than.
    Lt = "lt", not Gte;
    /// Less than or equal.
    Lte = "lte", not Gt;
    /// Has any value.
    IsSet = "is_set", not IsNotSet;
    /// Has no value.
    IsNotSet = "is_not_set", not IsSet;
}

impl Operator {
    /// Returns the operator with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.as_str() == name)
    }

    /// `true` if it sets a bound for a number.
    pub(crate) fn is_bound(self) -> bool {
        matches!(self, Self::Gt | Self::Gte | Self::Lt | Self::Lte)
    }

    /// `true` if it negates. All negative conditions on a category must hold (rule 2).
    pub fn is_negative(self) -> bool {
        matches!(self, Self::IsNot | Self::NotContains | Self::IsNotSet)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The meaning of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interpretation {
    /// The complete filter list after the query.
    pub filters: Vec<Filter>,
    /// Content words of the query that explain no filter, as typed. If there are any, the model
    /// fallback can be worth its cost.
    pub unexplained: Vec<String>,
    /// The understood parts of the query.
    pub understood: Vec<Understood>,
    /// Byte ranges of words in the query that have a meaning but led to nothing.
    pub ignored: Vec<Range<usize>>,
    /// The rules that matched, in order, each with its words.
    pub trace: Vec<(&'static str, String)>,
}

/// Some words of a query, and their filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    /// The byte range in the query.
    pub span: Range<usize>,
    /// The conditions from these words. Empty if the words only edit.
    pub filters: Vec<Filter>,
}

//! Pages of lists.

/// The requested page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Most items to return.
    pub limit: u32,
    /// The end of the previous page.
    pub after: Option<String>,
}

/// A page and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The position at which the next page continues, if there is one.
    pub end: Option<String>,
}

impl<T> Page<T> {
    /// Returns the page with each item converted.
    pub fn map<'p, U>(&'p self, make: impl FnMut(&'p T) -> U) -> Page<U> {
        Page { items: self.items.iter().map(make).collect(), end: self.end.clone() }
    }
}

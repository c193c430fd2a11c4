//! Lists, page by page.

/// Which page of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The most items to answer.
    pub limit: u32,
    /// Where the page before ended.
    pub after: Option<String>,
}

/// A page, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// Where the next page goes on, if anything comes after this one.
    pub end: Option<String>,
}

impl<T> Page<T> {
    /// The page with each item made into another.
    pub fn map<'p, U>(&'p self, make: impl FnMut(&'p T) -> U) -> Page<U> {
        Page { items: self.items.iter().map(make).collect(), end: self.end.clone() }
    }
}

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

/// Most items per read of [`all_pages`].
const PAGE_SIZE: u32 = 100;

/// Returns the items of all pages of a list, or at least the first `most`.
pub async fn all_pages<T, E>(
    most: usize,
    read: impl AsyncFn(&PageRequest) -> Result<Page<T>, E>,
) -> Result<Vec<T>, E> {
    let mut items = Vec::new();
    let mut request = PageRequest { limit: PAGE_SIZE, after: None };
    while items.len() < most {
        let page = read(&request).await?;
        items.extend(page.items);
        request.after = page.end;
        if request.after.is_none() {
            break;
        }
    }
    Ok(items)
}

//! Pages of a list: `{items, next}`, requested by `limit` and `cursor`.

use serde::Serialize;

/// The size of a page. The page ends before item `items + 1`, and after the item that fills about `bytes` of JSON. So
/// it has at least one item, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Most items.
    pub items: usize,
    /// About the most bytes of JSON.
    pub bytes: usize,
}

impl PageSize {
    /// No limit: all items of a list.
    pub const ALL: Self = Self { items: u32::MAX as usize, bytes: i64::MAX as usize };
}

impl From<usize> for PageSize {
    /// A limit on items only.
    fn from(items: usize) -> Self {
        Self { items, bytes: i64::MAX as usize }
    }
}

/// Part of a list.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Page<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Returns a page of at most `limit` items, made of a query for `limit + 1`.
    pub fn of(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}

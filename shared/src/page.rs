//! Lists in pages: `{items, next}`, with `limit` and `cursor`.

use serde::Serialize;

/// How much of a list one page has: it ends before the item with which it would have more than `items`, and after the item
/// with which it has about `bytes` of JSON. So it has at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    pub items: usize,
    pub bytes: usize,
}

impl PageSize {
    /// All of a list.
    pub const ALL: Self = Self { items: u32::MAX as usize, bytes: i64::MAX as usize };
}

impl From<usize> for PageSize {
    /// As many items, however long they are.
    fn from(items: usize) -> Self {
        Self { items, bytes: i64::MAX as usize }
    }
}

/// Part of a list. `next` is the cursor of the part after it, absent at the end.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page of at most `limit` items out of a query for one more than that.
    pub fn of(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}

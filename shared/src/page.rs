//! Lists in pages: `{items, next}`, with `limit` and `cursor`.

use serde::Serialize;

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

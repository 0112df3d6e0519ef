//! Pages with a limit of bytes: the database itself omits the rows that do not fit.

use sqlx::{ColumnIndex, Decode, FromRow, Type};

use crate::page::{Page, PageSize};

/// Selects the rows of a page, at most one more than it has, up to the row that fills it. `$rows` selects the list with
/// `page_bytes`, `$order` names columns of it, and `$bytes` is the parameter with the page's size.
macro_rules! page_query {
    ($rows:expr, $order:literal, $bytes:literal $(,)?) => {
        concat!(
            "
        select *
        from (
            select page.*,
                count(*) over () as page_rows,
                coalesce(
                    sum(page.page_bytes) over (
                        order by ",
            $order,
            "
                        rows between unbounded preceding and 1 preceding
                    ),
                    0
                ) as page_before
            from (",
            $rows,
            ") page
        ) cut
        where page_before < ",
            $bytes,
            "
        order by ",
            $order
        )
    };
}
pub(super) use page_query;

/// A row of a page.
pub(super) struct PageRow<T> {
    row: T,
    /// Rows of the list before the limit of bytes.
    rows: i64,
}

impl<'r, R: sqlx::Row, T: FromRow<'r, R>> FromRow<'r, R> for PageRow<T>
where
    &'static str: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self { rows: row.try_get("page_rows")?, row: T::from_row(row)? })
    }
}

/// Returns the page of these rows. It has a cursor if rows are missing by number or by bytes.
pub(super) fn page_of<R, T: From<R>>(rows: Vec<PageRow<R>>, size: PageSize, cursor: impl Fn(&R) -> String) -> Page<T> {
    let total = rows.first().map_or(0, |row| row.rows as usize);
    let shown = rows.into_iter().map(|row| row.row).take(size.items).collect::<Vec<_>>();
    let next = if total > shown.len() { shown.last().map(cursor) } else { None };
    Page { items: shown.into_iter().map(T::from).collect(), next }
}

/// Returns the items alone, for a list without further pages.
pub(super) fn items_of<R, T: From<R>>(rows: Vec<PageRow<R>>) -> impl DoubleEndedIterator<Item = T> {
    rows.into_iter().map(|row| T::from(row.row))
}

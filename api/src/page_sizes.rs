//! The sizes of pages: what a list returns, within the limits of the deployment.

use holdfast_shared::page::PageSize;
use serde::Deserialize;

use crate::{app::App, problem::Problem};

/// The page of a list that the client requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Most items of the page; 50 by default.
    pub limit: Option<usize>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

impl ListQuery {
    pub fn size(&self, app: &App) -> Result<PageSize, Problem> {
        page_size(app, self.limit)
    }
}

const DEFAULT_PAGE: usize = 50;

pub fn page_size(app: &App, limit: Option<usize>) -> Result<PageSize, Problem> {
    let max = app.config().max_page;
    match limit.unwrap_or(DEFAULT_PAGE.min(max)) {
        items if (1..=max).contains(&items) => Ok(PageSize { items, bytes: app.config().max_page_bytes }),
        _ => Err(Problem::invalid_query(format!("limit is a number from 1 to {max}."))),
    }
}

/// Returns the size of a page for a client that takes fewer items than it asks for: at most the limit.
pub fn page_up_to(app: &App, wanted: Option<usize>) -> Result<PageSize, Problem> {
    page_size(app, wanted.map(|wanted| wanted.min(app.config().max_page)))
}

/// Returns the size of a history, which has only one page.
pub fn history_size(app: &App) -> PageSize {
    PageSize { items: app.config().max_history, bytes: app.config().max_page_bytes }
}

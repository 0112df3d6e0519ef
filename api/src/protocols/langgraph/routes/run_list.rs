//! `GET /langgraph/threads/{thread_id}/runs`: the runs of a thread, newest first.

use std::{collections::VecDeque, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{
    page::PageSize,
    run::{Run, RunStatus},
    storage::RunFilter,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{runs::run_json, search::MAX_OFFSET, segment::RunSegment, thread_named};
use crate::{app::App, auth::Caller, extract::Query, page_sizes::page_up_to, problem::Problem};

/// The page of a thread's runs.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct RunListQuery {
    /// 10 by default.
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    /// `pending`, `running`, `success`, `error`, `timeout` or `interrupted`.
    status: Option<String>,
}

/// List the runs of a thread, newest first. A run that has waited is one run here.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs", operation_id = "list_runs", tag = "langgraph",
    params(("thread_id" = String, Path), RunListQuery),
    responses(
        (status = 200, body = Vec<Object>, description = "A list of runs."),
        (status = 400, body = Problem, description = "invalid_query"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 422, body = Problem, description = "not_supported: an unknown status")
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    Query(query): Query<RunListQuery>,
) -> Result<Json<Value>, Problem> {
    let size = page_up_to(&app, Some(query.limit.unwrap_or(10)))?;
    if query.offset > MAX_OFFSET {
        return Err(Problem::invalid_query(format!("offset is at most {MAX_OFFSET}.")));
    }
    let statuses = statuses_of(query.status.as_deref())?;
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let _assembled = app.unread_answers().assemble(&caller, size.bytes * statuses.len().max(1))?;
    let page_of = PageSize { items: (query.offset + size.items).min(app.config().max_page), bytes: size.bytes };
    let filter = |status| RunFilter { conversation_id: Some(thread.id), status };
    let mut lists: Vec<NewestRuns<'_>> =
        statuses.iter().map(|status| NewestRuns::new(&app, &caller, filter(*status), page_of)).collect();
    let (mut runs, mut left_out) = (Vec::new(), query.offset);
    while runs.len() < size.items {
        for list in &mut lists {
            list.fill().await?;
        }
        let Some(run) = lists.iter_mut().max_by_key(|list| list.newest()).and_then(NewestRuns::take) else { break };
        if left_out > 0 {
            left_out -= 1;
        } else {
            runs.push(run_json(&RunSegment::of(Arc::new(run), 0, &[]), &thread_id));
        }
    }
    Ok(Json(runs.into()))
}

/// Returns the statuses of runs that the protocol calls by this name; `None` stands for all. Fails for an unknown name.
fn statuses_of(name: Option<&str>) -> Result<&'static [Option<RunStatus>], Problem> {
    Ok(match name {
        None => &[None],
        Some("pending") => &[Some(RunStatus::Queued)],
        Some("running") => &[Some(RunStatus::Running)],
        Some("success") => &[Some(RunStatus::Completed)],
        Some("error") => &[Some(RunStatus::Failed)],
        Some("interrupted") => &[Some(RunStatus::Waiting), Some(RunStatus::Cancelled)],
        // A run that exceeds its time fails with an error.
        Some("timeout") => &[],
        Some(_) => {
            let advice = "a run is pending, running, success, error, timeout or interrupted.";
            return Err(Problem::field_not_supported("this status", advice));
        }
    })
}

/// The runs of one filter, newest first, read page by page.
struct NewestRuns<'a> {
    app: &'a App,
    caller: &'a Caller,
    filter: RunFilter,
    size: PageSize,
    page: VecDeque<Run>,
    /// The cursor of the next page; `None` after the last one.
    next: Option<Option<String>>,
}

impl<'a> NewestRuns<'a> {
    const fn new(app: &'a App, caller: &'a Caller, filter: RunFilter, size: PageSize) -> Self {
        Self { app, caller, filter, size, page: VecDeque::new(), next: Some(None) }
    }

    /// Reads the next page if the one before is used up.
    async fn fill(&mut self) -> Result<(), Problem> {
        if self.page.is_empty()
            && let Some(cursor) = self.next.take()
        {
            let storage = self.app.storage();
            if let Some(page) = storage.runs(&self.caller.owner, self.filter, self.size, cursor.as_deref()).await? {
                self.page = page.items.into();
                self.next = page.next.map(Some);
            }
        }
        Ok(())
    }

    /// Returns the id of the next run. Ids of newer runs are greater.
    fn newest(&self) -> Option<Uuid> {
        self.page.front().map(|run| run.id)
    }

    fn take(&mut self) -> Option<Run> {
        self.page.pop_front()
    }
}

//! The methods that read, follow and end a task.

use std::sync::Arc;

use axum::response::Response;
use holdfast_shared::{
    event_id::EventId,
    page::PageSize,
    run::{Run, RunStatus},
    storage::RunFilter,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    call::{A2aCall, fold_stream, folded, history_of, task_of},
    request::TaskParams,
};
use crate::{
    problem::Problem,
    protocols::a2a::wire::{A2aStatus, A2aTask, A2aUpdate},
    thread::find_thread,
    wire::FrameId,
};

/// The parameters of `ListTasks`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListParams {
    #[serde(alias = "context_id")]
    context_id: Option<String>,
    status: Option<String>,
    #[serde(alias = "page_size")]
    page_size: Option<i64>,
    #[serde(alias = "page_token")]
    page_token: Option<String>,
    #[serde(default, alias = "include_artifacts")]
    include_artifacts: bool,
    #[serde(alias = "status_timestamp_after")]
    status_timestamp_after: Option<Value>,
}

const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 100;

/// The number up to which a list counts all tasks.
const MAX_TOTAL: usize = 1000;

/// `GetTask`.
pub async fn get(call: &A2aCall<'_>) -> Result<Response, Problem> {
    let params: TaskParams = call.request.params()?;
    let wants_history = params.wants_history()?;
    let run = call.find(&params.id).await?;
    let _turn = call.app.read_limit().begin(call.caller).await?;
    let _assembled = call.app.unread_answers().assemble(call.caller, call.app.config().max_page_bytes)?;
    let view = call.view(&run, call.context_of(run.conversation_id).await?, None).await?;
    let mut task = task_of(call.app, &view, &run).await?;
    if wants_history {
        task.history = history_of(call.app, &call.caller.owner, &run).await?;
    }
    Ok(call.respond_with(view.task(&task)))
}

/// `SubscribeToTask`.
pub async fn subscribe(call: &A2aCall<'_>) -> Result<Response, Problem> {
    let params: TaskParams = call.request.params()?;
    let run = call.find(&params.id).await?;
    follow(call, run).await
}

/// Streams a task: as it is now, then its updates; or the updates after the last frame that the client has. The stream ends at the
/// next question that the client has not got.
pub async fn follow(call: &A2aCall<'_>, run: Run) -> Result<Response, Problem> {
    let seen = call.cursor()?;
    if run.status.is_terminal() && seen == FrameId::START {
        return Err(Problem::task_ended(run.id));
    }
    let permit = call.app.streams().open(call.caller)?;
    let view = call.view(&run, call.context_of(run.conversation_id).await?, None).await?;
    let run = Arc::new(run);
    let subscriber = call.app.relay().resume(&call.caller.owner, &run, EventId::ORIGIN, permit).await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    if seen != FrameId::START {
        return Ok(call.stream(run.id, subscriber, b"", fold_stream(view, seen).patient()));
    }
    let turn = call.app.read_limit().begin(call.caller).await?;
    let fold = folded(call.app, &view, run.id).await?;
    drop(turn);
    // The task has the question of a pause too, whose frame would follow those of the event.
    let id = FrameId { event: fold.last, number: fold.frames };
    let mut prefix = Vec::new();
    view.write(&mut prefix, id, &A2aUpdate::Task(fold.task()));
    Ok(call.stream(run.id, subscriber, &prefix, fold_stream(view, id).patient()))
}

/// `CancelTask`. Waits for the end of the task.
pub async fn cancel(call: &A2aCall<'_>) -> Result<Response, Problem> {
    let params: TaskParams = call.request.params()?;
    let run = call.find(&params.id).await?;
    if run.status.is_terminal() {
        return Err(Problem::task_not_cancelable(run.id));
    }
    let permit = call.app.streams().open(call.caller)?;
    let run = Arc::new(call.app.cancel(&call.caller.owner, run.id).await?);
    if !run.status.is_terminal() {
        let until = call.caller.no_later_than(Instant::now() + call.app.config().max_wait);
        let opened = call.app.relay().open(&call.caller.owner, &run, run.last_event_id, permit).await?;
        if let Some(subscriber) = opened {
            subscriber.await_end(until.duration_since(Instant::now())).await;
        }
    }
    let run = call.find(&params.id).await?;
    if matches!(run.status, RunStatus::Completed | RunStatus::Failed) {
        return Err(Problem::task_not_cancelable(run.id));
    }
    let view = call.view(&run, call.context_of(run.conversation_id).await?, None).await?;
    let task = task_of(call.app, &view, &run).await?;
    Ok(call.respond_with(view.task(&task)))
}

/// `ListTasks`, newest first.
pub async fn list(call: &A2aCall<'_>) -> Result<Response, Problem> {
    let params: ListParams = call.request.params()?;
    let size = params.size(call.app.config().max_page_bytes)?;
    if params.status_timestamp_after.is_some() {
        return Err(Problem::invalid_body("This server does not filter by statusTimestampAfter."));
    }
    let filter = match filter_of(call, &params).await? {
        Some(filter) => filter,
        None => return Ok(call.respond_with(page_of(Vec::new(), None, (size, 0)))),
    };
    let _turn = call.app.read_limit().begin(call.caller).await?;
    let _assembled = call.app.unread_answers().assemble(call.caller, size.bytes)?;
    let total = call.app.storage().count_runs(&call.caller.owner, filter, MAX_TOTAL).await?;
    let cursor = params.page_token.as_deref().filter(|token| !token.is_empty());
    let page = call.app.storage().runs(&call.caller.owner, filter, size, cursor).await?;
    let page = page.ok_or_else(|| Problem::invalid_body("pageToken is none of this server's."))?;
    let conversations = page.items.iter().map(|run| run.conversation_id).collect();
    let names = call.app.storage().chat_names(&call.caller.owner, conversations).await?;
    let (mut tasks, mut bytes, mut next) = (Vec::new(), 0, page.next);
    let mut runs = page.items.into_iter().peekable();
    while let Some(run) = runs.next() {
        let text = if params.include_artifacts { Some(text_of(call, &run).await?) } else { None };
        let name = names.get(&run.conversation_id).cloned();
        let view = call.plain_view(&run, name.unwrap_or_else(|| run.conversation_id.to_string()));
        let task = view.task(&A2aTask { status: A2aStatus::of(&run), text, history: Vec::new() });
        bytes += task.to_string().len();
        tasks.push(task);
        // The texts of answers may be longer than a page.
        if bytes >= size.bytes && runs.peek().is_some() {
            next = Some(run.id.simple().to_string());
            break;
        }
    }
    Ok(call.respond_with(page_of(tasks, next, (size, total))))
}

fn page_of(tasks: Vec<Value>, next: Option<String>, (size, total): (PageSize, usize)) -> Value {
    json!({"tasks": tasks, "nextPageToken": next.unwrap_or_default(), "pageSize": size.items, "totalSize": total})
}

/// Returns the answer of a task that has ended.
async fn text_of(call: &A2aCall<'_>, run: &Run) -> Result<String, Problem> {
    if !run.status.is_terminal() {
        return Ok(String::new());
    }
    let run = call.app.storage().run(&call.caller.owner, run.id).await?;
    Ok(run.and_then(|run| run.output_message).map(|message| message.content.to_stored()).unwrap_or_default())
}

/// Returns the filter of a list; `None` if no task can pass it.
async fn filter_of(call: &A2aCall<'_>, params: &ListParams) -> Result<Option<RunFilter>, Problem> {
    let status = match params.status.as_deref().filter(|status| !status.is_empty()) {
        None | Some("TASK_STATE_UNSPECIFIED") => None,
        Some("TASK_STATE_SUBMITTED" | "submitted") => Some(RunStatus::Queued),
        Some("TASK_STATE_WORKING" | "working") => Some(RunStatus::Running),
        Some("TASK_STATE_INPUT_REQUIRED" | "input-required") => Some(RunStatus::Waiting),
        Some("TASK_STATE_COMPLETED" | "completed") => Some(RunStatus::Completed),
        Some("TASK_STATE_FAILED" | "failed") => Some(RunStatus::Failed),
        Some("TASK_STATE_CANCELED" | "canceled") => Some(RunStatus::Cancelled),
        Some("TASK_STATE_REJECTED" | "TASK_STATE_AUTH_REQUIRED" | "rejected" | "auth-required" | "unknown") => {
            return Ok(None);
        }
        Some(_) => return Err(Problem::invalid_body("status is no state of a task.")),
    };
    let conversation_id = match params.context_id.as_deref().filter(|id| !id.is_empty()) {
        None => None,
        Some(id) => match find_thread(call.app, call.caller, id).await? {
            Some(context) => Some(context.id),
            None => return Ok(None),
        },
    };
    Ok(Some(RunFilter { conversation_id, status }))
}

impl ListParams {
    fn size(&self, bytes: usize) -> Result<PageSize, Problem> {
        let items = self.page_size.map_or(Ok(DEFAULT_PAGE), usize::try_from).unwrap_or(0);
        if (1..=MAX_PAGE).contains(&items) {
            return Ok(PageSize { items, bytes });
        }
        Err(Problem::invalid_body(format!("pageSize is a number from 1 to {MAX_PAGE}.")))
    }
}

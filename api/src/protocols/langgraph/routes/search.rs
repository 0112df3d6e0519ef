//! `/langgraph/threads/search` and `/count`.

use std::{collections::HashMap, sync::Arc};

use axum::{Json, extract::State};
use holdfast_shared::{conversation::Chat, page::PageSize, run::RunStatus, storage::ChatFilter};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    assistants::{GRAPH, find_assistant},
    state::thread_json,
    threads::{MAX_NAMED, checked_metadata},
};
use crate::{
    app::App,
    auth::Caller,
    extract::JsonBody,
    page_sizes::page_up_to,
    problem::Problem,
    protocols::langgraph::wire::of_stored,
    thread::{FILES, find_thread},
};

/// Most fields of metadata in a search.
const MAX_PAIRS: usize = 16;

/// Most threads or runs before the page of a list.
pub const MAX_OFFSET: usize = 10_000;

/// The filter of a search. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphThreadSearch)]
pub struct ThreadSearch {
    /// Fields that the metadata of a thread must have.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    values: Option<Map<String, Value>>,
    ids: Option<Vec<String>>,
    /// `idle`, `busy`, `interrupted` or `error`.
    status: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    sort_by: Option<String>,
    sort_order: Option<String>,
    /// The fields of a thread that the client wants.
    select: Option<Vec<String>>,
}

impl ThreadSearch {
    /// Returns the size of the page. Fails for another order, and for an invalid limit or offset.
    fn page(&self, app: &App) -> Result<PageSize, Problem> {
        let order = (self.sort_by.as_deref().unwrap_or("updated_at"), self.sort_order.as_deref().unwrap_or("desc"));
        if order != ("updated_at", "desc") {
            return Err(Problem::field_not_supported("this order", "threads come by updated_at, newest first."));
        }
        if self.offset > MAX_OFFSET {
            return Err(Problem::invalid_query(format!("offset is at most {MAX_OFFSET}.")));
        }
        page_up_to(app, Some(self.limit.unwrap_or(10)))
    }
}

/// Search threads, those with the newest activity first. `values` has the first and the newest message of a thread, each up to
/// 1,000 characters.
#[utoipa::path(post, path = "/langgraph/threads/search", operation_id = "search_threads", tag = "langgraph", request_body = ThreadSearch,
    responses(
        (status = 200, body = Vec<Object>, description = "A list of threads."),
        (status = 400, body = Problem, description = "invalid_body, invalid_query"),
        (status = 422, body = Problem, description = "not_supported: a search by values, or another order")
    )
)]
pub async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(search): JsonBody<ThreadSearch>,
) -> Result<Json<Value>, Problem> {
    let size = search.page(&app)?;
    let filter = filter_of(&app, &caller, &search).await?;
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let chats = app.chats(&caller, filter, size.items, search.offset).await?;
    let has_values = search.select.as_ref().is_none_or(|select| select.iter().any(|field| field == "values"));
    let mut previews = if has_values { previews(&app, &caller, &chats).await? } else { HashMap::new() };
    let thread = |chat: Chat| {
        let thread_id = chat.name.unwrap_or_else(|| chat.conversation.id.to_string());
        let mut thread = thread_json(&chat.conversation, &thread_id, chat.metadata, chat.run_status, None);
        thread["values"] = json!({"messages": previews.remove(&chat.conversation.id).unwrap_or_default()});
        if let (Some(select), Some(fields)) = (&search.select, thread.as_object_mut()) {
            fields.retain(|name, _| select.contains(name));
        }
        thread
    };
    Ok(Json(chats.into_iter().map(thread).collect()))
}

/// Returns the first and the newest message of each thread, by the ids of the conversations. It is one query for all of them.
async fn previews(app: &App, caller: &Caller, chats: &[Chat]) -> Result<HashMap<Uuid, Vec<Value>>, Problem> {
    let ids = chats.iter().map(|chat| chat.conversation.id).collect();
    let mut previews: HashMap<Uuid, Vec<Value>> = HashMap::new();
    for message in app.storage().edge_messages(&caller.owner, ids).await? {
        previews.entry(message.conversation_id).or_default().push(of_stored(&message, FILES).to_value());
    }
    Ok(previews)
}

/// Count the threads that match.
#[utoipa::path(post, path = "/langgraph/threads/count", operation_id = "count_threads", tag = "langgraph", request_body = ThreadSearch,
    responses((status = 200, body = u64, content_type = "application/json", description = "A number."), (status = 422, body = Problem, description = "not_supported: a search by values")))]
pub async fn count(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(search): JsonBody<ThreadSearch>,
) -> Result<Json<usize>, Problem> {
    search.page(&app)?;
    let filter = filter_of(&app, &caller, &search).await?;
    app.count_chats(&caller, filter).await.map(Json)
}

async fn filter_of(app: &App, caller: &Caller, search: &ThreadSearch) -> Result<ChatFilter, Problem> {
    if search.values.as_ref().is_some_and(|values| !values.is_empty()) {
        return Err(Problem::field_not_supported("a search by values", "GET /v1/conversations searches messages."));
    }
    let mut metadata = checked_metadata(app, search.metadata.clone().unwrap_or_default())?;
    // Each pair is compared with each thread, and a missing field is like null.
    if metadata.len() > MAX_PAIRS || metadata.values().any(Value::is_null) {
        return Err(Problem::invalid_body(format!(
            "A search has at most {MAX_PAIRS} fields of metadata, none of them null."
        )));
    }
    // Each thread has these two, which its metadata need not have.
    metadata.retain(|name, value| name != "graph_id" || value != GRAPH);
    let assistant = metadata.remove("assistant_id").and_then(|id| Some(id.as_str()?.to_owned()));
    let agent_id = match assistant {
        Some(id) => find_assistant(app, caller, &id).await?,
        None => None,
    };
    let ids = match &search.ids {
        Some(names) if names.len() > MAX_NAMED => {
            return Err(Problem::invalid_body(format!("ids has at most {MAX_NAMED} threads.")));
        }
        Some(names) => {
            let mut ids = Vec::new();
            for name in names {
                ids.extend(find_thread(app, caller, name).await?.map(|thread| thread.id));
            }
            Some(ids)
        }
        None => None,
    };
    Ok(ChatFilter { metadata, agent_id, ids, statuses: statuses_of(search.status.as_deref())? })
}

/// Returns the statuses of runs whose threads have this status.
fn statuses_of(status: Option<&str>) -> Result<Option<Vec<Option<RunStatus>>>, Problem> {
    Ok(Some(match status {
        None => return Ok(None),
        Some("idle") => vec![None, Some(RunStatus::Completed), Some(RunStatus::Cancelled)],
        Some("busy") => vec![Some(RunStatus::Queued), Some(RunStatus::Running)],
        Some("interrupted") => vec![Some(RunStatus::Waiting)],
        Some("error") => vec![Some(RunStatus::Failed)],
        Some(_) => return Err(Problem::invalid_body("status is idle, busy, interrupted or error.")),
    }))
}

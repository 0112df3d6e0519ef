//! The parts that the routes of front ends share: a conversation by the client's name for it and its run, the outline of a
//! run's log, files in a body, the history that a client brings, the place of a new message, answers to questions, and the parts of an answer.

mod answers;
mod files;
mod given;
mod outline;
mod parts;
mod place;
mod scoped_key;

use axum::http::HeaderMap;
use holdfast_shared::{
    conversation::{Conversation, Handle},
    run::Run,
};

use crate::{
    app::App,
    auth::{Caller, is_name},
    extract,
    problem::Problem,
    wire::FrameId,
};
pub use answers::{PartAnswer, answer_questions};
pub use files::{FILES, UiPart, content_of};
pub use given::{
    GivenHistoryOfThread, GivenTurn, HistoryBound, TURN_BYTES, bytes_of_part, given_again, json_bytes,
    messages_of_given, most_bytes, takes_history,
};
pub use outline::{LogFilter, Outline};
pub use parts::parts_of_answer;
pub use place::{NamedPlace, replaced_at};
pub use scoped_key::{key_in_thread, named_key};

/// Returns the caller's conversation with this id, or with this name of a client, if any.
pub async fn find_thread(app: &App, caller: &Caller, id: &str) -> Result<Option<Conversation>, Problem> {
    if let Ok(id) = extract::id(id)
        && let Some(conversation) = app.storage().conversation(&caller.owner, id).await?
    {
        return Ok(Some(conversation));
    }
    if !is_name(id) {
        return Ok(None);
    }
    Ok(app.storage().find_conversation(&caller.owner, &Handle::Chat(id.to_owned())).await?)
}

/// Returns the last frame that a client has, by `Last-Event-ID`, else by its query. Fails if it is no id of a frame.
pub fn last_frame(headers: &HeaderMap, after: Option<&str>) -> Result<Option<FrameId>, Problem> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("not text"));
    let cursor = header.map(str::trim).filter(|text| !text.is_empty()).or(after);
    cursor.map(str::parse).transpose().map_err(|error| Problem::malformed_event_id(&error))
}

/// Returns the run that a thread waits for: the first unfinished one, else the newest.
pub async fn current_run(app: &App, caller: &Caller, conversation: &Conversation) -> Result<Option<Run>, Problem> {
    if let Some(live) = conversation.live_run_id
        && let Some(run) = app.storage().run_without_answer(&caller.owner, live).await?
    {
        return Ok(Some(run));
    }
    Ok(app.storage().last_run(&caller.owner, conversation.id).await?)
}

/// Returns the beginning of an id, for error texts.
pub fn truncated_id(id: &str) -> String {
    id.chars().take(64).collect()
}

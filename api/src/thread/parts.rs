//! The parts of an ended run's answer.

use std::borrow::Cow;

use axum::http::StatusCode;
use holdfast_shared::{
    event_id::EventId,
    parts::{MessageParts, PartsBuilder},
    storage::StoredAnswer,
};

use crate::{app::App, problem::Problem};

/// Returns the parts of an answer with a text. Those that this version cannot read are folded from the run's events. `None` if the
/// events have expired.
pub async fn parts_of_answer<'a>(
    app: &App,
    answer: &'a StoredAnswer,
    text: &str,
) -> Result<Option<Cow<'a, MessageParts>>, Problem> {
    if let Some(parts) = &answer.parts {
        return Ok(Some(Cow::Borrowed(parts)));
    }
    Ok(folded(app, answer, text).await?.map(Cow::Owned))
}

/// Folds a run's events into parts; `None` if the events have expired.
async fn folded(app: &App, answer: &StoredAnswer, text: &str) -> Result<Option<MessageParts>, Problem> {
    let (mut log, mut builder) = (app.relay().pages(answer.run_id, EventId::ORIGIN), PartsBuilder::default());
    let mut ended_ms = answer.finished_at.timestamp_millis();
    // It reads page by page, because a log may be far larger than its message.
    loop {
        match log.next().await {
            Ok(Some(events)) => {
                ended_ms = events.last().map_or(ended_ms, |event| event.at_ms);
                events.iter().for_each(|event| builder.push(event));
            }
            Ok(None) => break,
            Err(problem) if problem.status == StatusCode::GONE => return Ok(None),
            Err(problem) => return Err(problem),
        }
    }
    let mut parts = builder.into_parts(ended_ms);
    parts.complete_text(text);
    Ok(Some(parts))
}

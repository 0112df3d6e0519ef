//! Answers the questions of an assistant's message: approvals, and results of tools that the front end executes.

use std::sync::Arc;

use axum::response::Response;
use holdfast_shared::agent::StreamMode;

use super::{answer_with, body_of, chat::ChatTarget, filter::FilteredView, no_content, segment::Segment};
use crate::{
    app::App,
    auth::Caller,
    event_stream::view_of,
    problem::Problem,
    protocols::ai_sdk::wire as ai_sdk,
    thread::{Outline, PartAnswer, answer_questions},
    wire::Wire,
};

/// Answers the open questions and returns the message's stream from the pause at which the run asked them.
pub async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    chat: ChatTarget,
    message_id: &str,
    answers: Vec<PartAnswer>,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let last = app.storage().last_run(&caller.owner, chat.conversation_id()?).await?;
    let run = last.filter(|run| run.output_message_id.to_string() == message_id);
    let run = Arc::new(run.ok_or_else(|| Problem::message_not_waiting(message_id))?);
    let outline = Outline::read(app, run.id).await?;
    let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
    // A repeated answer, or one after another client's, resumes from the same pause.
    let pauses_before =
        if questions.is_empty() { outline.pauses.len() } else { outline.pauses_up_to(&questions).unwrap_or(0) };
    let pause = pauses_before.checked_sub(1).map(|newest| outline.pauses[newest]);
    let pause = pause.ok_or_else(|| Problem::run_not_waiting(run.id))?;
    // Order matters: the limit on streams refuses the request before the first answer.
    let stream = app.streams().open(caller)?;
    answer_questions(app, caller, &run, answers).await?;
    let view = view_of(Wire::AiSdk, app, &run, mode).await?;
    let Some(subscriber) = app.relay().open(&caller.owner, &run, pause, stream).await? else {
        return Ok(no_content());
    };
    let mut start = Vec::new();
    ai_sdk::frame(&mut start, &ai_sdk::resumption(&view));
    let view = FilteredView::after(subscriber.position(), view, outline.filter());
    let frames = subscriber.into_frames(start, view);
    let segment = Segment { run_id: run.id, pauses_before };
    Ok(answer_with(segment, body_of(app, caller, run.id, frames)))
}

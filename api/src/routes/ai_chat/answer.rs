//! Answers the questions of an assistant's message: approvals, and results of tools that the front end executes.

use std::sync::Arc;

use axum::{body::Body, http::StatusCode, response::Response};
use holdfast_shared::{
    agent::StreamMode, approval::ApprovalStatus, approval::Decision, run::Run, tool::ToolCallStatus,
};

use super::{
    answer_with, chat::ChatTarget, filter::FilteredView, no_content, outline::Outline, request::PartAnswer,
    segment::Segment,
};
use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    routes::events::view_of,
    wire::{Wire, ai_sdk},
};

/// Answers the open questions and returns the message's stream from the pause at which the run asked them. It does not
/// trust the parts about a call: the answer applies to the stored call, and the first answer counts.
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
    submit(app, caller, &run, answers).await?;
    let view = view_of(Wire::AiSdk, app, &run, mode).await?;
    let Some(subscriber) = app.relay().open(&caller.owner, &run, pause, stream).await? else {
        return Ok(no_content());
    };
    let mut start = Vec::new();
    ai_sdk::frame(&mut start, &ai_sdk::resumption(&view));
    let view = FilteredView::after(subscriber.position(), view, outline.filter());
    let frames = subscriber.into_frames(start, view);
    let segment = Segment { run_id: run.id, pauses_before };
    Ok(answer_with(segment, Body::from_stream(frames)))
}

async fn submit(app: &Arc<App>, caller: &Caller, run: &Run, answers: Vec<PartAnswer>) -> Result<(), Problem> {
    let approvals = app.storage().approvals(run.id).await?;
    let calls = app.storage().tool_calls(run.id).await?;
    // Clients repeat an answer until the call has an end, which an abandoned call never has.
    let is_abandoned =
        |call_id: &str| calls.iter().any(|call| call.call_id == call_id && call.status == ToolCallStatus::Abandoned);
    let call_of = |answer: &PartAnswer| match answer {
        PartAnswer::Approval { id, .. } => {
            approvals.iter().find(|approval| approval.id == *id).map(|approval| &approval.call_id)
        }
        PartAnswer::Result { call_id, .. } => calls.iter().map(|call| &call.call_id).find(|id| *id == call_id),
    };
    if answers.iter().filter_map(call_of).any(|call_id| is_abandoned(call_id)) {
        return Err(Problem::run_not_waiting(run.id));
    }
    let is_open = |answer: &PartAnswer| match answer {
        PartAnswer::Approval { id, .. } => {
            approvals.iter().any(|approval| approval.id == *id && approval.status == ApprovalStatus::Pending)
        }
        PartAnswer::Result { call_id, .. } => {
            calls.iter().any(|call| call.call_id == *call_id && call.status == ToolCallStatus::Client)
        }
    };
    for answer in answers.into_iter().filter(is_open) {
        let result = match answer {
            PartAnswer::Approval { id, approved, reason } => {
                let decision =
                    if approved { Decision::Approve { edited_input: None, reason } } else { Decision::Deny { reason } };
                app.decide(caller, run.id, id, decision).await
            }
            PartAnswer::Result { call_id, result } => {
                app.complete_client_call(&caller.owner, run.id, call_id, result).await
            }
        };
        match result {
            Ok(_) => {}
            // Another request answered first.
            Err(problem) if problem.status == StatusCode::CONFLICT => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

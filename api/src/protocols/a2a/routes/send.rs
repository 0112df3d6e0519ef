//! `SendMessage` and `SendStreamingMessage`: a message that starts a task, answers its question, or steers it.

use std::{pin::pin, sync::Arc};

use axum::response::Response;
use futures::StreamExt;
use holdfast_shared::{
    conversation::{Conversation, Handle},
    event_id::EventId,
    idempotency::IdempotencyKey,
    run::{Run, RunStatus, SubmitMode},
    storage::{MessageInput, Target},
};
use tokio::time::{Instant, timeout_at};

use super::{
    answer::{TaskAnswer, named},
    call::{A2aCall, fold_stream, history_of, task_of},
    message::SendParams,
    task::follow,
};
use crate::{
    app::{Posting, fingerprint},
    extract,
    problem::Problem,
    protocols::a2a::wire::{A2aFold, A2aView},
    relay::{FoldStream, Subscriber},
    run_request::checked_options,
    thread::{Outline, PartAnswer, answer_questions, content_of, find_thread, key_in_thread},
};

/// How the client receives the task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Streamed,
    Whole,
}

/// The stream of a run that a message has started or continued.
struct OpenTask {
    run: Arc<Run>,
    view: A2aView,
    subscriber: Option<Subscriber>,
    stream: FoldStream<A2aFold>,
}

/// Sends a message.
pub async fn send(call: &A2aCall<'_>, delivery: Delivery) -> Result<Response, Problem> {
    let params: SendParams = call.request.params()?;
    params.check()?;
    call.cursor()?;
    let sent = match params.message.task_id() {
        None => start(call, params, delivery).await,
        Some(id) => {
            let run = call.find(id).await?;
            expect_context(call, &params, &run).await?;
            continue_task(call, params, run, delivery).await
        }
    };
    sent.map_err(|problem| problem.about_id("messageId", "context"))
}

async fn continue_task(
    call: &A2aCall<'_>,
    params: SendParams,
    run: Run,
    delivery: Delivery,
) -> Result<Response, Problem> {
    let answers = params.message.answers()?;
    if !answers.is_empty() {
        return answer(call, params, run, answers, delivery).await;
    }
    steer(call, params, run, delivery).await
}

/// Fails if the message names another context than that of its task.
async fn expect_context(call: &A2aCall<'_>, params: &SendParams, run: &Run) -> Result<(), Problem> {
    let Some(context_id) = params.message.context_id() else { return Ok(()) };
    let context = find_thread(call.app, call.caller, context_id).await?;
    if context.is_some_and(|context| context.id == run.conversation_id) {
        return Ok(());
    }
    Err(Problem::invalid_body("The task of the message belongs to another contextId."))
}

/// Starts a task, or finds the task that the message has started before.
async fn start(call: &A2aCall<'_>, params: SendParams, delivery: Delivery) -> Result<Response, Problem> {
    let (seen, is_immediate) = (call.cursor()?, params.returns_immediately());
    let wants_history = params.wants_history()?;
    let context_id = params.message.context_id().map(str::to_owned);
    let context = match &context_id {
        Some(id) => find_thread(call.app, call.caller, id).await?,
        None => None,
    };
    let posting = posting(call, params, context_id.clone(), context).await?;
    if delivery == Delivery::Whole && is_immediate {
        let run = call.app.post(call.caller, posting).await?.run;
        return whole(call, &run, context_id, wants_history).await;
    }
    let (committed, subscriber) = call.app.post_and_follow(call.caller, posting, EventId::ORIGIN).await?;
    let run = Arc::new(committed.run);
    // A repeated request finds the pause that the run has passed; a new run has none.
    let pauses = if run.attempt == 0 { Vec::new() } else { Outline::read(call.app, run.id).await?.pauses };
    let passed = pauses.into_iter().find(|pause| *pause >= seen.event);
    let view = call.view(&run, context_name(call, &run, context_id).await?, None).await?;
    let stream = fold_stream(view.clone(), seen).until(passed);
    deliver(call, OpenTask { run, view, subscriber, stream }, delivery, wants_history)
}

/// Returns the message as the run's input.
async fn posting(
    call: &A2aCall<'_>,
    params: SendParams,
    context_id: Option<String>,
    context: Option<Conversation>,
) -> Result<Posting, Problem> {
    let options = checked_options(call.app, None, Vec::new(), None, None)?;
    let message_id = params.message.message_id.clone();
    let content = content_of(call.app, call.caller, params.message.into_parts()?).await?;
    let target = match (context, context_id.clone()) {
        (Some(context), Some(id)) if extract::id(&id) == Ok(context.id) => Target::Existing(context.id),
        (_, Some(name)) => Target::Named { handle: Handle::Chat(name), agent_id: call.agent_id },
        (_, None) => Target::New { agent_id: call.agent_id },
    };
    let parts = ["a2a", context_id.as_deref().unwrap_or_default(), &fingerprint(&content)];
    let key = match context_id.as_deref() {
        Some(context) => key_in_thread(call.app, call.caller, context, key_of(&message_id)).await?,
        None => key_of(&message_id),
    };
    let key = Some(IdempotencyKey::new(key, &parts));
    let posting = Posting::new(target, MessageInput::New(content));
    Ok(Posting { client_message_id: Some(message_id), options, key, ..posting })
}

/// Answers questions of a task, and continues after the pause at which it has asked them.
async fn answer(
    call: &A2aCall<'_>,
    params: SendParams,
    run: Run,
    answers: Vec<TaskAnswer>,
    delivery: Delivery,
) -> Result<Response, Problem> {
    let (seen, is_immediate) = (call.cursor()?, params.returns_immediately());
    let wants_history = params.wants_history()?;
    let answers = named(call, &run, answers).await?;
    let outline = Outline::read(call.app, run.id).await?;
    let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
    let pauses_before = outline.pauses_up_to(&questions).ok_or_else(|| Problem::run_not_waiting(run.id))?;
    // Order matters: the limit on streams refuses the request before the first answer.
    let permit = call.app.streams().open(call.caller)?;
    answer_questions(call.app, call.caller, &run, answers).await?;
    let context_id = params.message.context_id().map(str::to_owned);
    if delivery == Delivery::Whole && is_immediate {
        return whole(call, &call.find(&run.id.to_string()).await?, context_id, wants_history).await;
    }
    let context_id = context_name(call, &run, context_id).await?;
    let view = call.view(&run, context_id, Some(outline.pauses[pauses_before - 1])).await?;
    // A stream that has continued after a pause, because another client has answered there, does not end at it.
    let next = outline.pauses[pauses_before..].iter().copied().find(|pause| *pause >= seen.event);
    let run = Arc::new(run);
    let subscriber = call.app.relay().open(&call.caller.owner, &run, EventId::ORIGIN, permit).await?;
    let stream = fold_stream(view.clone(), seen).until(next);
    deliver(call, OpenTask { run, view, subscriber, stream }, delivery, wants_history)
}

/// Adds a message to a task that works. The client follows the task; a message that comes too late has a task of its own.
async fn steer(call: &A2aCall<'_>, params: SendParams, run: Run, delivery: Delivery) -> Result<Response, Problem> {
    let (context, key) = (run.conversation_id.to_string(), key_of(&params.message.message_id));
    let key = key_in_thread(call.app, call.caller, &context, key).await?;
    let is_repeated = call.app.storage().run_of_key(&call.caller.owner, &key).await?.is_some();
    match run.status {
        status if status.is_terminal() && !is_repeated => return Err(Problem::task_ended(run.id)),
        RunStatus::Waiting if !is_repeated => return Err(Problem::task_waits(run.id)),
        _ => {}
    }
    let wants_history = params.wants_history()?;
    let context_id = params.message.context_id().map(str::to_owned);
    let conversation_id = run.conversation_id;
    let posting = posting(call, params, Some(conversation_id.to_string()), None).await?;
    let target = Target::Existing(conversation_id);
    call.app.post(call.caller, Posting { target, mode: SubmitMode::Steer, ..posting }).await?;
    if delivery == Delivery::Whole {
        return whole(call, &call.find(&run.id.to_string()).await?, context_id, wants_history).await;
    }
    follow(call, run).await
}

/// Streams a task, or waits for its end or its question and returns it.
fn deliver(call: &A2aCall<'_>, task: OpenTask, delivery: Delivery, wants_history: bool) -> Result<Response, Problem> {
    let OpenTask { run, view, subscriber, stream } = task;
    if delivery == Delivery::Streamed {
        let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
        return Ok(call.stream(run.id, subscriber, b"", stream));
    }
    let (app, caller, owner) = (Arc::clone(call.app), call.caller.clone(), call.caller.owner.clone());
    let run_id = run.id;
    let work = async move {
        if let Some(subscriber) = subscriber {
            let mut frames = pin!(subscriber.into_frames(Vec::new(), stream));
            let end = async { while let Some(Ok(_)) = frames.next().await {} };
            // After a time-out, the client gets the task as it is.
            let _ = timeout_at(caller.no_later_than(Instant::now() + app.config().max_wait), end).await;
        }
        let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
        let run = app.storage().run(&owner, run_id).await?.ok_or_else(|| Problem::task_not_found(run_id))?;
        let mut task = task_of(&app, &view, &run).await?;
        if wants_history {
            task.history = history_of(&app, &owner, &run).await?;
        }
        Ok(view.result(&task))
    };
    Ok(call.respond_later(work))
}

/// Returns the task as it is.
async fn whole(
    call: &A2aCall<'_>,
    run: &Run,
    context_id: Option<String>,
    wants_history: bool,
) -> Result<Response, Problem> {
    let view = call.view(run, context_name(call, run, context_id).await?, None).await?;
    let mut task = task_of(call.app, &view, run).await?;
    if wants_history {
        task.history = history_of(call.app, &call.caller.owner, run).await?;
    }
    Ok(call.respond_with(view.result(&task)))
}

/// Returns the context as the client has named it, else as others see it.
async fn context_name(call: &A2aCall<'_>, run: &Run, given: Option<String>) -> Result<String, Problem> {
    match given {
        Some(name) => Ok(name),
        None => call.context_of(run.conversation_id).await,
    }
}

/// Returns the idempotency key of a message.
fn key_of(message_id: &str) -> String {
    format!("a2a:{message_id}")
}

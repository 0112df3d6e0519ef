//! The messages of a thread: those that are stored, and those of a run that has not ended.

use std::collections::VecDeque;

use holdfast_shared::{event::Event, event_id::EventId, message::Content, run::Run, storage::HistoryMessage};
use uuid::Uuid;

use crate::{
    app::App,
    page_sizes::history_size,
    problem::Problem,
    protocols::ag_ui::wire::{AgUiFold, AgUiMessage, AgUiView, apply, of_answer, of_stored},
    thread::{FILES, Outline, parts_of_answer},
};

/// Returns the newest stored messages of a conversation, oldest first, up to the size of a history. With a run, those before its
/// answer.
pub async fn stored(
    app: &App,
    owner: &str,
    conversation_id: Uuid,
    before: Option<&Run>,
) -> Result<Vec<AgUiMessage>, Problem> {
    let size = history_size(app);
    let newest = app.storage().history(owner, conversation_id, size).await?;
    let (mut messages, mut bytes) = (VecDeque::new(), 0);
    // A message of an older run may be longer than the query could know, so the newest come first until the page is full.
    for HistoryMessage { message, answer } in newest {
        if bytes >= size.bytes {
            break;
        }
        // Messages that wait for their turn come after the answer.
        if before
            .is_some_and(|run| message.id == run.output_message_id || message.run_id.unwrap_or(message.id) > run.id)
        {
            continue;
        }
        let parts = match (&answer, &message.content) {
            (Some(answer), Content::Text(text)) => {
                parts_of_answer(app, answer, text).await?.map(|parts| of_answer(answer, &parts, text))
            }
            _ => None,
        };
        for message in parts.unwrap_or_else(|| vec![of_stored(&message, FILES)]).into_iter().rev() {
            bytes += message.bytes();
            messages.push_front(message);
        }
    }
    Ok(messages.into())
}

/// Returns the state of a stream and the messages of its run at the base of an event that supersedes others.
pub async fn base_of(
    app: &App,
    run: &Run,
    view: &AgUiView,
    event: &Event,
) -> Result<(AgUiFold, Vec<AgUiMessage>), Problem> {
    let mut messages = Vec::new();
    let filter = Outline::read(app, run.id).await?.filter();
    let base = event.base.unwrap_or(EventId::ORIGIN);
    // The results of the front end's own tools are among the messages too.
    let view = AgUiView { after: None, ..view.clone() };
    let (mut fold, mut log) = (AgUiFold::of_answer(run.output_message_id), app.relay().pages(run.id, EventId::ORIGIN));
    while let Some(events) = log.next().await? {
        for event in events.iter().filter(|event| event.id <= base && !filter.leaves_out(event.id)) {
            fold.push(&view, event).iter().for_each(|event| apply(&mut messages, event));
        }
        if events.last().is_some_and(|last| last.id > base) {
            break;
        }
    }
    Ok((fold, messages))
}

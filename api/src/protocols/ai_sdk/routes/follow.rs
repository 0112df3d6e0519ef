//! Resumes a stream: a chat's answer at work, else its last one, from the start, or the chunks after a given number of them.

use std::sync::Arc;

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, TryStreamExt, future::ready};
use holdfast_shared::{
    event_id::EventId,
    run::{Run, RunStatus},
};

use super::{answer_with, body_of, filter::FilteredView, no_content, segment::Segment};
use crate::{
    app::App,
    auth::Caller,
    event_stream::{unsent, view_of},
    problem::Problem,
    protocols::ai_sdk::wire as ai_sdk,
    relay::TruncatedStream,
    thread::{LogFilter, Outline, current_run, find_thread},
    wire::{LogPosition, View, Wire},
};

/// Returns the chat's answer at work from the start, else its last one, while its run is unfinished and for `chat_grace` after its end.
pub async fn last_answer(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Response, Problem> {
    match run_of_chat(app, caller, id).await? {
        Some(run) if is_resumable(app, &run) => answer_from_start(app, caller, &Arc::new(run)).await,
        _ => Ok(no_content()),
    }
}

/// Returns the headers of the chat's answer, or of a segment, without opening a stream or reading an event.
pub async fn head(app: &App, caller: &Caller, id: &str) -> Result<Response, Problem> {
    let segment = Segment::parse(id);
    let run = match segment {
        Some(segment) => app.storage().run_without_answer(&caller.owner, segment.run_id).await?,
        None => None,
    };
    let (run, segment) = match (run, segment) {
        (Some(run), Some(segment)) => (run, segment),
        _ => match run_of_chat(app, caller, id).await? {
            Some(run) => {
                let segment = Segment::first_of(run.id);
                (run, segment)
            }
            None => return Ok(no_content()),
        },
    };
    Ok(if is_resumable(app, &run) { answer_with(segment, unsent()) } else { no_content() })
}

/// Streams a run's answer from its start, without superseded events, and then new ones as they arrive.
pub async fn answer_from_start(app: &Arc<App>, caller: &Caller, run: &Arc<Run>) -> Result<Response, Problem> {
    let stream = app.streams().open(caller)?;
    let outline = Outline::read_in_turn(app, caller, run.id).await?;
    let view = view_of(Wire::AiSdk, app, run, None).await?;
    let Some(subscriber) = app.relay().open(&caller.owner, run, EventId::ORIGIN, stream).await? else {
        return Ok(no_content());
    };
    let frames = subscriber.into_frames(Vec::new(), FilteredView::after(LogPosition::START, view, outline.filter()));
    Ok(answer_with(Segment::first_of(run.id), body_of(app, caller, run.id, frames)))
}

/// Streams the chunks after index `start`. For a segment's id, superseded chunks count, so that a segment only ever
/// grows. For a chat's id, the stream is the chat's last answer without superseded chunks. Fails with
/// `chunks_superseded` if the client may have counted chunks that no longer exist.
pub async fn from_index(app: &Arc<App>, caller: &Caller, id: &str, start: i64) -> Result<Response, Problem> {
    let segment = Segment::parse(id);
    let addressed = match segment {
        Some(segment) => {
            app.storage().run_without_answer(&caller.owner, segment.run_id).await?.map(|run| (run, segment))
        }
        None => None,
    };
    let (run, segment, is_chat) = match addressed {
        Some((run, segment)) => (run, segment, false),
        None => match run_of_chat(app, caller, id).await? {
            Some(run) => {
                let segment = Segment::first_of(run.id);
                (run, segment, true)
            }
            None => return Ok(no_content()),
        },
    };
    if !is_resumable(app, &run) {
        return Ok(no_content());
    }
    let stream = app.streams().open(caller)?;
    let outline = Outline::read_in_turn(app, caller, run.id).await?;
    let Some(bounds) = Bounds::of(&outline, segment, is_chat) else { return Ok(no_content()) };
    let view = view_of(Wire::AiSdk, app, &run, None).await?;
    let tail = match start {
        0.. => None,
        _ => Some(bounds.count(app, &view, outline.last).await?),
    };
    let mut skipped = match tail {
        None => start.unsigned_abs(),
        Some(count) => count.saturating_sub(start.unsigned_abs()),
    };
    // Beyond the certain chunks, the client may have counted chunks that are gone, and would miss as many others.
    if tail.is_none() && skipped > 0 && skipped > bounds.count(app, &view, bounds.certain).await? {
        return Err(Problem::chunks_superseded(run.id));
    }
    if bounds.filter.until.is_some() || outline.has_ended {
        // A client that has all chunks receives the last one again, because it waits for an end.
        skipped = skipped.min(bounds.count(app, &view, outline.last).await?.saturating_sub(1));
    }
    let subscriber = app.relay().open(&caller.owner, &Arc::new(run), bounds.after, stream).await?;
    let Some(subscriber) = subscriber else { return Ok(no_content()) };
    let mut start = Vec::new();
    if bounds.continues {
        ai_sdk::frame(&mut start, &ai_sdk::resumption(&view));
    }
    let view = FilteredView::after(subscriber.position(), view, bounds.filter);
    let frames = skip_chunks(skipped, subscriber.into_frames(start, view));
    let mut response = answer_with(segment, body_of(app, caller, segment.run_id, frames));
    if let Some(count) = tail {
        let last = HeaderValue::from(count.saturating_sub(1));
        response.headers_mut().insert(HeaderName::from_static("x-workflow-stream-tail-index"), last);
    }
    Ok(response)
}

/// The part of a run's log that a segment has.
struct Bounds {
    after: EventId,
    /// Whether an earlier segment has begun the message.
    continues: bool,
    filter: LogFilter,
    /// Up to this event, every earlier reader has received equal chunks.
    certain: EventId,
}

impl Bounds {
    /// Returns the bounds of a segment, or `None` if the run has not reached it.
    fn of(outline: &Outline, segment: Segment, is_chat: bool) -> Option<Self> {
        if is_chat {
            let filter = outline.filter();
            let changes = filter.left_out.iter().map(|(base, _)| *base).chain(outline.takeovers.first().copied());
            let certain = changes.min().unwrap_or(outline.last);
            return Some(Self { after: EventId::ORIGIN, continues: false, filter, certain });
        }
        let after = match segment.pauses_before {
            0 => EventId::ORIGIN,
            pauses => *outline.pauses.get(pauses - 1)?,
        };
        let filter = LogFilter { left_out: Vec::new(), until: outline.pauses.get(segment.pauses_before).copied() };
        let certain = outline.takeovers.iter().copied().find(|last| *last >= after).unwrap_or(outline.last);
        Some(Self { after, continues: segment.pauses_before > 0, filter, certain })
    }

    /// Returns the number of chunks up to and including an event.
    async fn count(&self, app: &App, view: &View, end: EventId) -> Result<u64, Problem> {
        let mut position = LogPosition { id: self.after, ..LogPosition::START };
        let mut count = u64::from(self.continues);
        let mut log = app.relay().pages(view.run_id, self.after);
        while let Some(events) = log.next().await? {
            for event in events {
                if event.id > end {
                    return Ok(count);
                }
                if self.filter.leaves_out(event.id) {
                    continue;
                }
                count += ai_sdk::chunks(view, position, &event).len() as u64;
                position = LogPosition::after(&event);
                if self.filter.until == Some(event.id) {
                    return Ok(count + ai_sdk::CHUNKS_AT_A_PAUSE);
                }
            }
        }
        Ok(count)
    }
}

/// Returns the run of a chat's answer at work, else of its last one.
async fn run_of_chat(app: &App, caller: &Caller, id: &str) -> Result<Option<Run>, Problem> {
    let Some(conversation) = find_thread(app, caller, id).await? else { return Ok(None) };
    current_run(app, caller, &conversation).await
}

/// Returns whether a disconnected client may still want the answer. A client that has cancelled it does not.
fn is_resumable(app: &App, run: &Run) -> bool {
    let is_recent = |ended: DateTime<Utc>| (Utc::now() - ended).to_std().is_ok_and(|age| age < app.config().chat_grace);
    match (run.status, run.finished_at) {
        (RunStatus::Cancelled, _) => false,
        (_, Some(ended)) => is_recent(ended),
        (_, None) => true,
    }
}

/// Returns the frames without the first `skipped` that have a chunk.
fn skip_chunks(
    skipped: u64,
    frames: impl Stream<Item = Result<Bytes, TruncatedStream>>,
) -> impl Stream<Item = Result<Bytes, TruncatedStream>> {
    let mut left = skipped;
    frames.map_ok(move |frames| skip_frames(&mut left, frames)).try_filter(|frames| ready(!frames.is_empty()))
}

/// Drops frames until `left` chunks are gone. A frame without a chunk, such as `retry:`, goes with the next chunk.
fn skip_frames(left: &mut u64, mut frames: Bytes) -> Bytes {
    while *left > 0
        && let Some(end) = frames.windows(2).position(|two| two == b"\n\n")
        && !frames.starts_with(ai_sdk::DONE)
    {
        let frame = frames.split_to(end + 2);
        let has_chunk = frame.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"data: "));
        *left -= u64::from(has_chunk);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_with_a_chunk_are_counted() {
        let all = "retry: 1000\n\ndata: {\"a\":1}\n\nid: 1-2\ndata: {}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n";
        for (skipped, rest) in [
            (0, all),
            (1, "id: 1-2\ndata: {}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n"),
            (2, "data: {\"b\":2}\n\ndata: [DONE]\n\n"),
            (3, "data: [DONE]\n\n"),
            (9, "data: [DONE]\n\n"),
        ] {
            assert_eq!(skip_frames(&mut { skipped }, Bytes::from(all)), rest, "after {skipped}");
        }
        assert_eq!(skip_frames(&mut 3, Bytes::from(": hb\n")), ": hb\n");
    }
}

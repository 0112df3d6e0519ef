//! Taking a stream up again: the whole of a chat's last answer, or what comes behind a number of chunks.

use std::sync::Arc;

use axum::{
    body::Body,
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

use super::{answer_with, chat, no_content, segment::Segment};
use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    relay::{Aborted, Excerpt, Opened, Outline, is_left_out},
    routes::events::{unsent, view_of},
    wire::{Before, View, Wire, ai_sdk},
};

/// The chat's last answer, whole, while it is being made and for a while after.
pub async fn last_answer(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Response, Problem> {
    match last_run(app, caller, id).await? {
        Some(run) if is_resumable(app, &run) => whole_answer(app, caller, &Arc::new(run)).await,
        _ => Ok(no_content()),
    }
}

/// What HEAD says of the chat's last answer, or of a segment. It opens no stream and reads no event.
pub async fn head(app: &App, caller: &Caller, id: &str) -> Result<Response, Problem> {
    let segment = Segment::parse(id);
    let run = match segment {
        Some(segment) => app.storage().run_without_answer(&caller.owner, segment.run_id).await?,
        None => None,
    };
    let (run, segment) = match (run, segment) {
        (Some(run), Some(segment)) => (run, segment),
        _ => match last_run(app, caller, id).await? {
            Some(run) => {
                let segment = Segment::first_of(run.id);
                (run, segment)
            }
            None => return Ok(no_content()),
        },
    };
    Ok(if is_resumable(app, &run) { answer_with(segment, unsent()) } else { no_content() })
}

/// The answer of a run from its start, without what is superseded already, and what is still to come.
pub async fn whole_answer(app: &Arc<App>, caller: &Caller, run: &Arc<Run>) -> Result<Response, Problem> {
    let stream = app.streams().open(caller)?;
    let outline = app.relay().outline(run.id).await?;
    let view = view_of(Wire::AiSdk, app, run, None).await?;
    let Opened::Stream(follower) = app.relay().open(&caller.owner, run, EventId::ORIGIN, stream).await? else {
        return Ok(no_content());
    };
    let frames = follower.showing(Excerpt { left_out: outline.superseded, until: None }).into_frames(view.clone());
    Ok(answer_with(Segment::first_of(run.id), Body::from_stream(frames)))
}

/// What comes behind the first chunks of a segment, which only ever appends: what is superseded keeps its place. Where the id
/// is a chat's, the same of its whole last answer, without what is superseded already.
pub async fn from_index(app: &Arc<App>, caller: &Caller, id: &str, start: i64) -> Result<Response, Problem> {
    let segment = Segment::parse(id);
    let addressed = match segment {
        Some(segment) => {
            app.storage().run_without_answer(&caller.owner, segment.run_id).await?.map(|run| (run, segment))
        }
        None => None,
    };
    let (run, segment, is_whole) = match addressed {
        Some((run, segment)) => (run, segment, false),
        None => match last_run(app, caller, id).await? {
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
    let outline = app.relay().outline(run.id).await?;
    let Some(bounds) = Bounds::of(&outline, segment, is_whole) else { return Ok(no_content()) };
    let view = view_of(Wire::AiSdk, app, &run, None).await?;
    let tail = match start {
        0.. => None,
        _ => Some(bounds.count(app, &view, outline.last).await?),
    };
    let mut skipped = match tail {
        None => start.unsigned_abs(),
        Some(count) => count.saturating_sub(start.unsigned_abs()),
    };
    // A client that has more than is certain has counted chunks that are gone, or may have: it would miss as many others.
    if tail.is_none() && skipped > 0 && skipped > bounds.count(app, &view, bounds.certain).await? {
        return Err(Problem::chunks_superseded(run.id));
    }
    if bounds.until.is_some() || outline.has_ended {
        // Who has everything is told once more that it is the end.
        skipped = skipped.min(bounds.count(app, &view, outline.last).await?.saturating_sub(1));
    }
    let opened = app.relay().open(&caller.owner, &Arc::new(run), bounds.after, stream).await?;
    let Opened::Stream(mut follower) = opened else { return Ok(no_content()) };
    if bounds.goes_on {
        let mut start = Vec::new();
        ai_sdk::frame(&mut start, &ai_sdk::resumption(&view));
        follower.led_by(&start);
    }
    let frames = follower.showing(Excerpt { left_out: bounds.left_out, until: bounds.until }).into_frames(view);
    let frames = skip_chunks(skipped, frames);
    let mut response = answer_with(segment, Body::from_stream(frames));
    if let Some(count) = tail {
        let last = HeaderValue::from(count.saturating_sub(1));
        response.headers_mut().insert(HeaderName::from_static("x-workflow-stream-tail-index"), last);
    }
    Ok(response)
}

/// Where a segment lies in its run's log.
struct Bounds {
    after: EventId,
    /// The pause that it ends at, if it has ended so.
    until: Option<EventId>,
    /// Whether the message was begun before.
    goes_on: bool,
    left_out: Vec<(EventId, EventId)>,
    /// Up to where it was the same for whoever has read it before.
    certain: EventId,
}

impl Bounds {
    /// `None` if the run has not come to this segment.
    fn of(outline: &Outline, segment: Segment, is_whole: bool) -> Option<Self> {
        if is_whole {
            let left_out = outline.superseded.clone();
            let changes = left_out.iter().map(|(base, _)| *base).chain(outline.breaks.first().copied());
            let certain = changes.min().unwrap_or(outline.last);
            return Some(Self { after: EventId::ORIGIN, until: None, goes_on: false, left_out, certain });
        }
        let after = match segment.pauses_before {
            0 => EventId::ORIGIN,
            pauses => *outline.pauses.get(pauses - 1)?,
        };
        let until = outline.pauses.get(segment.pauses_before).copied();
        let certain = outline.breaks.iter().copied().find(|last| *last >= after).unwrap_or(outline.last);
        Some(Self { after, until, goes_on: segment.pauses_before > 0, left_out: Vec::new(), certain })
    }

    /// How many chunks there are up to an event.
    async fn count(&self, app: &App, view: &View, end: EventId) -> Result<u64, Problem> {
        let mut before = Before { id: self.after, ..Before::START };
        let mut cursor = self.after;
        let mut count = u64::from(self.goes_on);
        loop {
            let events = app.relay().page(view.run_id, cursor).await?;
            if events.is_empty() {
                return Ok(count);
            }
            for event in events {
                if event.id > end {
                    return Ok(count);
                }
                cursor = event.id;
                if is_left_out(&self.left_out, event.id) {
                    continue;
                }
                count += ai_sdk::chunks(view, before, &event).len() as u64;
                before = Before::behind(&event);
                if self.until == Some(event.id) {
                    return Ok(count + ai_sdk::CHUNKS_AT_A_PAUSE);
                }
                if event.is_terminal() {
                    return Ok(count);
                }
            }
        }
    }
}

/// The run of a chat's last answer, which may be at work or wait for its turn.
async fn last_run(app: &App, caller: &Caller, id: &str) -> Result<Option<Run>, Problem> {
    let Some(conversation) = chat::find(app, caller, id).await? else { return Ok(None) };
    Ok(app.storage().last_run(&caller.owner, conversation.id).await?)
}

/// Whether somebody may have been cut off from the answer. Whoever has cancelled it has not.
fn is_resumable(app: &App, run: &Run) -> bool {
    let is_recent = |ended: DateTime<Utc>| (Utc::now() - ended).to_std().is_ok_and(|age| age < app.config().chat_grace);
    match (run.status, run.finished_at) {
        (RunStatus::Cancelled, _) => false,
        (_, Some(ended)) => is_recent(ended),
        (_, None) => true,
    }
}

/// The frames without the first that have a chunk.
fn skip_chunks(
    skipped: u64,
    frames: impl Stream<Item = Result<Bytes, Aborted>>,
) -> impl Stream<Item = Result<Bytes, Aborted>> {
    let mut left = skipped;
    frames.map_ok(move |frames| skip_frames(&mut left, frames)).try_filter(|frames| ready(!frames.is_empty()))
}

/// What leads the frames, such as `retry:`, goes with the chunk that it is before.
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
            assert_eq!(skip_frames(&mut { skipped }, Bytes::from(all)), rest, "behind {skipped}");
        }
        assert_eq!(skip_frames(&mut 3, Bytes::from(": hb\n")), ": hb\n");
    }
}

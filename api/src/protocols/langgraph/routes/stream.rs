//! Responses that follow a run: its stream, and its values once it has ended or waits.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use holdfast_shared::{
    conversation::Conversation,
    run::{Run, RunStatus},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{history, segment::RunSegment, state::values_of};
use crate::{
    app::App,
    auth::Caller,
    disconnect::{DisconnectGuard, GuardedFrames},
    event_stream::event_stream,
    in_flight::InFlightGuard,
    problem::Problem,
    protocols::langgraph::wire::{LangFold, LangHistory, LangMode, LangModes, LangView},
    relay::{FoldStream, SeenFrames, Subscriber, TruncatedStream},
    wire::FrameId,
};

/// A request that follows a run.
pub struct Following {
    pub caller: Caller,
    pub thread: Conversation,
    /// The client's name for the thread.
    pub thread_id: String,
    pub segment: RunSegment,
    pub modes: LangModes,
    pub seen: SeenFrames,
    /// Whether the run ends when the client disconnects.
    pub cancels: bool,
    /// The query of the address at which the client comes back.
    pub query: String,
}

impl Following {
    /// Returns the stream of the run. The subscriber must be at the log's start.
    pub async fn stream(self, app: &Arc<App>, subscriber: Subscriber) -> Result<Response, Problem> {
        let (mut history, mut memory) = (Arc::default(), None);
        if self.modes.has(LangMode::Values) {
            let _turn = app.read_limit().begin(&self.caller).await?;
            let _assembled = app.unread_answers().assemble(&self.caller, app.config().max_page_bytes)?;
            history = history::before_answer(app, &self.caller.owner, &self.segment.run).await?;
            memory = Some(app.unread_answers().hold(&self.caller, history.bytes())?);
        }
        let frames = subscriber.into_frames(Vec::new(), self.fold(history));
        let body = Body::from_stream(self.guarded(app, frames, memory));
        let mut response = event_stream(self.segment.run.id, body);
        self.add_locations(response.headers_mut(), "stream");
        Ok(response)
    }

    /// Returns the values of the thread once the run has ended or waits. The body begins at once, and has a blank line from time to
    /// time, so that no proxy takes the connection for dead.
    pub fn values(self, app: &Arc<App>, subscriber: Subscriber) -> Response {
        let frames = subscriber.into_frames(Vec::new(), self.fold(Arc::default()));
        let blank = frames.filter_map(|frame| async {
            match frame {
                Ok(bytes) if bytes.is_empty() => None,
                Ok(_) => Some(Ok(Bytes::from_static(b"\n"))),
                Err(truncated) => Some(Err(truncated)),
            }
        });
        let (asking, caller, thread, run_id) =
            (Arc::clone(app), self.caller.clone(), self.thread.clone(), self.segment.run.id);
        let last = stream::once(async move {
            let values = final_values(&asking, &caller, &thread, run_id).await;
            values.map(|values| Bytes::from(values.to_string())).map_err(|problem| {
                tracing::warn!(run.id = %run_id, problem.code, problem.detail, "failed to read the values of a thread");
                TruncatedStream
            })
        });
        let body = Body::from_stream(self.guarded(app, blank.chain(last), None));
        let json = HeaderValue::from_static("application/json");
        let mut response = ([(header::CONTENT_TYPE, json)], body).into_response();
        self.add_locations(response.headers_mut(), "join");
        response
    }

    fn fold(&self, history: Arc<LangHistory>) -> FoldStream<LangFold> {
        let RunSegment { run, after, until, .. } = &self.segment;
        let view = LangView {
            modes: self.modes,
            thread_id: self.thread_id.clone(),
            run_id: self.segment.id(),
            history,
            after: *after,
        };
        FoldStream::new(view, LangFold::of_answer(run.output_message_id)).after(self.seen).until(*until)
    }

    fn guarded<S>(
        &self,
        app: &Arc<App>,
        frames: S,
        memory: Option<InFlightGuard>,
    ) -> GuardedFrames<S, Option<InFlightGuard>> {
        let guard = || DisconnectGuard::new(app, &self.caller.owner, self.segment.run.id, Duration::ZERO);
        GuardedFrames::new(frames, self.cancels.then(guard), memory)
    }

    /// Adds the run's address, and the one at which a client follows it again. Both are relative to the base URL.
    fn add_locations(&self, headers: &mut HeaderMap, what: &str) {
        let run = run_path(&self.thread_id, self.segment.id());
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        for (name, value) in
            [(header::CONTENT_LOCATION, run.clone()), (header::LOCATION, format!("{run}/{what}{query}"))]
        {
            headers.insert(name, HeaderValue::from_str(&value).expect("a path is ASCII"));
        }
    }
}

/// Returns the path of a run below the base URL.
pub fn run_path(thread_id: &str, run_id: Uuid) -> String {
    let thread = percent_encoding::utf8_percent_encode(thread_id, percent_encoding::NON_ALPHANUMERIC);
    format!("/threads/{}/runs/{run_id}", thread.to_string().replace("%2D", "-").replace("%5F", "_").replace("%2E", "."))
}

/// Returns the last values of a run: those of its thread, or its error.
async fn final_values(app: &App, caller: &Caller, thread: &Conversation, run_id: Uuid) -> Result<Value, Problem> {
    let _turn = app.read_limit().begin(caller).await?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let run: Option<Run> = app.storage().run_without_answer(&caller.owner, run_id).await?;
    let run = run.ok_or_else(|| Problem::run_not_found(run_id))?;
    if let (RunStatus::Failed, Some(error)) = (run.status, run.error) {
        return Ok(json!({"__error__": {"error": error.code, "message": error.message}}));
    }
    let thread = app.storage().conversation(&caller.owner, thread.id).await?;
    let thread = thread.ok_or_else(|| Problem::run_not_found(run_id))?;
    Ok(values_of(&history::state_of(app, caller, &thread).await?))
}

/// Returns the frames that a client has, by the header `Last-Event-ID`; `-1` stands for none. Fails if it is no id of a frame.
pub fn seen_frames(headers: &HeaderMap) -> Result<SeenFrames, Problem> {
    let cursor = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("not text").trim());
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty() && *cursor != "-1") else {
        return Ok(SeenFrames::NONE);
    };
    let frame: FrameId = cursor.parse().map_err(|error| Problem::malformed_event_id(&error))?;
    Ok(SeenFrames::UpTo(frame))
}

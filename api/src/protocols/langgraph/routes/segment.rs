//! Segments: a run before its first pause, between two pauses, and after the last. The protocol's clients know each by an id of its
//! own, because an answer to an interrupt starts a run there.

use std::sync::Arc;

use holdfast_shared::{
    conversation::Conversation,
    event_id::EventId,
    page::PageSize,
    run::{Run, RunStatus},
    storage::RunFilter,
};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    extract,
    problem::Problem,
    thread::{Outline, truncated_id},
};

/// Newest runs of a thread among which the server finds a segment by its id.
const SEARCHED_RUNS: usize = 200;

/// Most segments of a run that the server finds by their ids.
const SEARCHED_SEGMENTS: usize = 64;

/// A part of a run.
pub struct RunSegment {
    pub run: Arc<Run>,
    /// The number of pauses before it.
    pub number: usize,
    /// The pause before it.
    pub after: Option<EventId>,
    /// The pause that ends it, if the run has continued after that.
    pub until: Option<EventId>,
}

/// Returns the id of a segment: the run's, and one derived from it after each pause.
pub fn segment_id(run_id: Uuid, number: usize) -> Uuid {
    if number == 0 { run_id } else { Uuid::new_v5(&run_id, number.to_string().as_bytes()) }
}

impl RunSegment {
    /// Returns the segment that begins after so many pauses. A run that waits has not passed its last one.
    pub fn of(run: Arc<Run>, number: usize, pauses: &[EventId]) -> Self {
        let after = number.checked_sub(1).and_then(|before| pauses.get(before)).copied();
        // The stream of a run that waits finds its last pause by itself.
        let until = pauses.get(number).copied();
        Self { run, number, after, until }
    }

    pub fn id(&self) -> Uuid {
        segment_id(self.run.id, self.number)
    }

    /// Returns the status as the protocol names it.
    pub fn status(&self) -> &'static str {
        match self.run.status {
            // The last pause of a run that waits is the end of its segment too.
            _ if self.until.is_some() => "interrupted",
            status => status_name(status),
        }
    }
}

/// Returns a run's status as the protocol names it.
pub const fn status_name(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "pending",
        RunStatus::Running => "running",
        RunStatus::Waiting | RunStatus::Cancelled => "interrupted",
        RunStatus::Completed => "success",
        RunStatus::Failed => "error",
    }
}

/// Finds it in the caller's turn of long reads, because it may read the run's log. A write needs no turn: other callers' reads
/// must not refuse a cancel.
pub async fn read_segment(app: &App, caller: &Caller, thread: &Conversation, id: &str) -> Result<RunSegment, Problem> {
    let _turn = app.read_limit().begin(caller).await?;
    find_segment(app, caller, thread, id).await
}

/// Returns the part of a thread's run that a client knows by this id.
pub async fn find_segment(app: &App, caller: &Caller, thread: &Conversation, id: &str) -> Result<RunSegment, Problem> {
    let unknown = || Problem::run_not_found(truncated_id(id));
    let id = extract::id(id).map_err(|_| unknown())?;
    let run = app.storage().run_without_answer(&caller.owner, id).await?;
    let (run, number) = match run.filter(|run| run.conversation_id == thread.id) {
        Some(run) => (run, 0),
        None if id.get_version_num() == 5 => of_later_segment(app, caller, thread, id).await?.ok_or_else(unknown)?,
        None => return Err(unknown()),
    };
    // A run in its first attempt has passed no pause.
    let pauses = if run.attempt < 2 { Vec::new() } else { Outline::read(app, run.id).await?.pauses };
    if number > pauses.len() {
        return Err(unknown());
    }
    Ok(RunSegment::of(Arc::new(run), number, &pauses))
}

async fn of_later_segment(
    app: &App,
    caller: &Caller,
    thread: &Conversation,
    id: Uuid,
) -> Result<Option<(Run, usize)>, Problem> {
    let filter = RunFilter { conversation_id: Some(thread.id), status: None };
    let size = PageSize { items: SEARCHED_RUNS, bytes: app.config().max_page_bytes };
    let page = app.storage().runs(&caller.owner, filter, size, None).await?;
    let runs = page.into_iter().flat_map(|page| page.items);
    let numbered = |run: Run| {
        let number = (1..=SEARCHED_SEGMENTS).find(|number| segment_id(run.id, *number) == id)?;
        Some((run, number))
    };
    Ok(runs.into_iter().find_map(numbered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_has_an_id_of_its_own() {
        let run_id = Uuid::now_v7();
        let ids = [0, 1, 2].map(|number| segment_id(run_id, number));
        assert_eq!(ids[0], run_id);
        assert!(ids[1] != ids[2] && ids[1].get_version_num() == 5);
        assert_eq!(ids[1], segment_id(run_id, 1));
    }
}

//! The idempotency key of a client's own id, which is unique within its thread only.

use crate::{app::App, auth::Caller, problem::Problem, thread::find_thread};

/// Returns the key under which a thread's request is stored. The first thread with an id has the id's `key`, and each other one has a
/// key with its own name.
pub async fn key_in_thread(app: &App, caller: &Caller, thread: &str, key: String) -> Result<String, Problem> {
    let Some(run_id) = app.storage().run_of_key(&caller.owner, &key).await? else { return Ok(key) };
    let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
    // Order matters: a concurrent request with this id has made its thread before its run was found.
    let found = find_thread(app, caller, thread).await?;
    let is_of_thread = run.zip(found).is_some_and(|(run, found)| run.conversation_id == found.id);
    Ok(if is_of_thread { key } else { named_key(thread, &key) })
}

/// Returns the key of a thread whose id another thread has used before.
pub fn named_key(thread: &str, key: &str) -> String {
    format!("{key}\n{thread}")
}

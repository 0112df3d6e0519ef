//! Fewer files for a provider that has refused a request with files.
//!
//! Providers rarely name the file, and often do not even say that a file is the reason. So the step asks without the files of the
//! run's tools, then also without those of earlier messages; an answer proves that one of them was refused. Files of the newest
//! message are never left out in silence, because the answer would be about something else: they fail the run by their names, if
//! the refusal is spelled as one of a file, or if the provider takes the request without them.

use std::collections::BTreeSet;

use holdfast_shared::{file::Attachment, run::RunError};
use uuid::Uuid;

use super::{Recovery, stop_for, with_words};
use crate::{
    executor::{Stop, attempt::Attempt, step_request},
    model,
};

/// Files that may be the reason of a refusal.
struct FileSuspects {
    files: Vec<Attachment>,
    /// True if the newest message has them.
    are_of_input: bool,
}

/// Leaves files out of the next request after a refusal. Fails if only those of the newest message, or none, are left.
pub(super) async fn mend(
    recovery: &mut Recovery,
    attempt: &mut Attempt<'_>,
    error: model::Error,
    limit: Option<&str>,
) -> Result<(), Stop> {
    let suspects = match suspects(attempt) {
        Some(suspects) if !suspects.are_of_input => {
            tracing::warn!(%error, files = suspects.files.len(), "the model refused a request with files; asking without them");
            attempt.memory.files.leave_out(&suspects.files);
            recovery.left_out.extend(suspects.files);
            return Ok(());
        }
        other => other,
    };
    if let Some(FileSuspects { files, .. }) = suspects
        && (error.is_of_file() || passes_without(&files, attempt, limit).await?)
    {
        tracing::warn!(%error, "the model refused a file of the message");
        return Err(Stop::Failed(refusal_of(&files, attempt, &error)));
    }
    attempt.memory.files.take_back();
    Err(stop_for(attempt, error))
}

/// Remembers the files without which the model has answered, and warns of them.
pub(super) fn settle(refused: Vec<Attachment>, attempt: &mut Attempt<'_>) {
    if refused.is_empty() {
        return;
    }
    remember(&refused, attempt);
    let model = attempt.model_of_step().choice().clone();
    let message = format!("The model answers without {}, because {model} refuses a request with it.", names(&refused));
    attempt.warn("file_refused", message);
}

/// Returns the files of the newest source that the request has as files, those of the newest message last.
fn suspects(attempt: &Attempt<'_>) -> Option<FileSuspects> {
    let memory = &attempt.memory;
    let of_input: BTreeSet<Uuid> = memory.input.attachments.iter().map(|file| file.file_id).collect();
    let mut seen = BTreeSet::new();
    let mut sent = |file: &Attachment| memory.files.sends(file.file_id) && seen.insert(file.file_id);
    let of_tools = memory.trace.iter().flat_map(|message| memory.files_of(message)).map(Attachment::from);
    let of_tools: Vec<_> = of_tools.filter(|file| !of_input.contains(&file.file_id) && sent(file)).collect();
    let earlier = memory.earlier.iter().flat_map(|earlier| &earlier.message.attachments).cloned();
    let earlier: Vec<_> = earlier.filter(|file| !of_input.contains(&file.file_id) && sent(file)).collect();
    let input: Vec<_> = memory.input.attachments.iter().filter(|file| sent(file)).cloned().collect();
    let sources = [(of_tools, false), (earlier, false), (input, true)];
    let newest = sources.into_iter().find(|(files, _)| !files.is_empty());
    newest.map(|(files, are_of_input)| FileSuspects { files, are_of_input })
}

/// Returns whether the provider begins an answer to the request without these files.
async fn passes_without(files: &[Attachment], attempt: &mut Attempt<'_>, limit: Option<&str>) -> Result<bool, Stop> {
    attempt.memory.files.leave_out(files);
    let request = step_request::build(attempt, limit).await?;
    let call = attempt.model_of_step().ask(*request);
    Ok(attempt.alongside(call).await?.is_ok())
}

fn refusal_of(files: &[Attachment], attempt: &Attempt<'_>, error: &model::Error) -> RunError {
    remember(files, attempt);
    let model = attempt.model_of_step().choice();
    let names = names(files);
    let message = format!(
        "{model} refused {names}; send the message without it, or with the file in another form. Later requests have a line in its place"
    );
    RunError::new("file_refused", with_words(attempt, message, error)).with_details(error.to_string())
}

fn remember(files: &[Attachment], attempt: &Attempt<'_>) {
    let model = attempt.model_of_step().choice().path();
    for file in files {
        attempt.shared.refusals.note_file(model.clone(), file.file_id);
    }
}

fn names(files: &[Attachment]) -> String {
    let names: Vec<String> = files.iter().map(|file| format!("{:?}", file.name)).collect();
    match &names[..] {
        [name] => format!("the file {name}"),
        names => format!("one of the files {}", names.join(", ")),
    }
}

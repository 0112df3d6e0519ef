//! The workspace as the tools of one run use it.

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture};
use holdfast_knowledge::FoundPassage;
use holdfast_shared::{
    config::Provider, file::ToolFile, memory::MemoryReference, time_zone::RunDate, tool::ToolError, usage::Usage,
};
use holdfast_workspace::{
    Author, AuthorCall, Call, EntityReference, Merge, Merger, Notice, ToolFailure, ToolOutput, WebSearch, Workspace,
    WorkspaceTool,
};
use serde_json::Value;
use uuid::Uuid;

use crate::model::{AnswerDelta, ChosenModel, Request, Turn};

/// Pause before a call of the workspace is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// Most entities whose ids are looked for in the result of another server's tool.
const MAX_IDS: usize = 20;

/// The workspace that a run changes.
pub struct WorkspaceOfRun {
    pub workspace: Workspace,
    pub owner: String,
    pub run_id: Uuid,
    pub attempt: u32,
    /// The project of the run's context.
    pub project: Option<Uuid>,
    /// The provider of web searches, if one is configured.
    pub web_search: Option<WebSearch>,
    /// The model that merges texts.
    pub model: ChosenModel,
    /// The date that the model reads.
    pub date: Option<RunDate>,
    /// Longest merged text, in bytes.
    pub max_answer_bytes: usize,
    /// Tokens of merges that the run does not count yet, also of failed ones.
    pub usage: Mutex<Usage>,
}

/// The result of a call.
#[derive(Debug, Clone, Default)]
pub struct CallResult {
    /// The text for the model.
    pub output: String,
    /// The entities of the workspace that it is about.
    pub entities: Vec<EntityReference>,
    /// A fact for the user's front end.
    pub notice: Option<Notice>,
    /// Passages of documents, which are the output.
    pub passages: Vec<FoundPassage>,
    /// The files that the tool has returned.
    pub files: Vec<ToolFile>,
    /// The memories that the model reads with it.
    pub told: Vec<MemoryReference>,
}

impl From<String> for CallResult {
    fn from(output: String) -> Self {
        Self { output, ..Self::default() }
    }
}

impl WorkspaceOfRun {
    /// Calls a tool of the workspace. While the database is away, the call is repeated under its key, so its changes are made
    /// once; the lease and the deadline of the run bound it.
    pub async fn call(&self, tool: &WorkspaceTool, key: &str, input: Value) -> Result<CallResult, ToolError> {
        let call = AuthorCall { run_id: self.run_id, attempt: self.attempt, call_id: key };
        let author = Author { call: Some(call), ..Author::user(&self.owner) };
        let merger = ModelMerger { of_run: self, merged: Mutex::default() };
        let call = Call {
            workspace: &self.workspace,
            author,
            project: self.project,
            merger: Some(&merger),
            web_search: self.web_search.as_ref(),
        };
        loop {
            match tool.call(call, input.clone()).await {
                Ok(ToolOutput { text, entities, notice, .. }) => {
                    return Ok(CallResult { output: text, entities, notice, ..CallResult::default() });
                }
                Err(ToolFailure::Refused(error)) => return Err(error),
                Err(ToolFailure::Storage(error)) if error.is_away() || error.is_conflict() => {
                    tracing::warn!(
                        tool.name = tool.name,
                        error = &error as &dyn Error,
                        "failed to reach the workspace; trying again"
                    );
                    tokio::time::sleep(PAUSE).await;
                }
                Err(ToolFailure::Storage(error)) => {
                    tracing::error!(
                        tool.name = tool.name,
                        error = &error as &dyn Error,
                        "failed to call a tool of the workspace"
                    );
                    let problem = "the workspace failed, and this call changed nothing; the worker's log says why";
                    return Err(ToolError::new("workspace_failed", problem));
                }
            }
        }
    }

    /// Returns the tokens of merges since the last time.
    pub fn take_usage(&self) -> Usage {
        std::mem::take(&mut *self.usage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the owner's entities whose ids a text has. None if the database is away: the text has the ids anyway.
    pub async fn entities_in(&self, text: &str) -> Vec<EntityReference> {
        let ids = ids_in(text);
        if ids.is_empty() {
            return Vec::new();
        }
        self.workspace.references(&self.owner, &ids).await.unwrap_or_default()
    }
}

/// The model of a run, as it merges texts.
struct ModelMerger<'a> {
    of_run: &'a WorkspaceOfRun,
    /// The texts that were merged, by the field and the stored text, for a change that must be tried again.
    merged: Mutex<BTreeMap<(String, String), String>>,
}

/// The task of the model.
const MERGE: &str = "Merge the new text into the stored text. Keep all facts of both; where they contradict one another, the new \
                     text holds. Keep the form of the stored text. Answer with the merged text alone.";

impl Merger for ModelMerger<'_> {
    fn merge<'a>(&'a self, merge: Merge<'a>) -> BoxFuture<'a, Result<String, ToolError>> {
        async move {
            if self.of_run.model.choice().provider == Provider::Scripted {
                return Ok(format!("{}\n\n{}", merge.stored, merge.new));
            }
            let key = (merge.field.to_owned(), merge.stored.to_owned());
            let merged = || self.merged.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(text) = merged().get(&key).cloned() {
                return Ok(text);
            }
            let wishes = merge.instructions.map(|wishes| format!("\n\nInstructions: {wishes}")).unwrap_or_default();
            let task = format!(
                "Field: {}{wishes}\n\n<stored>\n{}\n</stored>\n\n<new>\n{}\n</new>",
                merge.field, merge.stored, merge.new
            );
            let turns = vec![Turn::user(task).dated(self.of_run.date.as_ref())];
            let request = Request { system: Some(MERGE.to_owned()), turns, ..Request::default() };
            let text = self.answer(request).await.map_err(|problem| {
                ToolError::new(
                    "merge_failed",
                    format!("{}: the texts were not merged, and nothing has changed: {problem}", merge.field),
                )
            })?;
            merged().insert(key, text.clone());
            Ok(text)
        }
        .boxed()
    }
}

impl ModelMerger<'_> {
    async fn answer(&self, request: Request) -> Result<String, String> {
        let answer = self.of_run.model.ask(request).await;
        let mut deltas = answer.map_err(|error| format!("the model failed with {}", error.code()))?.deltas;
        let mut text = String::new();
        while let Some(delta) = deltas.next().await {
            match delta.map_err(|error| format!("the model failed with {}", error.code()))? {
                AnswerDelta::Text(piece) => text.push_str(&piece),
                AnswerDelta::End(usage, _) => {
                    *self.of_run.usage.lock().unwrap_or_else(PoisonError::into_inner) += usage;
                    return Ok(text);
                }
                AnswerDelta::Reasoning(_) | AnswerDelta::Call(_) | AnswerDelta::Picture => {}
            }
            if text.len() > self.of_run.max_answer_bytes {
                return Err("the model's text is too long".to_owned());
            }
        }
        Err("the model's text broke off".to_owned())
    }
}

/// Returns the first ids in a text, without repetitions.
fn ids_in(text: &str) -> Vec<Uuid> {
    const CHARS: usize = 36;
    let words = text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').filter(|word| word.len() == CHARS);
    let mut ids = Vec::new();
    for id in words.filter_map(|word| word.parse().ok()) {
        if !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() == MAX_IDS {
            break;
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_among_words() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let text = format!("{{\"id\":\"{one}\"}} {one}, {other}. 0000 abc-def {}", "a".repeat(36));
        assert_eq!(ids_in(&text), [one, other]);
        let many: Vec<String> = (0..100).map(|_| Uuid::now_v7().to_string()).collect();
        assert_eq!(ids_in(&many.join(" ")).len(), MAX_IDS);
    }
}

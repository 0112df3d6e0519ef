//! The memory of an agent: what it remembers of the user of a run, beyond the conversation.
//!
//! A result of `recall` has ids and versions only. The executor reads the texts for each request to the model
//! (`executor/results.rs`), so that no trace has the text of a memory that its user deletes.

use std::{error::Error, time::Duration};

use holdfast_shared::{
    given_json,
    memory::{InvalidMemory, MemoryReference, MemoryScope, checked_text, parse_expiry},
    quotas::MemoryLimits,
    storage::{self, MemoryCall, NewMemory, Remembered, Storage},
    tool::{Effect, ToolError},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    ranking::{Ranked, rank},
    workspace::CallResult,
};
use crate::model::ToolSpec;

/// Pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// A tool of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryTool {
    /// Stores a memory.
    Remember,
    /// Finds memories.
    Recall,
    /// Deletes a memory.
    Forget,
}

/// The memory that a run uses.
pub struct MemoryOfRun {
    pub storage: Storage,
    pub limits: MemoryLimits,
    pub owner: String,
    /// The name of the run's agent.
    pub agent: String,
    pub run_id: Uuid,
    pub attempt: u32,
    /// Characters of a result that the model reads.
    pub result_chars: usize,
}

/// The stored result of `recall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecallResult {
    /// The memories, most relevant first.
    pub memories: Vec<MemoryReference>,
    /// Further memories that the query has found.
    #[serde(default)]
    pub left_out: usize,
}

#[derive(Deserialize)]
struct RememberArguments {
    text: String,
    #[serde(default)]
    expires: Option<String>,
    #[serde(default)]
    scope: MemoryScope,
}

#[derive(Deserialize)]
struct RecallArguments {
    #[serde(default)]
    query: String,
}

#[derive(Deserialize)]
struct ForgetArguments {
    id: String,
}

/// The failure of one try.
enum Failure {
    /// The model reads why.
    Refused(ToolError),
    Storage(storage::Error),
}

impl From<storage::Error> for Failure {
    fn from(error: storage::Error) -> Self {
        Self::Storage(error)
    }
}

impl From<InvalidMemory> for Failure {
    fn from(invalid: InvalidMemory) -> Self {
        Self::Refused(ToolError::new("invalid_arguments", format!("nothing was stored: {invalid}")))
    }
}

impl MemoryTool {
    pub const ALL: [Self; 3] = [Self::Remember, Self::Recall, Self::Forget];

    pub const fn effect(self) -> Effect {
        match self {
            Self::Recall => Effect::ReadOnly,
            Self::Remember | Self::Forget => Effect::Idempotent,
        }
    }

    /// Returns the declaration for the model.
    pub fn spec(self, limits: MemoryLimits) -> ToolSpec {
        let (name, description, properties, required) = match self {
            Self::Remember => (
                "remember",
                format!(
                    "Keeps a fact about the user beyond this conversation: one fact, in a sentence that is clear without the conversation, of at most {} characters. The user sees, edits and deletes all memories. Keep no secrets, and nothing that the user does not want kept.",
                    limits.max_chars
                ),
                json!({
                    "text": {"type": "string", "description": "The fact."},
                    "expires": {"type": "string", "description": "When the fact ends to be true: an RFC 3339 time, or a date such as 2027-01-31. Leave it out for a lasting fact."},
                    "scope": {"type": "string", "enum": ["agent", "user"], "description": "agent, the default: only you recall it. user: all agents of the user recall it."}
                }),
                json!(["text"]),
            ),
            Self::Recall => (
                "recall",
                "Finds what you remember of the user, the most relevant first, by the words of a query. An empty query returns the newest memories.".to_owned(),
                json!({"query": {"type": "string", "description": "Words that the memories may have."}}),
                json!([]),
            ),
            Self::Forget => (
                "forget",
                "Deletes a memory for ever, because it is wrong or the user asks for it.".to_owned(),
                json!({"id": {"type": "string", "description": "The id, which recall and remember return."}}),
                json!(["id"]),
            ),
        };
        let input_schema =
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        ToolSpec { name: name.to_owned(), description, input_schema }
    }
}

impl MemoryOfRun {
    /// Calls a tool. While the database is away, the call is repeated under its key; the lease and the deadline of the run bound
    /// it.
    pub async fn call(&self, tool: MemoryTool, key: &str, input: Value) -> Result<CallResult, ToolError> {
        loop {
            let outcome = match tool {
                MemoryTool::Remember => self.remember(key, read(&input)?).await,
                MemoryTool::Recall => self.recall(read(&input)?).await,
                MemoryTool::Forget => self.forget(read(&input)?).await,
            };
            match outcome {
                Ok(result) => return Ok(result),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Storage(error)) if error.is_away() || error.is_conflict() => {
                    tracing::warn!(error = &error as &dyn Error, "failed to reach the memories; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(Failure::Storage(error)) => {
                    tracing::error!(error = &error as &dyn Error, "failed to call a tool of the memory");
                    let problem = "the memory failed, and this call changed nothing; the worker's log says why";
                    return Err(ToolError::new("memory_failed", problem));
                }
            }
        }
    }

    async fn remember(&self, key: &str, arguments: RememberArguments) -> Result<CallResult, Failure> {
        let RememberArguments { text, expires, scope } = arguments;
        let text = checked_text(&text, self.limits.max_chars)?;
        let expires_at = expires.map(|text| parse_expiry(&text, "expires")).transpose()?;
        let call = MemoryCall { run_id: self.run_id, attempt: self.attempt, call_id: key, agent: &self.agent };
        let new = NewMemory { text, scope, expires_at };
        match self.storage.remember(call, &new, self.limits).await? {
            Remembered::Stored(reference) => Ok(json!(reference).to_string().into()),
            Remembered::Past => Err(InvalidMemory::Past("expires").into()),
            Remembered::Full(most) => {
                let problem = format!("nothing was stored: the user has {most} memories already; forget one first");
                Err(Failure::Refused(ToolError::new("memory_full", problem)))
            }
            Remembered::Fenced => {
                Err(Failure::Refused(ToolError::new("fenced", "another worker executes this run now")))
            }
        }
    }

    async fn recall(&self, arguments: RecallArguments) -> Result<CallResult, Failure> {
        let most = self.limits.of(&self.owner);
        let memories = self.storage.recallable(&self.owner, &self.agent, most).await?;
        let most_chars = self.result_chars;
        // A CPU-bound task: up to 500 texts of 2,000 characters, by default.
        let ranked = spawn_blocking(move || rank(&arguments.query, memories, most_chars)).await;
        let Ranked { memories, left_out } = ranked.expect("the ranking does not panic");
        let result = RecallResult { memories, left_out };
        let output = serde_json::to_string(&result).expect("ids and numbers are JSON");
        Ok(CallResult { output, told: result.memories, ..CallResult::default() })
    }

    async fn forget(&self, arguments: ForgetArguments) -> Result<CallResult, Failure> {
        if let Ok(id) = arguments.id.trim().parse() {
            self.storage.forget_memory(&self.owner, &self.agent, id).await?;
        }
        // A repeated call has this result too.
        Ok("There is no such memory now.".to_owned().into())
    }
}

fn read<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    given_json::read(input).map_err(|problem| ToolError::new("invalid_arguments", problem))
}

//! The tools that find passages of documents, and read on in them.

use std::{error::Error, sync::Arc, time::Duration};

use holdfast_knowledge::{FoundPassage, Knowledge, SearchScope};
use holdfast_shared::{
    given_json,
    storage::{self, Storage},
    tool::ToolError,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CallResult, question_vectors};
use crate::model::{Embedder, ToolSpec};

/// Pause before a call is repeated while the database is away.
const PAUSE: Duration = Duration::from_millis(500);

const USUAL_LIMIT: usize = 8;
const MAX_LIMIT: usize = 20;

/// Characters that one call reads of a document, at most.
const MAX_READ: u64 = 8000;

/// The documents that a run may search.
pub struct KnowledgeOfRun {
    pub knowledge: Knowledge,
    pub storage: Storage,
    pub embedder: Option<Arc<Embedder>>,
    pub run_id: Uuid,
    /// The ids and names of the collections.
    pub collections: Vec<(Uuid, String)>,
}

/// A tool of the run's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowledgeTool {
    Search,
    Read,
}

#[derive(Deserialize)]
struct SearchInput {
    query: String,
    collection: Option<Uuid>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct ReadInput {
    id: Uuid,
    from: u64,
    to: u64,
}

impl KnowledgeTool {
    pub const ALL: [Self; 2] = [Self::Search, Self::Read];

    /// Returns the declaration for the model.
    pub fn spec(self, collections: &[(Uuid, String)]) -> ToolSpec {
        let named: Vec<String> = collections.iter().map(|(id, name)| format!("{id} ({name})")).collect();
        let of_collection = format!("Only documents of this collection: {}.", named.join(", "));
        let (name, description, properties, required) = match self {
            Self::Search => (
                "search_knowledge",
                "Finds passages of the documents that fit a question or words. Each passage gets a number by which you cite it.",
                json!({
                    "query": {"type": "string", "minLength": 1, "description": "A question, or words."},
                    "collection": {"type": "string", "format": "uuid", "description": of_collection},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}
                }),
                json!(["query"]),
            ),
            Self::Read => (
                "read_document",
                "Reads on in a document: the passages between two places of its text, which are numbers of characters. Passages tell the document's id and their own places.",
                json!({
                    "id": {"type": "string", "format": "uuid", "description": "The document."},
                    "from": {"type": "integer", "minimum": 0},
                    "to": {"type": "integer", "minimum": 1, "description": "At most 8,000 after from."}
                }),
                json!(["id", "from", "to"]),
            ),
        };
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
        }
    }
}

impl KnowledgeOfRun {
    /// Calls a tool. While the database is away, the call is repeated; the lease and the deadline of the run bound it.
    pub async fn call(&self, tool: KnowledgeTool, input: Value) -> Result<CallResult, ToolError> {
        loop {
            let found = match tool {
                KnowledgeTool::Search => self.search(&read(&input)?).await,
                KnowledgeTool::Read => self.read(&read(&input)?).await,
            };
            match found {
                Ok(passages) if passages.is_empty() => return Ok("No passage was found.".to_owned().into()),
                Ok(passages) => return Ok(CallResult { passages, ..CallResult::default() }),
                Err(error) if error.is_away() => {
                    tracing::warn!(error = &error as &dyn Error, "failed to search documents; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(error = &error as &dyn Error, "failed to search documents");
                    let problem = "the documents cannot be searched now; the worker's log says why";
                    return Err(ToolError::new("knowledge_failed", problem));
                }
            }
        }
    }

    async fn search(&self, input: &SearchInput) -> Result<Vec<FoundPassage>, storage::Error> {
        let wanted = |id: &Uuid| input.collection.is_none_or(|collection| collection == *id);
        let collections: Vec<Uuid> = self.collection_ids().filter(wanted).collect();
        let Some(owner) = self.owner().await? else { return Ok(Vec::new()) };
        let scope = SearchScope { owner: &owner, collections: &collections };
        let limit = input.limit.unwrap_or(USUAL_LIMIT).clamp(1, MAX_LIMIT);
        let vectors = question_vectors(&self.knowledge, self.embedder.as_deref(), &collections, &input.query).await;
        self.knowledge.search(scope, &input.query, &vectors, limit).await
    }

    async fn read(&self, input: &ReadInput) -> Result<Vec<FoundPassage>, storage::Error> {
        let range = input.from..input.to.min(input.from.saturating_add(MAX_READ));
        let collections: Vec<Uuid> = self.collection_ids().collect();
        let Some(owner) = self.owner().await? else { return Ok(Vec::new()) };
        let scope = SearchScope { owner: &owner, collections: &collections };
        self.knowledge.passages_between(scope, input.id, range).await
    }

    fn collection_ids(&self) -> impl Iterator<Item = Uuid> {
        self.collections.iter().map(|(id, _)| *id)
    }

    /// Returns the reader: the run may have moved to another owner since its claim.
    async fn owner(&self) -> Result<Option<String>, storage::Error> {
        self.storage.owner_of_run(self.run_id).await
    }
}

fn read<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    given_json::read(input).map_err(|problem| ToolError::new("invalid_arguments", problem))
}

//! Citations: the passages of documents that an answer names by marks such as `[1]`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A passage that an answer cites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Citation {
    /// The document.
    pub id: Uuid,
    /// The number of the passage in the document, from 0.
    pub chunk: u64,
    /// The title of the document at the time of the answer.
    pub title: String,
    /// The page on which the passage begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The place of its first character in the document's text, in Unicode scalar values.
    pub start: u64,
    /// The place after its last character.
    pub end: u64,
    /// How well it fits, within one search.
    pub score: f64,
}

/// A citation with its number in the text of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NumberedCitation {
    /// The number in the text, as in `[1]`.
    pub number: u32,
    /// The passage.
    #[serde(flatten)]
    pub citation: Citation,
}

/// A mark that is not in the answer although the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DroppedMark {
    /// The number that the model wrote.
    pub number: u64,
    /// Why it was dropped.
    pub reason: DropReason,
}

/// Why a mark was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The run has no passage of this number before it.
    NotTold,
    /// The document was deleted, or its owner's reader may not read it any more.
    NotReadable,
    /// The words in quotes before the mark are not in the passage.
    NotQuoted,
    /// A reason of a later version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The documents of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerSources {
    /// The passages that the answer cites, in the order of their numbers.
    pub documents: Vec<NumberedCitation>,
    /// Marks that the model wrote and that are not in the text.
    pub dropped: Vec<DroppedMark>,
}

impl AnswerSources {
    /// Returns the retrieval context of an answer; `None` for an answer without an agent that used no document.
    pub fn context(&self, agent_run_id: Option<Uuid>) -> Option<Value> {
        let mut context = serde_json::Map::new();
        if let Some(run) = agent_run_id {
            context.insert("agent_run_id".into(), json!(run));
        }
        if !self.documents.is_empty() || !self.dropped.is_empty() {
            context.insert("documents".into(), json!(self.documents));
        }
        if !self.dropped.is_empty() {
            context.insert("dropped".into(), json!(self.dropped));
        }
        (!context.is_empty()).then_some(Value::Object(context))
    }

    /// Returns the documents of a retrieval context, as far as this version reads them.
    pub fn of_context(context: &Value) -> Vec<NumberedCitation> {
        let documents = context.get("documents").and_then(Value::as_array).into_iter().flatten();
        documents.filter_map(|document| NumberedCitation::deserialize(document).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retrieval_context_has_only_what_there_is() {
        let citation =
            Citation { id: Uuid::nil(), chunk: 2, title: "t".into(), page: None, start: 1, end: 9, score: 0.5 };
        let cited = vec![NumberedCitation { number: 1, citation }];
        let dropped = vec![DroppedMark { number: 7, reason: DropReason::NotTold }];
        let sources = AnswerSources { documents: cited.clone(), dropped };
        assert_eq!(AnswerSources::default().context(None), None);
        assert_eq!(AnswerSources::default().context(Some(Uuid::nil())), Some(json!({"agent_run_id": Uuid::nil()})));
        let context = sources.context(None).unwrap();
        let document =
            json!({"number": 1, "id": Uuid::nil(), "chunk": 2, "title": "t", "start": 1, "end": 9, "score": 0.5});
        assert_eq!(context, json!({"documents": [document], "dropped": [{"number": 7, "reason": "not_told"}]}));
        assert_eq!(AnswerSources::of_context(&context), cited);
        assert!(AnswerSources::of_context(&json!({"documents": [{"id": 1}]})).is_empty());
    }
}

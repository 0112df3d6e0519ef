//! The results of calls that have found passages.

use holdfast_knowledge::FoundPassage;
use holdfast_shared::storage::EarlierResult;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    run_name, tell,
    told::{NumberedPassage, fitting, shown},
};
use crate::executor::{attempt::Attempt, results};

/// The stored result of a call that has found passages. The model reads their texts, which no trace has, so that a deleted
/// document reaches no later attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassagesResult {
    /// The passages, the best first or in the order of their document.
    passages: Vec<PassageReference>,
    /// Further passages, which a result has no room for.
    #[serde(default)]
    left_out: usize,
}

/// A passage by its number in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PassageReference {
    number: u32,
    document: Uuid,
    chunk: u64,
    title: String,
}

/// Returns the result of a call that has found passages: as many as the model can read, by their numbers.
pub fn result_of(attempt: &mut Attempt<'_>, call_id: &str, mut found: Vec<FoundPassage>) -> String {
    let most = results::room(attempt, "search_knowledge").chars();
    let fitting = fitting(&found, &run_name(attempt), most);
    if fitting == 0 {
        return "The passages that were found are longer than a result may be.".to_owned();
    }
    let left_out = found.len() - fitting;
    found.truncate(fitting);
    let numbered = tell(attempt, found, Some(call_id));
    let reference = |(number, passage): &NumberedPassage| PassageReference {
        number: *number,
        document: passage.id.document_id,
        chunk: passage.id.number,
        title: passage.title.clone(),
    };
    let result = PassagesResult { passages: numbered.iter().map(reference).collect(), left_out };
    serde_json::to_string(&result).expect("numbers and texts are JSON")
}

/// Returns the text of a result for the model.
pub fn text_of(attempt: &Attempt<'_>, result: &PassagesResult) -> String {
    let numbers = result.passages.iter().map(|passage| passage.number);
    let passages = attempt.memory.told.of_numbers(numbers);
    let gone = match result.passages.len() - passages.len() {
        0 => String::new(),
        gone => format!("\n[{gone} of the passages can be read no more]"),
    };
    let more = match result.left_out {
        0 => String::new(),
        more => format!("\n[{more} more have no room here; ask for fewer, or for a shorter part]"),
    };
    format!("{}{gone}{more}", shown(&passages, &run_name(attempt)))
}

/// Returns whether the result of an earlier run names passages or memories, which say nothing to a later run. A tool of a client
/// may have the name too.
pub fn is_reference(result: &EarlierResult) -> bool {
    let start = match result.name.as_str() {
        "search_knowledge" | "read_document" => "{\"passages\":[{\"number\":",
        "recall" => "{\"memories\":[",
        _ => return false,
    };
    result.output.as_ref().is_some_and(|output| output.starts_with(start))
}

//! The messages that other nodes of a client's graph have written after its human's newest one. The model reads them as results of tools.

use std::collections::HashMap;

use holdfast_shared::{overrides::GivenHistory, storable::has_nul, storage::EarlierResult};
use serde_json::Value;

use super::{
    content::parts_of,
    request::{content_of_message, role_of},
};
use crate::{
    problem::Problem,
    thread::{GivenHistoryOfThread, HistoryBound, TURN_BYTES, UiPart, given_again, json_bytes},
};

/// Returns the texts of the model and the results of tools among the messages, newest first. Fails if no database could store one.
pub fn results_of_nodes(messages: &[&Value]) -> Result<Vec<EarlierResult>, Problem> {
    let (mut calls, mut results) = (HashMap::new(), Vec::new());
    for message in messages {
        if has_nul(message) {
            return Err(Problem::invalid_content());
        }
        let (name, input) = match role_of(message) {
            Some("ai" | "assistant") => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    calls.insert(call["id"].to_string(), (call["name"].as_str(), call["args"].to_string()));
                }
                (None, "{}".to_owned())
            }
            Some("tool") => {
                let call = calls.remove(&message["tool_call_id"].to_string());
                call.unwrap_or_else(|| (Some("tool"), "{}".to_owned()))
            }
            _ => continue,
        };
        let output = text_of(message);
        if !output.trim().is_empty() {
            let name = message["name"].as_str().or(name).unwrap_or("assistant").to_owned();
            results.push(EarlierResult { name, input, output: Some(output), error: None, call_id: None });
        }
    }
    results.reverse();
    Ok(results)
}

/// Returns the texts of a message.
fn text_of(message: &Value) -> String {
    let blocks = match content_of_message(message) {
        Value::Array(blocks) => blocks,
        text => vec![text],
    };
    let parts = blocks.into_iter().filter_map(|block| parts_of(Value::Array(vec![block])).ok()).flatten();
    let texts = parts.filter_map(|part| match part {
        UiPart::Text { text } => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Returns what a run reads around its message, with the newest results within the bound.
pub fn around(given: &GivenHistoryOfThread, results: Vec<EarlierResult>, bound: HistoryBound) -> GivenHistory {
    let size = |result: &EarlierResult| {
        TURN_BYTES + json_bytes(&result.input) + result.output.as_deref().map_or(0, json_bytes)
    };
    let kept = bound.kept(results.iter().map(size));
    let (before, left_out) = (given_again(&given.messages), given.left_out + results.len() - kept);
    let mut history = GivenHistory { before, left_out, ..GivenHistory::default() };
    history.results.extend(results.into_iter().take(kept));
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_leave_texts_and_results_newest_first() {
        let messages = [
            json!({"type": "ai", "content": [{"type": "text", "text": "A draft."}, {"type": "thinking"}], "name": "writer"}),
            json!({"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "look", "args": {"at": 1}}]}),
            json!({"type": "tool", "tool_call_id": "c1", "content": "seen"}),
            json!(["ai", "So."]),
        ];
        let results = results_of_nodes(&messages.iter().collect::<Vec<_>>()).unwrap();
        let read = results.iter().map(|result| (&*result.name, &*result.input, result.output.as_deref().unwrap()));
        let expected = [("assistant", "{}", "So."), ("look", r#"{"at":1}"#, "seen"), ("writer", "{}", "A draft.")];
        assert_eq!(read.collect::<Vec<_>>(), expected);
        assert!(results_of_nodes(&[&json!({"type": "ai", "content": "\0"})]).is_err());
    }

    #[test]
    fn the_oldest_results_beyond_the_bound_are_left_out() {
        let draft = json!({"type": "ai", "content": "A draft."});
        let results = results_of_nodes(&[&draft, &draft, &draft]).unwrap();
        let given = GivenHistoryOfThread { messages: Vec::new(), left_out: 1 };
        let history = around(&given, results, HistoryBound { turns: 2, bytes: 1_000 });
        assert_eq!((history.results.len(), history.left_out), (2, 2));
    }
}

//! Parses the lines of an answer into deltas.

use std::collections::VecDeque;

use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use serde_json::Value;

use crate::model::{
    AnswerDelta, CallDelta,
    stream::{AnswerParser, LineBuffer, StreamFlaw, ThinkTags, json},
};

/// The parser's state between two pieces of a body.
#[derive(Default)]
pub struct OllamaParser {
    lines: LineBuffer,
    answer: OllamaAnswer,
}

/// The answer so far.
struct OllamaAnswer {
    tags: ThinkTags,
    /// Number of calls so far.
    calls: usize,
    done: bool,
}

impl Default for OllamaAnswer {
    fn default() -> Self {
        Self { tags: ThinkTags::new(false), calls: 0, done: false }
    }
}

impl AnswerParser for OllamaParser {
    fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { lines, answer } = self;
        lines.feed(bytes, |line| answer.read(line, deltas))
    }

    fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { lines, answer } = self;
        lines.finish(|line| answer.read(line, deltas)).map_err(StreamFlaw::at_end)?;
        if answer.done { Ok(()) } else { Err(StreamFlaw::Truncated) }
    }
}

impl OllamaAnswer {
    fn read(&mut self, line: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let line = line.trim_ascii();
        // Lines after the end do not count.
        if self.done || line.is_empty() {
            return Ok(());
        }
        let value = json::document(line)?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(StreamFlaw::ProviderError(value.to_string()));
        }
        let message = &value["message"];
        let reasoning = json::text(message, "thinking").or_else(|| json::text(message, "reasoning_content"));
        deltas.extend(reasoning.map(|text| AnswerDelta::Reasoning(text.to_owned())));
        if let Some(text) = json::text(message, "content") {
            self.tags.push(text.to_owned(), deltas);
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            deltas.push_back(AnswerDelta::Call(self.read_call(&call["function"])?));
        }
        if value["done"] == true {
            self.done = true;
            self.tags.finish(true, deltas);
            deltas.push_back(AnswerDelta::End(usage(&value), self.finish_reason(&value)));
        }
        Ok(())
    }

    /// Reads a call, which is always complete. Models without arguments leave them out.
    fn read_call(&mut self, function: &Value) -> Result<CallDelta, StreamFlaw> {
        let name = json::text(function, "name").ok_or(StreamFlaw::NamelessCall)?.to_owned();
        let arguments = json::arguments(function.get("arguments"));
        self.calls += 1;
        Ok(CallDelta { index: self.calls - 1, name: Some(name), arguments, signature: None })
    }

    fn finish_reason(&self, value: &Value) -> FinishReason {
        match json::text(value, "done_reason") {
            Some("length") => FinishReason::Length,
            Some("stop") | None if self.calls > 0 => FinishReason::ToolCalls,
            Some("stop") | None => FinishReason::Stop,
            Some(_) => FinishReason::Other,
        }
    }
}

fn usage(value: &Value) -> Usage {
    let count = |field: &str| json::count(value, field).unwrap_or(0);
    Usage {
        input_tokens: count("prompt_eval_count"),
        output_tokens: count("eval_count"),
        cached_tokens: count("prompt_eval_cached_count"),
        reasoning_tokens: 0,
    }
}

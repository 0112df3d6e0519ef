//! Parses the events of an answer into deltas.
//!
//! Compatible servers send a call's whole input with its start, leave out types, indices and ends of blocks, or answer with one
//! message. A text after a call, or blocks of tools that the provider executes itself, are allowed everywhere.

use std::{collections::VecDeque, time::Duration};

use holdfast_shared::usage::Usage;
use serde_json::{Value, json};

use super::rules::{self, CONTINUATIONS, ClaudeRules, OVERLOAD_PAUSE};
use crate::model::{
    AnswerDelta, CallDelta,
    stream::{AnswerParser, EventBuffer, StreamEvent, StreamFlaw, json},
};

mod block;

use block::ClaudeBlock;

/// The provider waits for its tools, and continues if it gets back what it has written.
const PAUSED: &str = "pause_turn";
const OVERLOADED: &str = "overloaded_error";

/// The parser's state between two pieces of a body.
#[derive(Default)]
pub struct ClaudeParser {
    events: EventBuffer,
    answer: ClaudeAnswer,
}

impl ClaudeParser {
    pub fn new(rules: ClaudeRules) -> Self {
        let answer = ClaudeAnswer { continues_text: rules.continues_text, ..ClaudeAnswer::default() };
        Self { answer, ..Self::default() }
    }
}

/// The answer so far.
#[derive(Default)]
struct ClaudeAnswer {
    blocks: Vec<ClaudeBlock>,
    /// Number of calls so far.
    calls: usize,
    /// The complete blocks of thinking since the last call.
    thinking: Vec<Value>,
    usage: ClaudeUsage,
    /// The reason of the end, or `OVERLOADED`.
    stop_reason: Option<String>,
    done: bool,
    continues_text: bool,
    /// Whether the text so far ends in white space that the request which continues it could not send.
    has_lost_space: bool,
    /// Requests that have continued this answer, and their tokens.
    continuations: u32,
    earlier: Usage,
}

/// The counts of one request. Each is the highest that the provider has reported.
#[derive(Default)]
struct ClaudeUsage {
    uncached: u64,
    written: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

impl AnswerParser for ClaudeParser {
    fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { events, answer } = self;
        events.feed(bytes, |event| answer.read(&event, deltas))
    }

    fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { events, answer } = self;
        let document = events.finish(|event| answer.read(&event, deltas)).map_err(StreamFlaw::at_end)?;
        match document {
            Some(document) => answer.read_message(&document, deltas),
            None if answer.done => Ok(()),
            None if answer.stop_reason.is_some() => {
                answer.end(deltas);
                Ok(())
            }
            None => Err(StreamFlaw::Truncated),
        }
    }

    fn continues(&mut self, body: &mut Value) -> Option<Duration> {
        self.answer.continues(body)
    }
}

impl ClaudeAnswer {
    fn read(&mut self, event: &StreamEvent<'_>, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        // Events after the end do not count.
        if self.done {
            return Ok(());
        }
        let value = json::document(event.data)?;
        let index = value.get("index").and_then(Value::as_u64);
        match json::text(&value, "type").unwrap_or(event.name) {
            "message_start" => {
                self.usage.read(&value["message"]["usage"]);
                self.read_blocks(&value["message"]["content"], deltas)?;
            }
            "content_block_start" => self.start(index, &value["content_block"], deltas)?,
            "content_block_delta" => self.add(index, &value["delta"], deltas)?,
            "content_block_stop" => {
                if let Some(at) = self.find(index) {
                    self.close(at, deltas);
                }
            }
            "message_delta" => {
                self.usage.read(&value["usage"]);
                self.stop_reason =
                    json::text(&value["delta"], "stop_reason").map(str::to_owned).or(self.stop_reason.take());
            }
            "message_stop" => self.end(deltas),
            kind if kind == "error" || value.get("error").is_some_and(|error| !error.is_null()) => {
                if !self.outlives(&value["error"]) {
                    return Err(StreamFlaw::ProviderError(value.to_string()));
                }
                (self.stop_reason, self.done) = (Some(OVERLOADED.to_owned()), true);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads an answer that is one message instead of a stream.
    fn read_message(&mut self, document: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let not_a_stream = || StreamFlaw::NotAStream(String::from_utf8_lossy(document).into_owned());
        let message = json::document(document).map_err(|_| not_a_stream())?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(StreamFlaw::ProviderError(message.to_string()));
        }
        if !message["content"].is_array() {
            return Err(not_a_stream());
        }
        self.usage.read(&message["usage"]);
        self.read_blocks(&message["content"], deltas)?;
        self.stop_reason = json::text(&message, "stop_reason").map(str::to_owned);
        self.end(deltas);
        Ok(())
    }

    fn read_blocks(&mut self, blocks: &Value, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        for block in blocks.as_array().into_iter().flatten() {
            self.start(None, block, deltas)?;
            self.close(self.blocks.len() - 1, deltas);
        }
        Ok(())
    }

    fn start(
        &mut self,
        index: Option<u64>,
        block: &Value,
        deltas: &mut VecDeque<AnswerDelta>,
    ) -> Result<(), StreamFlaw> {
        let mut block = ClaudeBlock::new(index, block);
        match block.kind() {
            "tool_use" => {
                self.close_thinking(deltas);
                let name = json::text(&block.value, "name").ok_or(StreamFlaw::NamelessCall)?.to_owned();
                let thinking = std::mem::take(&mut self.thinking);
                let signature = (!thinking.is_empty()).then_some(Value::Array(thinking));
                let delta = CallDelta { index: self.calls, name: Some(name), arguments: String::new(), signature };
                deltas.push_back(AnswerDelta::Call(delta));
                block.call = Some(self.calls);
                self.calls += 1;
            }
            "text" => deltas.extend(json::text(&block.value, "text").map(|text| AnswerDelta::Text(text.to_owned()))),
            "thinking" => {
                deltas.extend(json::text(&block.value, "thinking").map(|text| AnswerDelta::Reasoning(text.to_owned())));
            }
            _ => {}
        }
        self.blocks.push(block);
        Ok(())
    }

    fn add(&mut self, index: Option<u64>, delta: &Value, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        if let Some(text) = json::text(delta, "text") {
            let text = if self.has_lost_space { text.trim_start() } else { text };
            self.has_lost_space &= text.is_empty();
            self.block_of(index, "text").append("text", text);
            deltas.push_back(AnswerDelta::Text(text.to_owned()));
        } else if let Some(text) = json::text(delta, "thinking") {
            self.block_of(index, "thinking").append("thinking", text);
            deltas.push_back(AnswerDelta::Reasoning(text.to_owned()));
        } else if let Some(signature) = json::text(delta, "signature") {
            self.block_of(index, "thinking").append("signature", signature);
        } else if delta.get("partial_json").is_some() {
            let piece = json::arguments(delta.get("partial_json"));
            let at = self.find(index).ok_or(StreamFlaw::NamelessCall)?;
            deltas.extend(self.blocks[at].add_input(&piece).map(AnswerDelta::Call));
        }
        Ok(())
    }

    /// Returns the block that a delta continues, which is a new one if the provider has started none of this kind.
    fn block_of(&mut self, index: Option<u64>, kind: &str) -> &mut ClaudeBlock {
        let at = match self.find(index) {
            Some(at) if self.blocks[at].kind() == kind => at,
            _ => {
                self.blocks.push(ClaudeBlock::new(index, &json!({"type": kind})));
                self.blocks.len() - 1
            }
        };
        &mut self.blocks[at]
    }

    /// Returns the latest block of this index, or the latest of all.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        let same = index.and_then(|index| self.blocks.iter().rposition(|block| block.index == Some(index)));
        same.or(self.blocks.len().checked_sub(1))
    }

    fn close_thinking(&mut self, deltas: &mut VecDeque<AnswerDelta>) {
        let is_thinking = |block: &ClaudeBlock| matches!(block.kind(), "thinking" | "redacted_thinking");
        let open: Vec<usize> = (0..self.blocks.len()).filter(|at| is_thinking(&self.blocks[*at])).collect();
        open.into_iter().for_each(|at| self.close(at, deltas));
    }

    fn close(&mut self, at: usize, deltas: &mut VecDeque<AnswerDelta>) {
        let block = &mut self.blocks[at];
        if std::mem::replace(&mut block.is_closed, true) {
            return;
        }
        deltas.extend(block.take_held_input().map(AnswerDelta::Call));
        if matches!(block.kind(), "thinking" | "redacted_thinking") {
            self.thinking.push(block.value.clone());
        }
    }

    fn end(&mut self, deltas: &mut VecDeque<AnswerDelta>) {
        (0..self.blocks.len()).for_each(|at| self.close(at, deltas));
        self.done = true;
        if !self.is_paused() {
            let usage = [self.earlier, self.usage.total()].into_iter().sum();
            deltas.push_back(AnswerDelta::End(usage, rules::finish_reason(self.stop_reason.as_deref())));
        }
    }

    /// Whether another request can continue the answer after an error: an overload after a text alone.
    fn outlives(&self, error: &Value) -> bool {
        let has_text = self.blocks.iter().any(|block| block.written().is_some());
        let is_text = self.blocks.iter().all(|block| block.kind() == "text");
        json::text(error, "type") == Some(OVERLOADED)
            && self.continues_text
            && has_text
            && is_text
            && self.continuations < CONTINUATIONS
    }

    fn is_paused(&self) -> bool {
        let is_to_continue = matches!(self.stop_reason.as_deref(), Some(PAUSED | OVERLOADED));
        is_to_continue && self.calls == 0 && self.continuations < CONTINUATIONS
    }

    fn continues(&mut self, body: &mut Value) -> Option<Duration> {
        let messages = body["messages"].as_array_mut()?;
        let written: Vec<Value> = self.blocks.iter().filter_map(ClaudeBlock::written).collect();
        if !self.is_paused() || written.is_empty() {
            return None;
        }
        if self.continuations > 0 {
            messages.pop();
        }
        messages.push(json!({"role": "assistant", "content": written}));
        let is_overloaded = self.stop_reason.as_deref() == Some(OVERLOADED);
        self.has_lost_space = is_overloaded && self.blocks.last().is_some_and(ClaudeBlock::ends_in_space);
        self.earlier += self.usage.total();
        self.continuations += 1;
        (self.usage, self.stop_reason, self.done) = (ClaudeUsage::default(), None, false);
        Some(if is_overloaded { OVERLOAD_PAUSE } else { Duration::ZERO })
    }
}

impl ClaudeUsage {
    fn read(&mut self, usage: &Value) {
        let highest = |known: &mut u64, field: &str| *known = json::count(usage, field).unwrap_or(0).max(*known);
        highest(&mut self.uncached, "input_tokens");
        highest(&mut self.written, "cache_creation_input_tokens");
        highest(&mut self.cached, "cache_read_input_tokens");
        highest(&mut self.output, "output_tokens");
        let details = &usage["output_tokens_details"];
        self.reasoning = json::count(details, "thinking_tokens").unwrap_or(0).max(self.reasoning);
    }

    fn total(&self) -> Usage {
        Usage {
            input_tokens: self.uncached.saturating_add(self.written).saturating_add(self.cached),
            output_tokens: self.output,
            cached_tokens: self.cached,
            reasoning_tokens: self.reasoning,
        }
    }
}

#[cfg(test)]
mod tests;

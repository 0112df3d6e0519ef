//! Parses the chunks of an answer into deltas.
//!
//! Only the end of the body ends an answer: some versions and gateways put a finish reason on each chunk, or before the last
//! ones, which may have calls.

use std::{collections::VecDeque, time::Duration};

use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use serde_json::Value;

use super::rules::{self, TRIES};
use crate::model::{
    AnswerDelta, CallDelta,
    stream::{AnswerParser, EventBuffer, StreamFlaw, json},
};

/// The parser's state between two pieces of a body.
#[derive(Default)]
pub struct GeminiParser {
    events: EventBuffer,
    answer: GeminiAnswer,
}

/// The answer so far.
#[derive(Default)]
struct GeminiAnswer {
    /// Number of calls so far.
    calls: usize,
    has_text: bool,
    has_thoughts: bool,
    /// The reason that counts: one that is not `STOP`, if there is one.
    finish_reason: Option<String>,
    usage: GeminiUsage,
    /// Requests before this one, whose call the provider could not read, and their tokens.
    failed: u32,
    earlier: Usage,
}

/// The newest counts; a chunk may lack some.
#[derive(Default)]
struct GeminiUsage {
    prompt: u64,
    of_tools: u64,
    cached: u64,
    answer: u64,
    thoughts: u64,
}

impl AnswerParser for GeminiParser {
    fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { events, answer } = self;
        events.feed(bytes, |event| answer.read_data(event.data, deltas))
    }

    fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let Self { events, answer } = self;
        if let Some(document) =
            events.finish(|event| answer.read_data(event.data, deltas)).map_err(StreamFlaw::at_end)?
        {
            answer.read_document(&document, deltas)?;
        }
        answer.end(deltas)
    }

    /// After thoughts that led to a call which the provider could not read, the model is asked once more.
    fn continues(&mut self, _body: &mut Value) -> Option<Duration> {
        self.answer.continues().then_some(Duration::ZERO)
    }
}

impl GeminiAnswer {
    fn read_data(&mut self, data: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        match data {
            b"[DONE]" => Ok(()),
            data => self.read(&json::document(data)?, deltas),
        }
    }

    /// Reads an answer that is one document: a chunk, or a list of chunks.
    fn read_document(&mut self, document: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let not_a_stream = || StreamFlaw::NotAStream(String::from_utf8_lossy(document).into_owned());
        let value = json::document(document).map_err(|_| not_a_stream())?;
        let chunks = match &value {
            Value::Array(chunks) => chunks.as_slice(),
            chunk => std::slice::from_ref(chunk),
        };
        let is_chunk =
            |chunk: &Value| ["candidates", "promptFeedback", "error"].iter().any(|field| chunk.get(field).is_some());
        if !chunks.iter().any(is_chunk) {
            return Err(not_a_stream());
        }
        chunks.iter().try_for_each(|chunk| self.read(chunk, deltas))
    }

    fn read(&mut self, chunk: &Value, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let is_error = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        if is_error(chunk) || chunk.get(0).is_some_and(is_error) {
            return Err(StreamFlaw::ProviderError(chunk.to_string()));
        }
        if let Some(reason) = json::text(&chunk["promptFeedback"], "blockReason") {
            return Err(StreamFlaw::Blocked(reason.to_owned()));
        }
        self.usage.read(&chunk["usageMetadata"]);
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            deltas.extend(self.read_part(part)?);
        }
        let reason = json::text(candidate, "finishReason").filter(|reason| *reason != "FINISH_REASON_UNSPECIFIED");
        if let Some(reason) = reason.filter(|reason| *reason != "STOP" || self.finish_reason.is_none()) {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    /// Returns what a part adds. Parts without text, such as a signature alone or code that the provider runs, add nothing.
    fn read_part(&mut self, part: &Value) -> Result<Option<AnswerDelta>, StreamFlaw> {
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            let name = json::text(call, "name").ok_or(StreamFlaw::NamelessCall)?.to_owned();
            let signature = json::text(part, "thoughtSignature").map(Value::from);
            let arguments = json::arguments(call.get("args"));
            self.calls += 1;
            return Ok(Some(AnswerDelta::Call(CallDelta {
                index: self.calls - 1,
                name: Some(name),
                arguments,
                signature,
            })));
        }
        let is_thought = part["thought"] == true;
        let Some(text) = json::text(part, "text") else {
            return Ok((part["inlineData"].is_object() && !is_thought).then_some(AnswerDelta::Picture));
        };
        self.has_thoughts |= is_thought;
        self.has_text |= !is_thought;
        let delta = if is_thought { AnswerDelta::Reasoning } else { AnswerDelta::Text };
        Ok(Some(delta(text.to_owned())))
    }

    fn end(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw> {
        let reason = self.finish_reason.as_deref().ok_or(StreamFlaw::Truncated)?;
        if self.asks_again() {
            return Ok(());
        }
        if rules::is_failed_call(reason) {
            return Err(StreamFlaw::FailedCall(reason.to_owned()));
        }
        let reason = match rules::finish_reason(reason) {
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        };
        let usage = [self.earlier, self.usage.total()].into_iter().sum();
        deltas.push_back(AnswerDelta::End(usage, reason));
        Ok(())
    }

    /// Without a delta, the retry policy asks again; after words or calls, a second answer would not continue them.
    fn asks_again(&self) -> bool {
        let is_failed = self.finish_reason.as_deref().is_some_and(rules::is_failed_call);
        is_failed && self.has_thoughts && !self.has_text && self.calls == 0 && self.failed + 1 < TRIES
    }

    fn continues(&mut self) -> bool {
        if !self.asks_again() {
            return false;
        }
        self.earlier += self.usage.total();
        self.failed += 1;
        (self.usage, self.finish_reason) = (GeminiUsage::default(), None);
        true
    }
}

impl GeminiUsage {
    fn read(&mut self, usage: &Value) {
        let newest = |known: &mut u64, field: &str| *known = json::count(usage, field).unwrap_or(*known);
        newest(&mut self.prompt, "promptTokenCount");
        newest(&mut self.of_tools, "toolUsePromptTokenCount");
        newest(&mut self.cached, "cachedContentTokenCount");
        newest(&mut self.answer, "candidatesTokenCount");
        newest(&mut self.thoughts, "thoughtsTokenCount");
    }

    fn total(&self) -> Usage {
        Usage {
            input_tokens: self.prompt.saturating_add(self.of_tools),
            output_tokens: self.answer.saturating_add(self.thoughts),
            cached_tokens: self.cached,
            reasoning_tokens: self.thoughts,
        }
    }
}

#[cfg(test)]
mod tests;

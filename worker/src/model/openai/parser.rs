//! Parses the bytes of an event stream into deltas; only `data:` lines matter here.
//!
//! The boundaries between the pieces of the body make no difference to the deltas.

use std::collections::VecDeque;

use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use memchr::memchr;

use super::chunk::{ChoiceDelta, CompletionChunk};
use crate::model::{AnswerDelta, Error, subject::Subject};

mod calls;

use calls::CallAssembler;

/// Most bytes of one line; a longer line is a flaw.
const LINE_BYTES: usize = 1024 * 1024;

/// The parser's state between two pieces of the body.
#[derive(Default)]
pub(super) struct StreamParser {
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    calls: CallAssembler,
    usage: Usage,
    /// After the finish reason, only usage and `[DONE]` may follow.
    finish_reason: Option<FinishReason>,
    done: bool,
}

/// Why the bytes are no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flaw {
    LongLine,
    NotAStream(String),
    Malformed(String),
    NamelessCall,
    /// An error of the provider, as JSON.
    ProviderError(String),
    Truncated,
}

impl Flaw {
    pub fn to_error(&self, subject: &Subject) -> Error {
        let cause = match self {
            Self::ProviderError(body) => return Error::from_body(subject, body),
            Self::LongLine => format!("a line of it is longer than {LINE_BYTES} bytes"),
            Self::NotAStream(line) => format!("it is no event stream: {}", subject.quote(line)),
            Self::Malformed(data) => format!("a chunk of it is malformed: {}", subject.quote(data)),
            Self::NamelessCall => "it calls a tool without naming one".to_owned(),
            Self::Truncated => "it ended before it was complete".to_owned(),
        };
        Error::broken(subject, cause)
    }
}

impl StreamParser {
    /// Parses the next bytes. On a flaw, `deltas` has the deltas before it.
    pub fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if self.partial.is_empty() {
                self.read_line(line, deltas)?;
            } else {
                self.buffer(line)?;
                let mut line = std::mem::take(&mut self.partial);
                self.read_line(&line, deltas)?;
                line.clear();
                self.partial = line;
            }
        }
        self.buffer(rest)
    }

    /// Parses the last line and ends the answer. Fails if the body ended before the answer was complete.
    pub fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let last_line = std::mem::take(&mut self.partial);
        // The end of the body may replace the end of the line; but a last line that is no complete chunk was truncated.
        self.read_line(&last_line, deltas).map_err(|flaw| match flaw {
            Flaw::Malformed(_) => Flaw::Truncated,
            flaw => flaw,
        })?;
        match (self.done, self.finish_reason) {
            (true, _) => Ok(()),
            (false, Some(_)) => {
                self.end(deltas);
                Ok(())
            }
            (false, None) => Err(Flaw::Truncated),
        }
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        if self.partial.len() + bytes.len() > LINE_BYTES {
            return Err(Flaw::LongLine);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        // Lines after the end do not count.
        if self.done {
            return Ok(());
        }
        if line.len() > LINE_BYTES {
            return Err(Flaw::LongLine);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(data) = line.strip_prefix(b"data:") else {
            return match line.first() {
                // An error or a login page in place of a stream. The parser ignores other fields.
                Some(b'{' | b'[' | b'<') => Err(not_a_stream(line)),
                _ => Ok(()),
            };
        };
        match data.trim_ascii() {
            b"" => Ok(()),
            b"[DONE]" => {
                self.end(deltas);
                Ok(())
            }
            data => self.read_chunk(data, deltas),
        }
    }

    fn read_chunk(&mut self, data: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let chunk: CompletionChunk<'_> = serde_json::from_slice(data).map_err(|_| Flaw::Malformed(text(data)))?;
        if chunk.error.is_some() {
            return Err(Flaw::ProviderError(text(data)));
        }
        if let Some(tokens) = chunk.usage {
            self.usage = tokens.into();
        }
        for choice in chunk.choices.into_iter().flatten() {
            if let Some(piece) = choice.delta {
                self.push_deltas(piece, deltas)?;
            }
            self.finish_reason = choice.finish_reason.as_deref().map(finish_reason_of).or(self.finish_reason);
        }
        Ok(())
    }

    fn push_deltas(&mut self, piece: ChoiceDelta<'_>, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let reasoning = piece.reasoning_content.filter(|text| !text.is_empty()).or(piece.reasoning);
        let pieces = [
            reasoning.map(AnswerDelta::Reasoning),
            piece.content.map(AnswerDelta::Text),
            piece.refusal.map(AnswerDelta::Text),
        ];
        let is_empty = |delta: &AnswerDelta| matches!(delta, AnswerDelta::Text(text) | AnswerDelta::Reasoning(text) if text.is_empty());
        deltas.extend(pieces.into_iter().flatten().filter(|delta| !is_empty(delta)));
        for piece in piece.tool_calls.into_iter().flatten() {
            deltas.extend(self.calls.read(piece)?.map(AnswerDelta::Call));
        }
        Ok(())
    }

    fn end(&mut self, deltas: &mut VecDeque<AnswerDelta>) {
        self.done = true;
        deltas.push_back(AnswerDelta::End(self.usage, self.finish_reason.unwrap_or(FinishReason::Other)));
    }
}

/// Returns the meaning of a server's finish reason. Some servers pass on the reasons of the provider that they use.
fn finish_reason_of(reason: &str) -> FinishReason {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_calls" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded" => {
            FinishReason::Length
        }
        "content_filter" | "content-filter" | "safety" | "refusal" | "recitation" | "prohibited_content"
        | "blocklist" | "spii" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

fn not_a_stream(line: &[u8]) -> Flaw {
    match serde_json::from_slice::<CompletionChunk<'_>>(line) {
        Ok(CompletionChunk { error: Some(_), .. }) => Flaw::ProviderError(text(line)),
        _ => Flaw::NotAStream(text(line)),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;

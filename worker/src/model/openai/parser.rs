//! Parses the bytes of an answer into deltas: the `data:` lines of an event stream, or JSON in place of one.
//!
//! The boundaries between the pieces of the body make no difference to the deltas.

use std::collections::VecDeque;

use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use memchr::memchr;

use super::{
    chunk::{Choice, ChoiceDelta, CompletionChunk},
    wire_text::{ContentPiece, TextJoiner, WireText, escaped},
};
use crate::model::{AnswerDelta, Error, stream::ThinkTags, subject::Subject};

mod calls;
mod json_scan;
mod own_words;

use calls::CallAssembler;
use json_scan::JsonScan;
use own_words::OwnWords;

/// Most bytes of one line; a longer line is a flaw. A picture that a model has drawn is one line.
const LINE_BYTES: usize = DOCUMENT_BYTES;

/// Most bytes of an answer that is one document of JSON.
const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// The byte order mark that a few servers send first, in any pieces.
const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The parser's state between two pieces of the body.
pub(super) struct StreamParser {
    form: Option<BodyForm>,
    /// The beginning of a line, or of a document, whose end has not arrived.
    partial: Vec<u8>,
    scan: JsonScan,
    answer: AnswerReader,
}

/// The form of a body, by its first character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyForm {
    Events,
    /// JSON in place of events: a whole answer or an error, or a piece a line.
    Documents,
}

/// Why the bytes are no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flaw {
    Long(usize),
    /// No event stream; perhaps an error as JSON.
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
            Self::NotAStream(body) => return Error::from_json(subject, body),
            Self::Long(most) => format!("a line of it is longer than {most} bytes"),
            Self::Malformed(data) => format!("a chunk of it is malformed: {}", subject.quote(data)),
            Self::NamelessCall => "it calls a tool without naming one".to_owned(),
            Self::Truncated => "it ended before it was complete".to_owned(),
        };
        Error::broken(subject, cause)
    }
}

impl StreamParser {
    /// With `begins_within_reasoning`, a text without tags begins as reasoning.
    pub fn new(begins_within_reasoning: bool) -> Self {
        Self {
            form: None,
            partial: Vec::new(),
            scan: JsonScan::default(),
            answer: AnswerReader::new(begins_within_reasoning),
        }
    }

    /// Parses the next bytes. On a flaw, `deltas` has the deltas before it.
    pub fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let mut rest = bytes;
        if self.form.is_none() {
            let begin = rest.iter().position(|byte| !byte.is_ascii_whitespace() && !MARK.contains(byte));
            let Some(begin) = begin else { return Ok(()) };
            rest = &rest[begin..];
            let is_json = matches!(rest[0], b'{' | b'[');
            self.form = Some(if is_json { BodyForm::Documents } else { BodyForm::Events });
        }
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if self.form == Some(BodyForm::Documents) {
                self.read_document(line, deltas)?;
            } else if self.partial.is_empty() {
                self.read_line(line, deltas)?;
            } else {
                self.buffer(line, LINE_BYTES)?;
                let mut line = std::mem::take(&mut self.partial);
                self.read_line(&line, deltas)?;
                line.clear();
                self.partial = line;
            }
        }
        match self.form {
            Some(BodyForm::Documents) => {
                self.scan.read(rest);
                self.buffer(rest, DOCUMENT_BYTES)
            }
            _ => self.buffer(rest, LINE_BYTES),
        }
    }

    /// Parses the rest and ends the answer. Fails if the body ended before the answer was complete.
    pub fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        let is_cut = self.form == Some(BodyForm::Documents) && self.scan.is_open();
        let rest = match self.form {
            Some(BodyForm::Documents) => self.read_document(b"", deltas),
            _ => {
                let last_line = std::mem::take(&mut self.partial);
                self.read_line(&last_line, deltas)
            }
        };
        // The end of the body may replace the end of the line; but a last line that is no complete chunk was truncated.
        rest.map_err(|flaw| match flaw {
            Flaw::Malformed(_) => Flaw::Truncated,
            flaw => flaw,
        })?;
        match (self.answer.is_over, is_cut) {
            (true, _) => Ok(()),
            (false, false) if self.answer.is_complete() => {
                self.answer.end(deltas);
                Ok(())
            }
            _ => Err(Flaw::Truncated),
        }
    }

    fn buffer(&mut self, bytes: &[u8], most: usize) -> Result<(), Flaw> {
        if self.partial.len() + bytes.len() > most {
            return Err(Flaw::Long(most));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds a line to the document, and reads the document if it is complete.
    fn read_document(&mut self, line: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        self.scan.read(line);
        self.buffer(line, DOCUMENT_BYTES)?;
        if !self.scan.is_complete() {
            return Ok(());
        }
        self.scan = JsonScan::default();
        let document = std::mem::take(&mut self.partial);
        let text = escaped(&document);
        let chunk = serde_json::from_str(&text).ok().filter(|chunk: &CompletionChunk<'_>| chunk.choices.is_some());
        let chunk = chunk.ok_or_else(|| Flaw::NotAStream(text.clone().into_owned()))?;
        self.answer.read(chunk, &text, deltas)?;
        self.answer.has_whole_message |= self.answer.has_message;
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        // Lines after the end do not count.
        if self.answer.is_over {
            return Ok(());
        }
        if line.len() > LINE_BYTES {
            return Err(Flaw::Long(LINE_BYTES));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(data) = line.strip_prefix(b"data:") else {
            return match line.first() {
                // An error or a login page in place of a stream. The parser ignores other fields.
                Some(b'{' | b'[' | b'<') => Err(Flaw::NotAStream(escaped(line).into_owned())),
                _ => Ok(()),
            };
        };
        match data.trim_ascii() {
            b"" => Ok(()),
            b"[DONE]" => {
                self.answer.end(deltas);
                Ok(())
            }
            data => {
                let text = escaped(data);
                let chunk = serde_json::from_str(&text).map_err(|_| Flaw::Malformed(text.clone().into_owned()))?;
                self.answer.read(chunk, &text, deltas)
            }
        }
    }
}

/// Turns the chunks of one answer into deltas.
struct AnswerReader {
    text: TextJoiner,
    reasoning: TextJoiner,
    tags: ThinkTags,
    calls: CallAssembler,
    words: OwnWords,
    usage: Usage,
    finish_reason: Option<FinishReason>,
    /// Whether a `delta` has said anything; a `message` after it only repeats that.
    has_delta: bool,
    has_message: bool,
    /// Whether the answer is complete without a finish reason.
    has_whole_message: bool,
    has_last_usage: bool,
    is_over: bool,
}

impl AnswerReader {
    fn new(begins_within_reasoning: bool) -> Self {
        Self {
            text: TextJoiner::default(),
            reasoning: TextJoiner::default(),
            tags: ThinkTags::new(begins_within_reasoning),
            calls: CallAssembler::default(),
            words: OwnWords::default(),
            usage: Usage::default(),
            finish_reason: None,
            has_delta: false,
            has_message: false,
            has_whole_message: false,
            has_last_usage: false,
            is_over: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some() || self.has_whole_message || self.has_last_usage
    }

    /// Reads a chunk, whose JSON is `text`.
    fn read(&mut self, chunk: CompletionChunk<'_>, text: &str, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        if chunk.is_error() {
            return Err(Flaw::ProviderError(text.to_owned()));
        }
        let has_choices = chunk.choices.as_ref().is_some_and(|choices| !choices.is_empty());
        if let Some(tokens) = chunk.usage {
            self.note(tokens.into());
            // The protocol sends the usage of the whole answer after its last choice.
            self.has_last_usage |= !has_choices && (self.has_delta || self.has_message) && self.usage.output_tokens > 0;
        }
        let choices = chunk.choices.into_iter().flatten().filter_map(|choice| choice.0);
        choices.filter(Choice::is_first).try_for_each(|choice| self.read_choice(choice, deltas))
    }

    fn read_choice(&mut self, choice: Choice<'_>, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), Flaw> {
        if let Some(error) = choice.error() {
            return Err(Flaw::ProviderError(format!("{{\"error\":{error}}}")));
        }
        if let Some(tokens) = choice.usage {
            self.note(tokens.into());
        }
        if let Some(piece) = choice.delta {
            self.has_delta |= self.read_piece(piece, deltas)?;
        }
        if let Some(piece) = choice.message.filter(|_| !self.has_delta) {
            self.has_message |= self.read_piece(piece, deltas)?;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.finish_reason = weightier(self.finish_reason, reason.as_deref().map(finish_reason_of));
        Ok(())
    }

    /// Some servers count up in each chunk, and others send zeros in the last one.
    fn note(&mut self, usage: Usage) {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = &mut self.usage;
        *input_tokens = usage.input_tokens.max(*input_tokens);
        *output_tokens = usage.output_tokens.max(*output_tokens);
        *cached_tokens = usage.cached_tokens.max(*cached_tokens);
        *reasoning_tokens = usage.reasoning_tokens.max(*reasoning_tokens);
    }

    /// Returns whether the piece says anything.
    fn read_piece(&mut self, piece: ChoiceDelta<'_>, deltas: &mut VecDeque<AnswerDelta>) -> Result<bool, Flaw> {
        let before = deltas.len();
        let mut says_something = false;
        for detail in piece.reasoning_details.into_iter().flatten() {
            self.words.add_detail(detail);
        }
        let named_content = piece.reasoning_content.filter(|content| !content.is_empty());
        let is_named_content = named_content.is_some();
        for piece in named_content.or(piece.reasoning).into_iter().flat_map(|content| content.0) {
            let (ContentPiece::Text(text) | ContentPiece::Reasoning(text)) = piece;
            self.reason(text, is_named_content, deltas);
        }
        for piece in piece.content.into_iter().flat_map(|content| content.0) {
            match piece {
                ContentPiece::Reasoning(text) => self.reason(text, false, deltas),
                ContentPiece::Text(WireText(bytes)) => {
                    says_something |= !bytes.is_empty();
                    self.tags.push(self.text.push(WireText(bytes)), deltas);
                }
            }
        }
        if let Some(refusal) = piece.refusal {
            self.tags.push(self.text.push(refusal), deltas);
        }
        deltas.extend(piece.images.into_iter().flatten().map(|_| AnswerDelta::Picture));
        for piece in piece.tool_calls.into_iter().flatten().filter_map(|piece| piece.0) {
            deltas.extend(self.calls.read(piece)?.map(AnswerDelta::Call));
        }
        Ok(says_something || deltas.len() > before)
    }

    /// Adds reasoning that came in a field of its own, and keeps that which the provider needs back.
    fn reason(&mut self, text: WireText, is_kept: bool, deltas: &mut VecDeque<AnswerDelta>) {
        let text = self.reasoning.push(text);
        if text.is_empty() {
            return;
        }
        if is_kept {
            self.words.add_reasoning(&text);
        }
        self.tags.has_own_field();
        deltas.push_back(AnswerDelta::Reasoning(text));
    }

    fn end(&mut self, deltas: &mut VecDeque<AnswerDelta>) {
        self.is_over = true;
        deltas.extend(self.reasoning.finish().map(AnswerDelta::Reasoning));
        self.tags.push(self.text.finish().unwrap_or_default(), deltas);
        let reason = self.finish_reason.unwrap_or(FinishReason::Other);
        let is_whole_answer = !self.calls.has_calls() && reason != FinishReason::Length;
        self.tags.finish(is_whole_answer, deltas);
        self.calls.finish(std::mem::take(&mut self.words), deltas);
        deltas.push_back(AnswerDelta::End(self.usage, reason));
    }
}

/// Returns the reason that says most. Some servers send `stop` early, or once more after another reason.
fn weightier(first: Option<FinishReason>, second: Option<FinishReason>) -> Option<FinishReason> {
    first.into_iter().chain(second).max_by_key(|reason| match reason {
        FinishReason::Other => 0,
        FinishReason::Stop => 1,
        FinishReason::ToolCalls => 2,
        FinishReason::Length => 3,
        FinishReason::ContentFilter => 4,
    })
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

#[cfg(test)]
mod tests;

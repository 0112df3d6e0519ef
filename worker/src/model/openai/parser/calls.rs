//! Assigns each piece to its tool call.
//!
//! By the protocol each piece has an index, and the first one an id and the name. Some servers omit the index, give all
//! calls one index, repeat the name in each piece, or make up a new id for each. So no single field decides.

use std::collections::VecDeque;

use serde_json::{Value, value::RawValue};

use super::{Flaw, json_scan::JsonScan, own_words::OwnWords};
use crate::model::{
    AnswerDelta, CallDelta,
    openai::{
        chunk::CompletionToolCall,
        wire_text::{TextJoiner, WireText},
    },
};

/// The calls of one answer so far.
#[derive(Default)]
pub(super) struct CallAssembler {
    calls: Vec<OpenCall>,
    /// Number of calls whose name has arrived; the others are not returned yet.
    named: usize,
}

#[derive(Default)]
struct OpenCall {
    /// The server's own index.
    index: Option<u64>,
    id: Option<String>,
    /// Our own index, and the name.
    name: Option<(usize, String)>,
    joiner: TextJoiner,
    arguments: JsonScan,
    /// Whether all arguments so far are a placeholder.
    has_placeholder: bool,
    extra_content: Option<Value>,
}

impl CallAssembler {
    /// Takes the next piece. Returns what it adds, or `None` if it adds nothing. Fails if a call has arguments and no
    /// name.
    pub fn read(&mut self, piece: CompletionToolCall<'_>) -> Result<Option<CallDelta>, Flaw> {
        let function = piece.function.unwrap_or_default();
        let index = piece.index.filter(|index| *index >= 0.0).map(|index| index as u64);
        let (id, name) = (piece.id.filter(|id| !id.is_empty()), function.name.filter(|name| !name.is_empty()));
        let arguments = function.arguments.map(text);
        let has_arguments = arguments.as_ref().is_some_and(|WireText(bytes)| !bytes.is_empty());
        let at = match self.find(index, id.as_deref()) {
            Some(at) if !self.calls[at].is_over(id.as_deref(), name.as_deref(), has_arguments) => at,
            _ => {
                self.calls.push(OpenCall { index, ..OpenCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        call.id = call.id.take().or(id);
        let extra = piece.extra_content.and_then(|extra| serde_json::from_str(extra.get()).ok());
        call.extra_content = extra.or(call.extra_content.take());
        let arguments = call.add(arguments);
        let (index, name) = match (&call.name, name) {
            (Some((index, _)), _) => (*index, None),
            (None, Some(name)) => {
                let index = self.named;
                self.named += 1;
                call.name = Some((index, name.clone()));
                (index, Some(name))
            }
            (None, None) if !has_arguments => return Ok(None),
            (None, None) => return Err(Flaw::NamelessCall),
        };
        let says_nothing = name.is_none() && arguments.is_empty();
        Ok((!says_nothing).then_some(CallDelta { index, name, arguments, signature: None }))
    }

    pub fn has_calls(&self) -> bool {
        self.named > 0
    }

    /// Ends the calls: returns what they still lack, and what the provider needs back with them.
    pub fn finish(&mut self, mut words: OwnWords, deltas: &mut VecDeque<AnswerDelta>) {
        for call in &mut self.calls {
            let Some((index, _)) = call.name else { continue };
            let arguments = call.joiner.finish().unwrap_or_default();
            let signature = words.signature(index == 0, call.extra_content.take());
            if !arguments.is_empty() || signature.is_some() {
                deltas.push_back(AnswerDelta::Call(CallDelta { index, name: None, arguments, signature }));
            }
        }
    }

    /// Returns the latest call that the piece may continue.
    fn find(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None => {
                let same = id.and_then(|id| self.calls.iter().rposition(|call| call.id.as_deref() == Some(id)));
                same.or(self.calls.len().checked_sub(1))
            }
        }
    }
}

impl OpenCall {
    /// Returns whether a piece with these fields starts another call.
    fn is_over(&self, id: Option<&str>, name: Option<&str>, has_arguments: bool) -> bool {
        let (Some((_, own)), Some(name)) = (&self.name, name) else { return false };
        match (self.id.as_deref(), id) {
            (Some(own), Some(id)) if own == id => false,
            _ if own != name => true,
            (Some(_), Some(_)) => !self.arguments.is_open(),
            // Without ids, a repeated name starts the next call only once the arguments of this one are complete.
            _ => self.arguments.is_complete() && has_arguments,
        }
    }

    /// Adds a piece of the arguments. Returns what the call has more of.
    ///
    /// Some gateways send `{}` before the real arguments. No arguments at all mean the same, so it is never returned.
    fn add(&mut self, piece: Option<WireText>) -> String {
        let piece = piece.map(|piece| self.joiner.push(piece)).unwrap_or_default();
        if !self.arguments.has_started() && matches!(piece.trim(), "{}" | "null") {
            self.has_placeholder = true;
            self.arguments.read(piece.as_bytes());
            return String::new();
        }
        if self.has_placeholder && !piece.trim().is_empty() {
            self.has_placeholder = false;
            self.arguments = JsonScan::default();
        }
        self.arguments.read(piece.as_bytes());
        piece
    }
}

/// Returns the arguments as text.
fn text(arguments: &RawValue) -> WireText {
    serde_json::from_str(arguments.get()).unwrap_or_else(|_| WireText(arguments.get().into()))
}

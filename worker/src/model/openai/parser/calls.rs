//! Assigns each piece to its tool call.
//!
//! By the protocol each piece has an index, and the first one an id and the name. Some servers omit the index, give all
//! calls one index, repeat the name in each piece, or make up a new id for each. So no single field decides.

use serde_json::value::RawValue;

use super::Flaw;
use crate::model::{
    CallDelta,
    openai::chunk::{CompletionToolCall, FunctionDelta},
};

/// The calls of one answer so far.
#[derive(Default)]
pub(super) struct CallAssembler {
    calls: Vec<OpenCall>,
    /// Number of calls whose name has arrived; the others are not returned yet.
    named: usize,
}

struct OpenCall {
    /// The server's own index.
    index: Option<u64>,
    id: Option<String>,
    /// Our own index, and the name.
    name: Option<(usize, String)>,
    arguments: ArgumentsState,
}

impl CallAssembler {
    /// Takes the next piece. Returns what it adds, or `None` if it adds nothing. Fails if a call has arguments and no
    /// name.
    pub fn read(&mut self, piece: CompletionToolCall<'_>) -> Result<Option<CallDelta>, Flaw> {
        let FunctionDelta { name, arguments } = piece.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let arguments = arguments.map(text).unwrap_or_default();
        let (id, name) = (piece.id.filter(|id| !id.is_empty()), name.filter(|name| !name.is_empty()));
        let signature = piece.extra_content.and_then(|extra| serde_json::from_str(extra.get()).ok());
        let at = match self.find(piece.index, id.as_deref()) {
            Some(at) if !self.calls[at].is_over(id.as_deref(), name.as_deref(), &arguments) => at,
            _ => {
                self.calls.push(OpenCall {
                    index: piece.index,
                    id: None,
                    name: None,
                    arguments: ArgumentsState::default(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        call.id = call.id.take().or(id);
        call.arguments.read(&arguments);
        let (index, name) = match (&call.name, name) {
            (Some((index, _)), _) => (*index, None),
            (None, Some(name)) => {
                let index = self.named;
                self.named += 1;
                call.name = Some((index, name.clone()));
                (index, Some(name))
            }
            (None, None) if arguments.is_empty() => return Ok(None),
            (None, None) => return Err(Flaw::NamelessCall),
        };
        let says_nothing = name.is_none() && arguments.is_empty() && signature.is_none();
        Ok((!says_nothing).then_some(CallDelta { index, name, arguments, signature }))
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
    fn is_over(&self, id: Option<&str>, name: Option<&str>, arguments: &str) -> bool {
        let (Some((_, own)), Some(name)) = (&self.name, name) else { return false };
        match (self.id.as_deref(), id) {
            (Some(own), Some(id)) if own == id => false,
            _ if own != name => true,
            (Some(_), Some(_)) => !self.arguments.is_open(),
            // Without ids, a repeated name starts the next call only once the arguments of this one are complete.
            _ => self.arguments.is_complete() && !arguments.is_empty(),
        }
    }
}

/// Tracks whether the arguments are complete, without storing them.
#[derive(Default)]
struct ArgumentsState {
    started: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl ArgumentsState {
    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.started |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.depth > 0 || self.in_string
    }

    fn is_complete(&self) -> bool {
        self.started && !self.is_open()
    }
}

fn text(arguments: &RawValue) -> String {
    serde_json::from_str(arguments.get()).unwrap_or_else(|_| arguments.get().to_owned())
}

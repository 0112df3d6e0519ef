//! The message that the model writes, as the pieces that clients join by its id.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    message::message_id,
    piece::{CallPiece, MessagePiece, PieceFrame},
    writer::FrameWriter,
};

/// The node of the protocol's graph that asks the model.
pub const AGENT: &str = "agent";

/// The message that the model writes, or else the one that it has written last.
#[derive(Debug, Clone)]
pub struct WrittenMessage {
    /// The id of the run's answer.
    answer: Uuid,
    /// The number of the message in the answer.
    number: u32,
    /// Whether the model's next output begins another message.
    is_between: bool,
    step: u32,
    /// The calls of the step.
    calls: Vec<String>,
    open: OpenPart,
    /// The frame of the message's pieces.
    frame: Option<Arc<PieceFrame>>,
    /// The attempt after which pieces have other ids, because a lost one may have sent pieces with the usual ones.
    retried: Option<u32>,
}

/// The part of the message that has had no last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenPart {
    None,
    Text,
    Call,
}

impl WrittenMessage {
    /// Returns the state before the first message of an answer.
    pub const fn before(answer: Uuid) -> Self {
        Self {
            answer,
            number: 0,
            is_between: true,
            step: 0,
            calls: Vec::new(),
            open: OpenPart::None,
            frame: None,
            retried: None,
        }
    }

    /// Returns the id of the message.
    pub fn id(&self) -> String {
        message_id(self.answer, self.number)
    }

    pub const fn is_between(&self) -> bool {
        self.is_between
    }

    pub const fn step(&self) -> u32 {
        self.step
    }

    pub fn begin_step(&mut self, step: u32) {
        self.step = step;
        self.calls.clear();
        self.is_between = true;
        self.frame = None;
    }

    /// Goes back to an earlier message, which another attempt continues.
    pub fn rewind(&mut self, number: u32, is_between: bool, attempt: u32) {
        (self.number, self.is_between) = (number, is_between);
        self.calls.clear();
        self.open = OpenPart::None;
        self.frame = None;
        self.retried = Some(attempt);
    }

    /// Returns whether the step has shown a call.
    pub fn has_call(&self, call_id: &str) -> bool {
        self.calls.iter().any(|known| known == call_id)
    }

    pub fn text(&mut self, writer: &mut FrameWriter<'_>, text: &str) {
        if self.open == OpenPart::Call {
            self.end(writer);
        }
        self.piece(writer, &MessagePiece::Text(text));
        self.open = OpenPart::Text;
    }

    pub fn reasoning(&mut self, writer: &mut FrameWriter<'_>, text: &str) {
        self.piece(writer, &MessagePiece::Reasoning(text));
    }

    /// Writes a piece of a call's arguments, if the step has its beginning.
    pub fn arguments(&mut self, writer: &mut FrameWriter<'_>, call_id: &str, name: Option<&str>, text: &str) {
        let known = self.calls.iter().position(|known| known == call_id);
        let Some(index) = known.or_else(|| name.map(|_| self.calls.len())) else { return };
        if known.is_none() {
            if self.open == OpenPart::Call {
                self.end(writer);
            }
            self.calls.push(call_id.to_owned());
            // Clients skip the arguments of a piece with a name.
            self.piece(writer, &MessagePiece::Call(CallPiece::new(index, Some(call_id), name, "")));
        }
        if !text.is_empty() {
            self.piece(writer, &MessagePiece::Call(CallPiece::new(index, None, None, text)));
        }
        self.open = OpenPart::Call;
    }

    /// Writes the last piece of a part that is complete.
    pub fn end(&mut self, writer: &mut FrameWriter<'_>) {
        if std::mem::replace(&mut self.open, OpenPart::None) != OpenPart::None {
            self.piece(writer, &MessagePiece::End);
        }
    }

    fn piece(&mut self, writer: &mut FrameWriter<'_>, piece: &MessagePiece<'_>) {
        self.number += u32::from(std::mem::take(&mut self.is_between));
        let (answer, number, step, retried) = (self.answer, self.number, self.step, self.retried);
        let frame = || Arc::new(PieceFrame::new(&id_of_pieces(message_id(answer, number), retried), AGENT, step));
        writer.piece(piece, || Arc::clone(self.frame.get_or_insert_with(frame)));
    }

    /// Returns the id under which clients join the pieces of a message that has this id.
    pub fn id_of_pieces(&self, id: String) -> String {
        id_of_pieces(id, self.retried)
    }
}

fn id_of_pieces(id: String, retried: Option<u32>) -> String {
    match retried {
        Some(attempt) => format!("{id}~{attempt}"),
        None => id,
    }
}

//! Writes the frames of an event. A frame's number does not depend on the modes, so a client may come back with others.

use std::{io::Write as _, sync::Arc};

use holdfast_shared::event::Event;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    LangView,
    modes::LangMode,
    piece::{MessagePiece, PieceFrame, about},
};
use crate::wire::FrameId;

/// The frames of one event.
pub struct FrameWriter<'a> {
    pub view: &'a LangView,
    buffer: &'a mut Vec<u8>,
    /// The id of the next frame.
    next: FrameId,
    /// False for frames before the client's part of the run, which are counted only.
    is_shown: bool,
}

impl<'a> FrameWriter<'a> {
    pub const fn new(view: &'a LangView, buffer: &'a mut Vec<u8>, next: FrameId, is_shown: bool) -> Self {
        Self { view, buffer, next, is_shown }
    }

    /// Returns the number of the next frame.
    pub const fn number(&self) -> u32 {
        self.next.number
    }

    /// Appends a frame that every client gets.
    pub fn always<T: Serialize>(&mut self, name: &str, data: impl FnOnce() -> T) {
        self.frame(name, |buffer| append(buffer, &data()));
    }

    /// Appends a frame for clients with its mode.
    pub fn in_mode<T: Serialize>(&mut self, mode: LangMode, data: impl FnOnce() -> T) {
        self.frame_in_mode(mode, |buffer| append(buffer, &data()));
    }

    fn frame_in_mode(&mut self, mode: LangMode, data: impl FnOnce(&mut Vec<u8>)) {
        let name = match mode {
            LangMode::Values => "values",
            LangMode::Updates => "updates",
            LangMode::Messages => "messages",
            LangMode::Custom => "custom",
            LangMode::Tasks => "tasks",
            LangMode::Tools => "tools",
            LangMode::Unused => return,
        };
        if self.view.modes.has(mode) {
            self.frame(name, data);
        } else {
            self.next.number += 1;
        }
    }

    fn frame(&mut self, name: &str, data: impl FnOnce(&mut Vec<u8>)) {
        let id = self.next;
        self.next.number += 1;
        if self.is_shown {
            write!(self.buffer, "id: {id}\nevent: {name}\ndata: ").expect("a Vec takes every write");
            data(self.buffer);
            self.buffer.extend_from_slice(b"\n\n");
        }
    }

    /// Appends the begin of a stream, or of another attempt.
    pub fn metadata(&mut self, attempt: u32) {
        let view = self.view;
        self.always("metadata", || json!({"run_id": view.run_id, "attempt": attempt, "thread_id": view.thread_id}));
    }

    /// Appends a message that a node has written.
    pub fn message(&mut self, node: &str, step: u32, message: impl FnOnce() -> Value) {
        self.in_mode(LangMode::Messages, || json!([message(), about(node, step)]));
    }

    /// Appends a piece of the model's message. `frame` is called if the client gets it.
    pub fn piece(&mut self, piece: &MessagePiece<'_>, frame: impl FnOnce() -> Arc<PieceFrame>) {
        self.frame_in_mode(LangMode::Messages, |buffer| frame().write(buffer, piece));
    }

    /// Appends an event as it is, with its kind.
    pub fn custom(&mut self, event: &Event) {
        self.in_mode(LangMode::Custom, || {
            let mut payload: Value = serde_json::from_slice(event.payload()).unwrap_or_default();
            payload["type"] = event.kind().name().into();
            payload
        });
    }
}

fn append<T: Serialize>(buffer: &mut Vec<u8>, data: &T) {
    serde_json::to_writer(buffer, data).expect("a value is always valid JSON");
}
